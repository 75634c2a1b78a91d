package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/install"
)

// TestMain also is the process that is killed: with dieAt it runs one call of an
// installer and kills itself when so many steps are done.
func TestMain(m *testing.M) {
	if os.Getenv(dieAt) == "" {
		os.Exit(m.Run())
	}
	at, err := strconv.Atoi(os.Getenv(dieAt))
	if err != nil {
		panic(err)
	}
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	i, err := install.New(install.Options{Env: env, Version: env[dieVersion], Program: program(env[dieVersion]), Progress: func(step string) {
		if at--; at == 0 {
			fmt.Println("killed after:", step)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err == nil {
		_, err = calls[env[dieVerb]](i, context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

const (
	dieAt      = "INSTALL_TEST_DIE_AT"
	dieVersion = "INSTALL_TEST_VERSION"
	dieVerb    = "INSTALL_TEST_VERB"
)

var calls = map[string]func(*install.Installer, context.Context) (install.Result, error){
	"install":   (*install.Installer).Install,
	"disable":   (*install.Installer).Disable,
	"uninstall": (*install.Installer).Uninstall,
}

func program(version string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte("the program, version " + version), nil }
}

// A world is a home with stand-ins for the clients, whose configuration has entries of
// others, and a history.
type world struct {
	*testenv.Home
	t testing.TB
}

const otherCodex = "# mine\nmodel = \"m\"   # the model\n\n[mcp_servers.other]\ncommand = \"/bin/other\"\nargs = [ \"a\",  \"b\" ]   # as I like it\n"

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{testenv.NewHome(t), t}
	clients, err := filepath.Abs("testdata/clients")
	must(t, err)
	w.Set("PATH", clients+":/usr/bin:/bin")
	w.Write(t, ".codex/config.toml", otherCodex)
	w.Write(t, ".codex/sessions/2026/x.jsonl", "{}\n")
	w.Write(t, ".pi/agent/settings.json", "{\n  \"packages\": [\n    \"npm:other\"\n  ]\n}\n")
	must(t, os.MkdirAll(w.Path(".omp/plugins/node_modules"), 0o700))
	must(t, os.Chmod(w.Dir, 0o700))
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) installer(version string) *install.Installer {
	w.t.Helper()
	i, err := install.New(install.Options{Env: w.Env(), Version: version, Program: program(version)})
	must(w.t, err)
	return i
}

// ok runs a call that must succeed with an outcome.
func (w *world) ok(verb, version, outcome string) install.Result {
	w.t.Helper()
	r, err := calls[verb](w.installer(version), w.t.Context())
	if err != nil {
		var at *privdir.At
		errors.As(err, &at)
		w.t.Fatalf("%s %s: %v (%v, %v)", verb, version, err, fault.From(err).Hint, at)
	}
	if r.Outcome != outcome {
		w.t.Fatalf("%s %s: %s, want %s", verb, version, r.Outcome, outcome)
	}
	return r
}

// refused runs a call that must fail with a code and words.
func (w *world) refused(verb, version string, code fault.Code, words string) {
	w.t.Helper()
	r, err := calls[verb](w.installer(version), w.t.Context())
	if !errors.Is(err, code) {
		w.t.Fatalf("%s %s: %v, %v; want %s", verb, version, r.Outcome, err, code)
	}
	f := fault.From(err)
	if !strings.Contains(f.Msg, words) {
		w.t.Errorf("%q does not say %q", f.Msg, words)
	}
	if f.Hint == "" {
		w.t.Errorf("%q says not what to do", f.Msg)
	}
}

// states are what the clients say now.
func (w *world) states() string {
	w.t.Helper()
	var b []string
	for _, f := range w.installer("0").Probe(w.t.Context()) {
		b = append(b, string(f.State))
	}
	return strings.Join(b, " ")
}

func (w *world) want(states string) {
	w.t.Helper()
	if got := w.states(); got != states {
		w.t.Errorf("the clients say %s, want %s", got, states)
	}
}

const (
	allExact   = "exact exact exact exact"
	allMissing = "missing missing missing missing"
)

// rest is what a world holds besides an installation: content, without times.
func (w *world) rest() string {
	w.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(testenv.Fingerprint(w.t, w.Dir)) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(f[1], "d") && (f[0] == `"."` || strings.HasPrefix(f[0], `".local`) || strings.HasPrefix(f[0], `".omp`)): // times of directories
			continue
		case strings.HasPrefix(f[0], `"break`):
			continue
		}
		f[2] = ""
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// whole checks an installation that is in order.
func (w *world) whole(version string) {
	w.t.Helper()
	w.want(allExact)
	root := w.Path(".local/share/mooncite")
	entries, err := os.ReadDir(root)
	must(w.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".mooncite-install", "install.lock", "installation.json", "package"}; !slices.Equal(names, want) {
		w.t.Errorf("the installation holds %v", names)
	}
	data, err := os.ReadFile(w.Path(".local/bin/mooncite"))
	must(w.t, err)
	if want := "the program, version " + version; string(data) != want {
		w.t.Errorf("the launcher leads to %q, want %q", data, want)
	}
}

func (w *world) gone() {
	w.t.Helper()
	w.want(allMissing)
	for _, p := range []string{".local/share/mooncite", ".local/bin/mooncite", ".omp/plugins/node_modules/mooncite"} {
		if _, err := os.Lstat(w.Path(p)); !errors.Is(err, os.ErrNotExist) {
			w.t.Errorf("%s is still there (%v)", p, err)
		}
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.rest()
	w.ok("uninstall", "1.0.0", install.NotInstalled)
	w.ok("install", "1.0.0", install.Installed)
	w.whole("1.0.0")
	w.ok("install", "1.0.0", install.AlreadyInstalled)
	w.whole("1.0.0")

	r := w.ok("disable", "1.0.0", install.Disabled)
	if r.Version != "1.0.0" {
		t.Errorf("disabled %s", r.Version)
	}
	w.want(allMissing)
	w.ok("disable", "1.0.0", install.Disabled)
	w.ok("install", "1.0.0", install.AlreadyInstalled)
	w.whole("1.0.0")

	w.ok("uninstall", "1.0.0", install.Uninstalled)
	w.gone()
	if after := w.rest(); after != before {
		t.Errorf("it left\n%s\nbefore there was\n%s", after, before)
	}
}

func TestInstallationIsPrivate(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	for line := range strings.Lines(testenv.Fingerprint(t, w.Path(".local/share/mooncite"))) {
		name, rest, _ := strings.Cut(line, " ")
		want := "-rw------- "
		if strings.HasPrefix(rest, "d") {
			want = "drwx------ "
		} else if name == `"package/bin/mooncite"` {
			want = "-rwx------ "
		}
		if !strings.HasPrefix(rest, want) {
			t.Errorf("%s is not %s", line, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(w *world) error
		code  fault.Code
		words string
	}{
		{"another program's directory", func(w *world) error {
			w.Write(t, ".local/share/mooncite/node_modules/x", "theirs")
			return os.Chmod(w.Path(".local/share/mooncite"), 0o700)
		}, evidence.CodeInstall, "another program is installed"},
		{"another marker", func(w *world) error {
			w.Write(t, ".local/share/mooncite/.mooncite-install", "not ours")
			return nil
		}, evidence.CodeInstall, "another program is installed"},
		{"a directory of a package without a record", func(w *world) error {
			w.Write(t, ".local/share/mooncite/.mooncite-install", "mooncite-go-install-v1\n")
			w.Write(t, ".local/share/mooncite/package/manifest.json", `{"version":1,"package":"0.9.0","files":{}}`)
			return nil
		}, evidence.CodeInstall, "not one that the record"},
		{"a damaged record", func(w *world) error {
			w.Write(t, ".local/share/mooncite/.mooncite-install", "mooncite-go-install-v1\n")
			w.Write(t, ".local/share/mooncite/installation.json", "{")
			return nil
		}, evidence.CodeInstall, "damaged"},
		{"a link instead of the directory", func(w *world) error {
			must(t, os.MkdirAll(w.Path(".local/share"), 0o700))
			must(t, os.MkdirAll(w.Path("elsewhere"), 0o700))
			return os.Symlink(w.Path("elsewhere"), w.Path(".local/share/mooncite"))
		}, privdir.Unsafe, "symbolic link"},
		{"a data home that everybody can change", func(w *world) error {
			must(t, os.MkdirAll(w.Path(".local/share"), 0o700))
			must(t, os.Chmod(w.Dir, 0o755))
			must(t, os.Chmod(w.Path(".local"), 0o755))
			must(t, os.Chmod(filepath.Dir(w.Dir), 0o755))
			must(t, os.Chmod(filepath.Dir(filepath.Dir(w.Dir)), 0o755))
			return os.Chmod(w.Path(".local/share"), 0o777)
		}, privdir.Unsafe, "can be changed by everyone"},
		{"no home", func(w *world) error {
			w.Set("HOME", w.Path("misspelt"))
			return nil
		}, evidence.CodeConfig, "home directory does not exist"},
		{"a home that everybody can change", func(w *world) error { return os.Chmod(w.Dir, 0o757) }, privdir.Unsafe, "the home directory can be changed by everyone"},
		{"a launcher's directory that everybody can change", func(w *world) error {
			must(t, os.MkdirAll(w.Path(".local/bin"), 0o755))
			return os.Chmod(w.Path(".local/bin"), 0o757)
		}, privdir.Unsafe, "the directory of the launcher can be changed by everyone"},
		{"a directory open to others", func(w *world) error {
			must(t, os.MkdirAll(w.Path(".local/share/mooncite"), 0o700))
			return os.Chmod(w.Path(".local/share/mooncite"), 0o755)
		}, privdir.Unsafe, "open to other users"},
		{"another command of the name", func(w *world) error {
			w.Write(t, ".local/bin/mooncite", "another")
			return nil
		}, evidence.CodeInstall, "another command"},
		{"a link of the name to another command", func(w *world) error {
			w.Write(t, ".local/bin/true", "x")
			return os.Symlink(w.Path(".local/bin/true"), w.Path(".local/bin/mooncite"))
		}, evidence.CodeInstall, "another command"},
		{"another server in Codex", func(w *world) error {
			w.Write(t, ".codex/config.toml", "[mcp_servers.mooncite]\ncommand = \"/bin/x\"\nargs = [\"serve\"]\n")
			return nil
		}, evidence.CodeClient, "Codex has another server"},
		{"another server in Claude Code", func(w *world) error {
			w.Write(t, ".claude.json.mooncite", "/bin/x")
			return nil
		}, evidence.CodeClient, "Claude Code has another server"},
		{"another plugin in OMP", func(w *world) error {
			w.Write(t, ".omp/plugins/node_modules/mooncite/package.json", "{}")
			return nil
		}, evidence.CodeClient, "OMP has another plugin"},
		{"another package in Pi", func(w *world) error {
			w.Write(t, ".pi/agent/settings.json", `{"packages":["npm:@whenmoon-afk/mooncite@4.0.6"]}`)
			return nil
		}, evidence.CodeClient, "Pi has another package"},
		{"a server in Pi", func(w *world) error {
			w.Write(t, ".pi/agent/mcp.json", `{"mcpServers":{"mooncite":{"command":"x"}}}`)
			return nil
		}, evidence.CodeClient, "mcp.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			must(t, c.spoil(w))
			before := w.rest()
			w.refused("install", "1.0.0", c.code, c.words)
			if after := strings.ReplaceAll(w.rest(), `[".local/share/mooncite/install.lock" -rw-------  0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855]`+"\n", ""); after != before {
				t.Errorf("something was changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// What lies in the package and is not ours keeps everything as it is.
func TestForeignFileInThePackage(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{"notes.txt", "bin/other", "extra/x"} {
		w := newWorld(t)
		w.ok("install", "1.0.0", install.Installed)
		name := w.Write(t, ".local/share/mooncite/package/"+rel, "mine")
		for _, verb := range []string{"install", "disable", "uninstall"} {
			w.refused(verb, "1.1.0", evidence.CodeInstall, "did not put there")
		}
		w.want(allExact)
		must(t, os.Remove(name))
		_ = os.Remove(w.Path(".local/share/mooncite/package/extra"))
		w.ok("uninstall", "1.0.0", install.Uninstalled)
		w.gone()
	}
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	must(t, os.Symlink("/etc/passwd", w.Path(".local/share/mooncite/package/pi/link")))
	w.refused("uninstall", "1.0.0", evidence.CodeInstall, "did not put there")
	must(t, os.Remove(w.Path(".local/share/mooncite/package/pi/link")))
	must(t, os.Link(w.Path(".local/share/mooncite/package/bin/mooncite"), w.Path("second")))
	w.refused("uninstall", "1.0.0", privdir.Unsafe, "second name")
}

// So does what comes into the package while the clients are told to forget it.
func TestForeignFileComesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	real, err := filepath.Abs("testdata/clients/claude")
	must(t, err)
	name := w.Path(".local/share/mooncite/package/notes.txt")
	busy := w.Path("busy")
	testenv.Executable(t, busy, []byte("#!/bin/sh\n[ \"$2\" != remove ] || echo mine >'"+name+"'\nexec '"+real+"' \"$@\"\n"))
	w.Set("MOONCITE_CLAUDE_COMMAND", busy)
	w.refused("uninstall", "1.0.0", evidence.CodeInstall, "did not put there")
	if data, err := os.ReadFile(name); err != nil || string(data) != "mine\n" {
		t.Errorf("%q, %v", data, err)
	}
	must(t, os.Remove(name))
	w.ok("uninstall", "1.0.0", install.Uninstalled)
	w.gone()
}

// A file of ours that was changed or is missing is put in order.
func TestRepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	w.Write(t, ".local/share/mooncite/package/pi/mooncite.ts", "broken")
	must(t, os.Remove(w.Path(".local/share/mooncite/package/bin/mooncite")))
	w.ok("install", "1.0.0", install.Updated)
	w.whole("1.0.0")
	w.ok("install", "1.0.0", install.AlreadyInstalled)
}

func TestLauncherOfMakeInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(t, ".local/bin/mooncite", "the program, version 1.0.0")
	w.ok("install", "1.0.0", install.Installed)
	w.whole("1.0.0")
	// The next version comes the same way, as a copy beside the old package.
	w.refused("install", "1.1.0", evidence.CodeInstall, "another command")
	w.Write(t, ".local/bin/mooncite", "the program, version 1.1.0")
	w.ok("install", "1.1.0", install.Updated)
	w.whole("1.1.0")
	if r := w.ok("uninstall", "1.1.0", install.Uninstalled); r.Launcher != w.Path(".local/bin/mooncite") || !strings.Contains(r.Text(), "/.local/bin/mooncite stays") {
		t.Errorf("%q", r.Text())
	}
	w.want(allMissing)
	if _, err := os.Lstat(w.Path(".local/bin/mooncite")); err != nil {
		t.Errorf("a launcher that was not ours is gone: %v", err)
	}
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "1.9.0", install.Installed)
	r := w.ok("install", "1.10.0", install.Updated)
	if r.Previous != "1.9.0" || r.Version != "1.10.0" {
		t.Errorf("it was %s and is %s", r.Previous, r.Version)
	}
	w.whole("1.10.0")
	w.refused("install", "1.9.0", evidence.CodeInstall, "newer")
	w.whole("1.10.0")
}

// An upgrade whose new registration fails leaves the version before in force.
func TestUpgradeIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fail", "noop", "late"} {
		w := newWorld(t)
		w.Set("MOONCITE_CODEX_COMMAND", "/nowhere")
		w.ok("install", "1.0.0", install.Installed)
		before := w.rest()
		w.Set("MOONCITE_CODEX_COMMAND", "")
		w.Write(t, "break/codex-add", how)
		w.refused("install", "1.1.0", evidence.CodeClient, "Codex did not")
		w.want("exact exact missing exact")
		if after := w.rest(); after != before {
			t.Errorf("%s: it left\n%s\nbefore there was\n%s", how, after, before)
		}
		must(t, os.Remove(w.Path("break/codex-add")))
		w.ok("install", "1.1.0", install.Updated)
		w.whole("1.1.0")
	}
}

// A first install that fails leaves nothing.
func TestInstallIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"pi-install", "omp-link", "codex-add", "claude-add"} {
		for _, how := range []string{"fail", "noop", "late"} {
			w := newWorld(t)
			before := w.rest()
			w.Write(t, "break/"+at, how)
			w.refused("install", "1.0.0", evidence.CodeClient, "did not")
			w.gone()
			if after := w.rest(); after != before {
				t.Errorf("%s %s: it left\n%s\nbefore there was\n%s", at, how, after, before)
			}
		}
	}
}

// What cannot be taken back stays usable, and is said.
func TestTakingBackFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(t, "break/claude-add", "fail")
	w.Write(t, "break/codex-remove", "fail")
	w.refused("install", "1.0.0", evidence.CodeClient, "not everything could be taken back")
	w.want("missing missing exact missing")
	if _, err := os.Stat(w.Path(".local/share/mooncite/package/bin/mooncite")); err != nil {
		t.Errorf("Codex has a registration without its program: %v", err)
	}
	must(t, os.RemoveAll(w.Path("break")))
	w.ok("install", "1.0.0", install.AlreadyInstalled)
	w.whole("1.0.0")
}

func TestUninstallAndClientsThatAreAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Set("MOONCITE_PI_COMMAND", "/nowhere")
	w.ok("install", "1.0.0", install.Installed)
	w.want("unavailable exact exact exact")

	w.Set("MOONCITE_OMP_COMMAND", "/nowhere") // is registered
	w.refused("uninstall", "1.0.0", evidence.CodeClient, "registered with OMP, and the command omp")
	w.refused("disable", "1.0.0", evidence.CodeClient, "registered with OMP, and the command omp")
	w.want("unavailable unavailable exact exact")
	w.ok("install", "1.0.0", install.AlreadyInstalled) // and does not forget it
	w.refused("uninstall", "1.0.0", evidence.CodeClient, "OMP")
	w.Set("MOONCITE_OMP_COMMAND", "")

	w.Write(t, ".claude.json.mooncite", "/bin/changed")
	w.refused("uninstall", "1.0.0", evidence.CodeClient, "changed by somebody else")
	w.Write(t, ".claude.json.mooncite", w.Path(".local/share/mooncite/package/bin/mooncite"))

	w.Write(t, "break/codex-remove", "noop")
	w.refused("uninstall", "1.0.0", evidence.CodeClient, "told to forget")
	if _, err := os.Stat(w.Path(".local/share/mooncite/package/bin/mooncite")); err != nil {
		t.Errorf("Codex has a registration without its program: %v", err)
	}
	must(t, os.RemoveAll(w.Path("break")))
	w.ok("uninstall", "1.0.0", install.Uninstalled) // Pi, never registered, does not hinder
	w.Set("MOONCITE_PI_COMMAND", "")
	w.gone()
}

// A server of the name that was never ours is left alone.
func TestUninstallLeavesAnotherServer(t *testing.T) {
	w := newWorld(t)
	w.Set("MOONCITE_CLAUDE_COMMAND", "/nowhere")
	w.ok("install", "1.0.0", install.Installed)
	w.Set("MOONCITE_CLAUDE_COMMAND", "")
	w.Write(t, ".claude.json.mooncite", "/bin/theirs")
	w.ok("uninstall", "1.0.0", install.Uninstalled)
	w.want("missing missing missing conflict")
}

func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	held, err := privdir.TryLock(w.Path(".local/share/mooncite/install.lock"))
	must(t, err)
	for _, verb := range []string{"install", "disable", "uninstall"} {
		w.refused(verb, "1.0.0", privdir.Busy, "another mooncite is installing")
	}
	must(t, held.Unlock())
	w.whole("1.0.0")
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	before := w.rest()
	w.Write(t, "break/codex-add", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	i, err := install.New(install.Options{Env: w.Env(), Version: "1.0.0", Program: program("1.0.0"), Progress: func(step string) {
		if step == "Codex is announced" {
			cancel()
		}
	}})
	must(t, err)
	if _, err := i.Install(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	must(t, os.RemoveAll(w.Path("break")))
	w.gone()
	if after := w.rest(); after != before {
		t.Errorf("it left\n%s\nbefore there was\n%s", after, before)
	}
}

// An interrupt that comes while the clients are asked for the first time is one too: that
// they do not answer any more does not mean that they are not there.
func TestInterruptedAtOnce(t *testing.T) {
	w := newWorld(t)
	before := w.rest()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := w.installer("1.0.0").Install(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %+v, %v", r, err)
	}
	w.gone()
	if after := w.rest(); after != before {
		t.Errorf("it left\n%s\nbefore there was\n%s", after, before)
	}
	w.ok("install", "1.0.0", install.Installed)
	for _, verb := range []string{"install", "disable", "uninstall"} {
		if r, err := calls[verb](w.installer("1.1.0"), ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, interrupted: %+v, %v", verb, r, err)
		}
		w.whole("1.0.0")
	}
}

// Another install, which begins and ends while this one asks the clients, is not taken back
// by this one.
func TestInstalledMeanwhile(t *testing.T) {
	w := newWorld(t)
	real, err := filepath.Abs("testdata/clients/claude")
	must(t, err)
	// The first question is answered late, and what is there is not added again.
	slow := w.Path("slow/claude")
	must(t, os.Mkdir(filepath.Dir(slow), 0o700))
	testenv.Executable(t, slow, []byte(`#!/bin/sh
case "$2" in
get) if rm "$HOME/slow/once" 2>/dev/null; then
	said=$('`+real+`' "$@" 2>&1); status=$?
	touch "$HOME/slow/waiting"
	until [ -f "$HOME/slow/go" ]; do sleep 0.01; done
	echo "$said" >&2; exit $status
fi ;;
add) [ ! -f "$HOME/.claude.json.mooncite" ] || { echo "MCP server mooncite already exists in user config" >&2; exit 1; } ;;
esac
exec '`+real+`' "$@"
`))
	w.Set("MOONCITE_CLAUDE_COMMAND", slow)
	w.Write(t, "slow/once", "")
	i := w.installer("1.0.0")
	done := make(chan error)
	go func() {
		_, err := i.Install(t.Context())
		done <- err
	}()
	for {
		if _, err := os.Stat(w.Path("slow/waiting")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, other := w.installer("1.0.0").Install(t.Context())
	w.Write(t, "slow/go", "")
	mine := <-done
	if mine != nil && other != nil {
		t.Errorf("%v, %v", mine, other)
	}
	w.whole("1.0.0")
}

// A process that is killed at any step leaves what the next call can end, forward and
// back, and never a registration whose program is not there.
func TestKilledAtEveryStep(t *testing.T) {
	for _, c := range []struct{ name, verb, first, version string }{
		{"install", "install", "", "1.0.0"},
		{"upgrade", "install", "1.0.0", "1.1.0"},
		{"disable", "disable", "1.0.0", "1.0.0"},
		{"uninstall", "uninstall", "1.0.0", "1.0.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for step := 1; ; step++ {
				done := false
				for _, next := range []string{"install", "uninstall"} {
					w := newWorld(t)
					before := w.rest()
					if c.first != "" {
						w.ok("install", c.first, install.Installed)
					}
					killed, said := w.kill(c.verb, c.version, step)
					if done = !killed; done {
						break
					}
					t.Logf("%d %s, then %s", step, strings.TrimSpace(said), next)
					w.registeredCanStart()
					r, err := calls[next](w.installer(c.version), t.Context())
					if err != nil {
						t.Fatalf("%s: then %s: %v (%s)", said, next, err, fault.From(err).Hint)
					}
					if next == "install" {
						w.whole(c.version)
						continue
					}
					if r.Outcome != install.Uninstalled && r.Outcome != install.NotInstalled {
						t.Errorf("%s: then %s", said, r.Outcome)
					}
					w.gone()
					if after := w.rest(); after != before {
						t.Errorf("%s: it left\n%s\nbefore there was\n%s", said, after, before)
					}
				}
				if done {
					if step < 5 {
						t.Errorf("only %d steps", step-1)
					}
					return
				}
			}
		})
	}
}

// What is registered is on the record already when the process is killed: with the client
// away, its program is not taken from it.
func TestRecordIsWrittenFirst(t *testing.T) {
	t.Parallel()
	for step := 1; ; step++ {
		w := newWorld(t)
		killed, said := w.kill("install", "1.0.0", step)
		if !killed {
			t.Fatal("there is no such step")
		}
		if !strings.Contains(said, "Codex is registered") {
			continue
		}
		w.Set("MOONCITE_CODEX_COMMAND", "/nowhere")
		w.refused("uninstall", "1.0.0", evidence.CodeClient, "registered with Codex, and the command codex")
		w.registeredCanStart()
		w.Set("MOONCITE_CODEX_COMMAND", "")
		w.ok("uninstall", "1.0.0", install.Uninstalled)
		w.gone()
		return
	}
}

// A package is on the disk with every directory before it is put in force: what is in force
// is whole, also after the power failed.
func TestPackageIsFlushed(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace here")
	}
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v %s", err, out)
	}
	w := newWorld(t)
	exe, err := os.Executable()
	must(t, err)
	log := w.Path("tmp/calls")
	c := exec.Command(strace, "-f", "-q", "-y", "-e", "trace=fsync,renameat2", "-o", log, exe)
	c.Env = append(w.Environ(), dieAt+"=1000", dieVersion+"=1.0.0", dieVerb+"=install")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	data, err := os.ReadFile(log)
	must(t, err)
	before, _, ok := strings.Cut(string(data), `, "package", RENAME_NOREPLACE`)
	if !ok {
		t.Fatalf("the package was not put in force:\n%s", data)
	}
	for _, dir := range []string{"", "/bin", "/pi", "/skills", "/skills/mooncite"} {
		if !regexp.MustCompile(`fsync\(\d+<[^>]*/stage-[A-Z0-9]+` + dir + `>`).MatchString(before) {
			t.Errorf("%q of the package was not flushed", dir)
		}
	}
}

// What a process can leave that is killed within a step: in the middle of writing a
// package, of replacing a small file, of removing the last ones.
func TestHalfDone(t *testing.T) {
	t.Parallel()
	const root = ".local/share/mooncite/"
	marked := func(w *world) { w.Write(w.t, root+".mooncite-install", "mooncite-go-install-v1\n") }
	for name, leave := range map[string]func(*world){
		"the directory":         func(w *world) { must(w.t, os.MkdirAll(w.Path(root), 0o700)) },
		"half a marker":         func(w *world) { w.Write(w.t, root+"..mooncite-install.0123456789abcdef.tmp", "moon") },
		"the marker":            marked,
		"the marker and a lock": func(w *world) { marked(w); w.Write(w.t, root+"install.lock", "") },
		"a lock":                func(w *world) { w.Write(w.t, root+"install.lock", "") },
		"a record of nothing": func(w *world) {
			marked(w)
			w.Write(w.t, root+"installation.json", `{"version":1,"next":"1.0.0","clients":[]}`)
		},
		"half a package":         func(w *world) { marked(w); w.Write(w.t, root+"stage-X/bin/.mooncite.0123456789abcdef.tmp", "the pro") },
		"half a package removed": func(w *world) { marked(w); w.Write(w.t, root+"stage-removed/bin/mooncite", "the program") },
		"half a record": func(w *world) {
			w.ok("install", "1.0.0", install.Installed)
			w.Write(w.t, root+".installation.json.0123456789abcdef.tmp", "{")
		},
		"a temporary file in the package": func(w *world) {
			w.ok("install", "1.0.0", install.Installed)
			w.Write(w.t, root+"package/pi/.mooncite.ts.0123456789abcdef.tmp", "{")
		},
		"a launcher without its program": func(w *world) {
			must(w.t, os.MkdirAll(w.Path(".local/bin"), 0o700))
			must(w.t, os.Symlink(w.Path(root+"package/bin/mooncite"), w.Path(".local/bin/mooncite")))
			marked(w)
			w.Write(w.t, root+"installation.json", `{"version":1,"package":"1.0.0","launcher":true,"clients":[]}`)
		},
	} {
		for _, next := range []string{"install", "uninstall"} {
			w := newWorld(t)
			before := w.rest()
			leave(w)
			if next == "install" {
				if _, err := w.installer("1.0.0").Install(t.Context()); err != nil {
					t.Errorf("%s: %v (%s)", name, err, fault.From(err).Hint)
				}
				w.want(allExact)
			}
			if _, err := w.installer("1.0.0").Uninstall(t.Context()); err != nil {
				t.Errorf("%s: %v (%s)", name, err, fault.From(err).Hint)
			}
			w.want(allMissing)
			after := w.rest()
			if _, err := os.Lstat(w.Path(root)); err == nil && next == "uninstall" && (name == "the directory" || name == "half a marker" || name == "a lock") {
				continue // not known to be ours, and harmless
			}
			if after != before {
				t.Errorf("%s, then %s: it left\n%s\nbefore there was\n%s", name, next, after, before)
			}
		}
	}
}

// kill runs a call in another process that ends after a step.
func (w *world) kill(verb, version string, step int) (killed bool, said string) {
	w.t.Helper()
	exe, err := os.Executable()
	must(w.t, err)
	c := exec.Command(exe)
	c.Env = append(w.Environ(), dieAt+"="+strconv.Itoa(step), dieVersion+"="+version, dieVerb+"="+verb)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	var exit *exec.ExitError
	if err == nil {
		return false, out.String()
	}
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("%s %s, step %d: %v\n%s", verb, version, step, err, &out)
	}
	return true, out.String()
}

// registeredCanStart wants the program to be there when any client is registered.
func (w *world) registeredCanStart() {
	w.t.Helper()
	if !strings.Contains(w.states(), "exact") {
		return
	}
	if _, err := os.Stat(w.Path(".local/share/mooncite/package/bin/mooncite")); err != nil {
		w.t.Errorf("a client is registered and its program is not there: %v", err)
	}
}

// A file that Codex does not read as it read its own stays as Codex wrote it.
func TestCodexIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	real, err := filepath.Abs("testdata/clients/codex")
	must(t, err)
	strict, config := w.Path("strict"), w.Path(".codex/config.toml")
	testenv.Executable(t, strict, []byte(`#!/bin/sh
if [ "$2" = get ] && grep -q "as I like it" '`+config+`' && grep -q '^\[mcp_servers.mooncite' '`+config+`'; then
	echo "Error: cannot extend value" >&2; exit 1
fi
exec '`+real+`' "$@"
`))
	w.Set("MOONCITE_CODEX_COMMAND", strict)
	w.ok("install", "1.0.0", install.Installed)
	w.whole("1.0.0")
	if data, err := os.ReadFile(config); err != nil || strings.Contains(string(data), "as I like it") {
		t.Errorf("%v\n%s", err, data)
	}
}

// A client that is gone hinders nothing: its own file tells whether anything of ours is left
// there, and that is named.
func TestClientThatIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, title, hint, file string
		leave, clean               func(w *world) error
	}{
		{"MOONCITE_PI_COMMAND", "Pi", `the element of "packages"`, ".pi/agent/settings.json", nil,
			func(w *world) error { return os.RemoveAll(w.Path(".pi")) }},
		{"MOONCITE_OMP_COMMAND", "OMP", "the link", ".omp/plugins/node_modules/mooncite", nil,
			func(w *world) error { return os.Remove(w.Path(".omp/plugins/node_modules/mooncite")) }},
		{"MOONCITE_CODEX_COMMAND", "Codex", "[mcp_servers.mooncite]", ".codex/config.toml", nil,
			func(w *world) error { return os.WriteFile(w.Path(".codex/config.toml"), []byte(otherCodex), 0o600) }},
		{"MOONCITE_CLAUDE_COMMAND", "Claude Code", `the member "mooncite"`, ".claude.json",
			func(w *world) error {
				w.Write(t, ".claude.json", `{"mcpServers":{"mooncite":{"type":"stdio","command":"`+w.Path(".local/share/mooncite/package/bin/mooncite")+`"}}}`)
				return nil
			},
			func(w *world) error {
				w.Write(t, ".claude.json", `{"mcpServers":{}}`)
				return os.Remove(w.Path(".claude.json.mooncite"))
			}},
	} {
		w := newWorld(t)
		w.ok("install", "1.0.0", install.Installed)
		if c.leave != nil {
			must(t, c.leave(w))
		}
		w.Set(c.command, "/nowhere")
		for _, verb := range []string{"disable", "uninstall"} {
			_, err := calls[verb](w.installer("1.0.0"), t.Context())
			var at *privdir.At
			if f := fault.From(err); f == nil || !strings.Contains(f.Msg, "registered with "+c.title) || !strings.Contains(f.Hint, c.hint) || !errors.As(err, &at) || at.Path != w.Path(c.file) {
				t.Errorf("%s without %s: %v, %+v", verb, c.title, err, f)
			}
		}
		must(t, c.clean(w))
		w.ok("uninstall", "1.0.0", install.Uninstalled)
		w.Set(c.command, "")
		w.gone()
	}
}

// A registration that is switched off in the client starts nothing: that is said, it
// hinders no update, and it is taken out like any other.
func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.rest()
	w.ok("install", "1.0.0", install.Installed)
	must(t, os.WriteFile(w.Path(".omp/plugins/off"), nil, 0o600))
	config, err := os.ReadFile(w.Path(".codex/config.toml"))
	must(t, err)
	w.Write(t, ".codex/config.toml", string(config)+"enabled = false\n")
	w.want("exact conflict conflict exact")
	r := w.ok("install", "1.1.0", install.Updated)
	for _, says := range []string{"OMP has the plugin mooncite switched off", "Codex has mooncite switched off (enabled = false)"} {
		if !strings.Contains(r.Text(), says) {
			t.Errorf("%q is not said:\n%s", says, r.Text())
		}
	}
	w.want("exact conflict conflict exact")
	w.ok("uninstall", "1.1.0", install.Uninstalled)
	w.gone()
	if after := w.rest(); after != before {
		t.Errorf("it left\n%s\nbefore there was\n%s", after, before)
	}
}

// An uninstall that fails on the way says what is out already, and the next one goes on.
func TestUninstallFailsOnTheWay(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "1.0.0", install.Installed)
	w.Write(t, "break/codex-remove", "fail")
	w.refused("uninstall", "1.0.0", evidence.CodeClient, "it broke; taken out already: Claude Code")
	w.want("exact exact exact missing")
	must(t, os.RemoveAll(w.Path("break")))
	w.Write(t, ".local/share/mooncite/package/notes.txt", "mine") // seen before anything is taken out
	w.refused("uninstall", "1.0.0", evidence.CodeInstall, "did not put there")
	must(t, os.Remove(w.Path(".local/share/mooncite/package/notes.txt")))
	w.ok("uninstall", "1.0.0", install.Uninstalled)
	w.gone()
}

// Settings of Pi without a list of packages are the same to the byte after an install that
// is taken back, one that was killed, and a disable.
func TestPiWithoutPackages(t *testing.T) {
	t.Parallel()
	const mine = "{\r\n  \"theme\":   \"dark\"\r\n}"
	w := newWorld(t)
	name := w.Write(t, ".pi/agent/settings.json", mine)
	same := func(after string) {
		t.Helper()
		if data, err := os.ReadFile(name); err != nil || string(data) != mine {
			t.Errorf("after %s: %q, %v", after, data, err)
		}
	}
	w.Write(t, "break/claude-add", "fail")
	w.refused("install", "1.0.0", evidence.CodeClient, "it broke")
	same("an install that failed")
	must(t, os.RemoveAll(w.Path("break")))
	for step := 1; ; step++ {
		killed, said := w.kill("install", "1.0.0", step)
		if !killed {
			t.Fatal("there is no such step")
		}
		w.ok("uninstall", "1.0.0", install.Uninstalled)
		same(said)
		if strings.Contains(said, "Pi has written its settings") {
			break
		}
	}
	w.ok("install", "1.0.0", install.Installed)
	w.want(allExact)
	w.ok("disable", "1.0.0", install.Disabled)
	same("disable")
}
