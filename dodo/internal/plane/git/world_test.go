package git_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/git"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/testenv"
)

// world is a home with a workspace in it, and real git beside the operations.
type world struct {
	t    testing.TB
	home *testenv.Home
	root string
	git  *git.Service
}

// newWorld makes the workspace tree, without a repository. change may change what the service
// stands on.
func newWorld(t testing.TB, rel string, change ...func(*git.Config)) *world {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("commands run on Linux only")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := &world{t: t, home: testenv.NewHome(t)}
	w.home.Set("GIT_CONFIG_NOSYSTEM", "1")
	w.home.Set("GIT_ALLOW_PROTOCOL", "file")
	w.home.Set("GIT_EDITOR", ":")
	w.home.Write(t, ".gitconfig", "[user]\nname = Ada Example\nemail = ada@example.com\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n[advice]\ndetachedHead = false\n")
	w.root = w.home.Path(rel)
	for _, dir := range []string{w.root, w.home.Path("cache")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.serve(nil, change...)
	return w
}

// helper builds the walls: this test binary may be one with cgo, which cannot.
var helper = testenv.Program{Package: "localmcp/dodo/internal/ground/sandbox/testdata/helper"}

func TestMain(m *testing.M) {
	code := m.Run()
	helper.Remove()
	os.Exit(code)
}

// serve makes the service anew.
func (w *world) serve(fail func(string) error, change ...func(*git.Config)) {
	w.t.Helper()
	tree, err := workspace.Open(w.root, workspace.Options{AllowUnsafe: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = tree.Close() })
	box := sandbox.New(sandbox.Options{Path: filepath.SplitList(os.Getenv("PATH")), Home: w.home.Dir, Helper: helper.Path(w.t)})
	place := box.Place(w.root, w.home.Path("cache"), nil)
	c := git.Config{Tree: tree, Place: place, Limits: contract.DefaultLimits(), Home: w.home.Dir, Hidden: []string{w.home.Path("installation")}}
	for _, f := range change {
		f(&c)
	}
	w.git = git.Tested(c, fail)
}

// repo makes the workspace a repository with one commit of README.
func repo(t testing.TB, change ...func(*git.Config)) *world {
	t.Helper()
	w := newWorld(t, "tree", change...)
	w.run("init", "-q")
	w.write("README", "one\ntwo\nthree\n")
	w.run("add", ".")
	w.run("commit", "-qm", "first")
	return w
}

// run is plain git, as the owner has it.
func (w *world) run(args ...string) string {
	w.t.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("git %q: %v", args, err)
	}
	return out
}

func (w *world) try(args ...string) (string, error) { return w.in(w.root, args...) }

func (w *world) in(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.home.Environ()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(err.Error() + ": " + errs.String())
	}
	return string(out), err
}

func (w *world) write(name, text string) {
	w.t.Helper()
	full := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// act prepares an operation, as the gate does.
func (w *world) act(name string, args any) (contract.Prepared, error) {
	w.t.Helper()
	raw, err := op.Encode(args)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range w.git.Ops() {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(raw)
		if err != nil {
			return contract.Prepared{}, err
		}
		return b.Prepare(context.Background(), contract.Call{Principal: contract.LocalOwner()})
	}
	w.t.Fatal("no operation " + name)
	return contract.Prepared{}, nil
}

// answer is what an operation gave.
type answer struct {
	m         map[string]any
	warnings  []string
	truncated bool
}

func (w *world) call(name string, args any) (answer, error) {
	w.t.Helper()
	p, err := w.act(name, args)
	if err != nil {
		return answer{}, err
	}
	r := p.Done
	if r == nil {
		one, err := p.Run(context.Background())
		if err != nil {
			return answer{}, err
		}
		r = &one
	}
	for _, o := range w.git.Ops() {
		if o.Name != name {
			continue
		}
		if envelope, err := contract.Success("ws_1", "boot_1", *r).JSON(); err != nil || o.Fits(envelope) != nil {
			w.t.Fatalf("%s does not answer as it says: %v, %v", name, err, o.Fits(envelope))
		}
	}
	a := answer{warnings: r.Warnings, truncated: r.Truncated}
	raw, err := op.Encode(r.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &a.m); err != nil {
		w.t.Fatal(err)
	}
	return a, nil
}

type args map[string]any

func (w *world) must(name string, a any) answer {
	w.t.Helper()
	out, err := w.call(name, a)
	if err != nil {
		f := fault.From(err)
		w.t.Fatalf("%s %v: %s: %v %v (%v)", name, a, f.Code, err, f.Detail, f.Err)
	}
	return out
}

// refused makes a call that must fail with a code.
func (w *world) refused(code fault.Code, name string, a any) *fault.Error {
	w.t.Helper()
	_, err := w.call(name, a)
	f := fault.From(err)
	if err == nil || f.Code != code || f.Hint == "" {
		w.t.Fatalf("%s %v: %v, hint %q; want %s", name, a, err, fault.From(err), code)
	}
	return f
}

// status is a status as lines, "XY path" or "XY path<orig".
func (w *world) status() (lines []string) {
	w.t.Helper()
	for _, e := range w.must("git_status", args{}).m["entries"].([]any) {
		e := e.(map[string]any)
		line := e["status"].(string) + " " + e["path"].(string)
		if orig, is := e["origPath"]; is {
			line += "<" + orig.(string)
		}
		lines = append(lines, line)
	}
	return lines
}

func has(list []string, part string) bool {
	for _, s := range list {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
