package confine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/confine"
	"localmcp/internal/testenv"
)

// Confinement is for good and needs a build without cgo: every test runs a program of
// its own.
var (
	probe     = testenv.Program{Package: "./testdata/probe"}
	oldkernel = testenv.Program{Package: "./testdata/oldkernel"}
)

func TestMain(m *testing.M) {
	if os.Getenv(selfVariable) != "" {
		_, err := confine.Self(confine.Policy{})
		fmt.Println(err)
		os.Exit(0)
	}
	code := m.Run()
	probe.Remove()
	oldkernel.Remove()
	os.Exit(code)
}

// selfVariable makes the test binary confine itself.
const selfVariable = "CONFINE_TEST_SELF"

// A build with cgo, as the race detector makes one, cannot reach all of its threads. It
// says so instead of confining some of them.
func TestCgoIsRefused(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe)
	c.Env = []string{selfVariable + "=1", "GORACE=atexit_sleep_ms=0"}
	out, err := c.CombinedOutput()
	if string(out) == "<nil>\n" {
		t.Skip("this test binary has no cgo in it")
	}
	if err != nil || string(out) != "this build of the program cannot confine all of its threads\n" {
		t.Errorf("%v %s", err, out)
	}
}

// A place has a directory to read, one to write and a file outside, for one user.
type place struct {
	t                         testing.TB
	dir, read, write, outside string
	who                       *syscall.Credential
}

// nobody is an ordinary user that most systems know and no process here runs as.
const nobody = 65534

// eachUser runs a test as the user who runs it and, when that is root, as an ordinary
// one too.
func eachUser(t *testing.T, test func(t *testing.T, p *place)) {
	users := map[string]*syscall.Credential{"ordinary user": nil}
	if os.Geteuid() == 0 {
		users = map[string]*syscall.Credential{"root": nil, "ordinary user": {Uid: nobody, Gid: nobody}}
	}
	for name, who := range users {
		t.Run(name, func(t *testing.T) { test(t, newPlace(t, who)) })
	}
}

func newPlace(t testing.TB, who *syscall.Credential) *place {
	t.Helper()
	// Not t.TempDir: the directories above it are closed to another user.
	dir, err := os.MkdirTemp("", "confine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir, read: filepath.Join(dir, "read"), write: filepath.Join(dir, "write"), outside: filepath.Join(dir, "outside"), who: who}
	for _, d := range []string{p.read, p.write} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.put(filepath.Join(p.read, "a"), "what was said")
	p.put(p.outside, "a secret")
	for name, program := range map[string]*testenv.Program{"probe": &probe, "oldkernel": &oldkernel} {
		data, err := os.ReadFile(program.Path(t))
		if err != nil {
			t.Fatal(err)
		}
		testenv.Executable(t, filepath.Join(dir, name), data)
	}
	p.give()
	// What the machine itself cannot do cannot be seen there.
	if f := p.try(job{Policy: confine.Policy{System: []string{"/proc/self"}}}); f.Error != "" || f.State.Level != confine.Full {
		t.Skipf("this kernel does not confine in full: %q, Landlock ABI %d", f.Error, f.State.LandlockABI)
	}
	return p
}

func (p *place) put(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// give makes everything the user's.
func (p *place) give() {
	p.t.Helper()
	if p.who == nil {
		return
	}
	err := filepath.WalkDir(p.dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, int(p.who.Uid), int(p.who.Gid)))
	})
	if err != nil {
		p.t.Skipf("files cannot be given away here: %v", err)
	}
}

// command is a program of the place, run as its user.
func (p *place) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(p.t.Context(), filepath.Join(p.dir, name), args...)
	c.Dir, c.Env = p.dir, []string{"HOME=" + p.dir}
	if p.who != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: p.who}
	}
	return c
}

// The messages of testdata/probe.
type job struct {
	Policy  confine.Policy
	Trial   confine.Trial
	Threads int
	Open    []string
	Wait    string
	Int80   bool
}

type found struct {
	State    confine.State
	Error    string
	Verified string
	Attempts []confine.Attempt
	Status   map[string][]string
	Opened   map[string]string
	Extra    map[string]string
	Fds      []string
}

// job is what mooncite's workers are like.
func (p *place) job() job {
	return job{
		Policy: confine.Policy{Read: []string{p.read}, Write: []string{p.write}, System: []string{"/proc/self", "/no/such/file"}},
		Trial:  confine.Trial{Outside: []string{"/", "/etc/passwd", p.dir, p.outside}, Sources: []string{p.read}},
		Open:   []string{filepath.Join(p.read, "a"), p.outside, "/etc/passwd"},
	}
}

func (p *place) try(j job, wrap ...string) found {
	p.t.Helper()
	c := p.command("probe", "try", encode(p.t, j))
	if len(wrap) > 0 {
		c = p.command(wrap[0], append(wrap[1:], c.Args...)...)
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil && !j.Int80 {
		p.t.Fatalf("%v\n%s%s", err, out, &errs)
	}
	return decode(p.t, out)
}

func encode(t testing.TB, j job) string {
	t.Helper()
	data, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func decode(t testing.TB, out []byte) found {
	t.Helper()
	var f found
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return f
}

// denied wants every attempt to have failed.
func (f found) denied(t *testing.T) {
	t.Helper()
	if f.Error != "" || f.Verified != "" || len(f.Attempts) < 45 {
		t.Fatalf("%q %q, %d attempts", f.Error, f.Verified, len(f.Attempts))
	}
	for _, a := range f.Attempts {
		if !a.Denied {
			t.Errorf("%s: not denied (%q)", a.Name, a.Err)
		}
	}
}

const (
	permitted = ""
	refused   = "permission denied"       // by Landlock
	filtered  = "operation not permitted" // by the filter
)

// Everything is denied, on threads that were there before and on later ones, and what
// the program is for still works.
func TestDenied(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		before := testenv.Fingerprint(t, p.read)
		j := p.job()
		j.Threads = 24
		f := p.try(j)
		f.denied(t)
		const none = "0000000000000000"
		want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none}
		for name, value := range want {
			values := f.Status[name]
			if len(values) < j.Threads {
				t.Errorf("%s of %d threads only", name, len(values))
			}
			for _, v := range values {
				if v != value {
					t.Errorf("a thread has %s %s", name, v)
				}
			}
		}
		for what, want := range map[string]string{
			"net.Dial tcp": filtered, "net.Dial udp": filtered, "net.Dial unix": filtered, "net.Listen": filtered, "exec": filtered,
			"chmod": filtered, "chtimes": filtered, "truncate": filtered, "link": filtered,
			"rename": refused, "remove": refused, "write": refused, "create": refused,
			"dumpable": "0 0", "core": "0 0 bytes",
			"state": permitted, "mkdir in state": filtered, "symlink in state": filtered,
		} {
			if got, there := f.Extra[what]; got != want || !there {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		for name, want := range map[string]string{j.Open[0]: permitted, p.outside: refused, "/etc/passwd": refused} {
			if f.Opened[name] != want {
				t.Errorf("opening %s: %q, want %q", name, f.Opened[name], want)
			}
		}
		if after := testenv.Fingerprint(t, p.read); after != before {
			t.Errorf("the sources changed:\n%s\n%s", before, after)
		}
		if f.State.Level != confine.LevelOf(f.State.LandlockABI) || !f.State.Seccomp || f.State.Held[p.read].Ino == 0 {
			t.Errorf("%+v", f.State)
		}
	})
}

// Rules belong to directories, not to their names.
func TestReplacedDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *place) error
		at     func(p *place) string
		want   string
	}{
		"replaced": {func(p *place) error {
			return errors.Join(os.Rename(p.read, p.read+"-old"), os.Mkdir(p.read, 0o700), os.WriteFile(filepath.Join(p.read, "a"), nil, 0o600))
		}, func(p *place) string { return p.read }, refused},
		"renamed": {func(p *place) error { return os.Rename(p.read, p.read+"-new") },
			func(p *place) string { return p.read + "-new" }, permitted},
		"a link now": {func(p *place) error {
			return errors.Join(os.RemoveAll(p.read), os.Symlink(p.dir+"/elsewhere", p.read))
		}, func(p *place) string { return p.read }, refused},
	} {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T, p *place) {
				elsewhere := filepath.Join(p.dir, "elsewhere")
				if err := os.Mkdir(elsewhere, 0o700); err != nil {
					t.Fatal(err)
				}
				p.put(filepath.Join(elsewhere, "a"), "a secret")
				p.give()
				j := p.job()
				j.Wait, j.Open = "ready", []string{filepath.Join(c.at(p), "a")}
				cmd := p.command("probe", "try", encode(t, j))
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(out)
				if line, err := r.ReadString('\n'); line != "ready\n" {
					t.Fatal(line, err)
				}
				if err := c.change(p); err != nil {
					t.Fatal(err)
				}
				p.give()
				if _, err := io.WriteString(in, "go\n"); err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(r)
				if err = errors.Join(err, cmd.Wait()); err != nil {
					t.Fatal(err)
				}
				if got := decode(t, rest).Opened[j.Open[0]]; got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// A link where a directory was said to be is not followed.
func TestLinkIsNoRoot(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		link := filepath.Join(p.dir, "link")
		if err := os.Symlink(p.dir, link); err != nil {
			t.Fatal(err)
		}
		j := p.job()
		j.Policy.Read = append(j.Policy.Read, link, filepath.Join(p.dir, "missing"))
		f := p.try(j)
		f.denied(t)
		if _, held := f.State.Held[link]; held || f.State.Held[filepath.Join(p.dir, "missing")] != (confine.ID{}) {
			t.Errorf("%v", f.State.Held)
		}
	})
}

// Descriptors that were left open by who started the program are closed.
func TestInheritedDescriptors(t *testing.T) {
	p := newPlace(t, nil)
	secret, err := os.Open(p.outside)
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	c := p.command("probe", "try", encode(t, p.job()))
	c.ExtraFiles = slices.Repeat([]*os.File{secret}, 40)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if f := decode(t, out); len(f.Fds) > 20 {
		t.Errorf("of 40 inherited descriptors too many are left: %v", f.Fds)
	}
}

// A 32-bit call ends the process before it does anything.
func TestForeignCallKills(t *testing.T) {
	if confine.AuditArch != 0xc000003e {
		t.Skip("only amd64 has a second door")
	}
	p := newPlace(t, nil)
	j := p.job()
	j.Int80 = true
	c := p.command("probe", "try", encode(t, j))
	err := c.Run()
	ws, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() || ws.Signal() != syscall.SIGSYS {
		t.Errorf("%v", err)
	}
}

// A kernel that can do less is used as far as it goes, and what is lost is said.
func TestOldKernels(t *testing.T) {
	for profile, want := range map[string]confine.State{
		"no-landlock": {Level: confine.None, LandlockABI: 0, Seccomp: true},
		"container":   {Level: confine.None, LandlockABI: 0, Seccomp: true},
		"landlock=1":  {Level: confine.Partial, LandlockABI: 1, Seccomp: true},
		"landlock=2":  {Level: confine.Partial, LandlockABI: 2, Seccomp: true},
		"landlock=4":  {Level: confine.Partial, LandlockABI: 4, Seccomp: true},
		"landlock=5":  {Level: confine.Partial, LandlockABI: 5, Seccomp: true},
		"landlock=6":  {Level: confine.Full, LandlockABI: 6, Seccomp: true},
	} {
		t.Run(profile, func(t *testing.T) {
			eachUser(t, func(t *testing.T, p *place) {
				j := p.job()
				if want.LandlockABI == 0 {
					j.Trial = confine.Trial{}
				}
				f := p.try(j, "oldkernel", profile)
				if f.Error != "" || f.Verified != "" {
					t.Fatal(f.Error, f.Verified)
				}
				for _, a := range f.Attempts {
					if !a.Denied {
						t.Errorf("%s: not denied (%q)", a.Name, a.Err)
					}
				}
				if f.State.Level != want.Level || f.State.LandlockABI != want.LandlockABI || !f.State.Seccomp {
					t.Errorf("%+v", f.State)
				}
			})
		})
	}
	t.Run("no-seccomp", func(t *testing.T) {
		eachUser(t, func(t *testing.T, p *place) {
			if f := p.try(p.job(), "oldkernel", "no-seccomp"); !strings.Contains(f.Error, "seccomp") {
				t.Errorf("%+v", f)
			}
		})
	})
}

func (p *place) supervise(how string) (stdout string, status int, took time.Duration) {
	p.t.Helper()
	begin := time.Now()
	c := p.command("probe", "supervise", how)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || errs.Len() > 0 {
		p.t.Fatalf("%v %s", err, &errs)
	}
	return string(out), c.ProcessState.ExitCode(), time.Since(begin)
}

// A worker that asks for it is replaced, and what it left is handed on.
func TestWorkerIsReplaced(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		out, status, _ := p.supervise("again")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if status != 7 || len(lines) != 3 {
			t.Fatalf("status %d\n%s", status, out)
		}
		for i, line := range lines {
			if !strings.HasSuffix(line, fmt.Sprintf("letter %q", strings.Repeat("x", i))) {
				t.Errorf("worker %d says %s", i, line)
			}
		}
	})
}

// One that was killed is not replaced: a crash must not loop.
func TestKilledWorker(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		out, status, _ := p.supervise("die")
		if status != 9 || strings.Count(out, "letter") != 1 || !strings.Contains(out, "signal 9 (killed)") {
			t.Errorf("status %d\n%s", status, out)
		}
	})
}

// A supervisor that is told to end takes its worker along, also one that just wanted
// another in its place.
func TestStoppedSupervisor(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		for _, how := range []string{"stop", "stop and again"} {
			out, status, took := p.supervise(how)
			if status != 0 || took > 2*time.Second || strings.Count(out, "letter") != 1 {
				t.Errorf("%s: status %d after %v\n%s", how, status, took, out)
			}
		}
	})
}

// A worker does not outlive its supervisor, however that ends.
func TestKilledSupervisor(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		c := p.command("probe", "supervise", "wait")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.Fields(line)[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		for end := time.Now().Add(2 * time.Second); !gone(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the worker is still there")
			}
		}
	})
}

// gone reports whether a process has ended; what waits to be reaped has.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

// A supervisor runs itself and nothing else, makes no socket and writes nowhere.
func TestSupervisorIsConfined(t *testing.T) {
	eachUser(t, func(t *testing.T, p *place) {
		out, err := p.command("probe", "exec", filepath.Join(p.write, "new")).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"confined: <nil>\n", "other: permission denied\n", "own: <nil>\n", "operation not permitted\n", "write: open " + p.write + "/new: permission denied\n"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
}

// A worker that somebody starts by hand does nothing.
func TestWorkerWithoutSupervisor(t *testing.T) {
	p := newPlace(t, nil)
	c := p.command("probe", "worker", "wait")
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Run(); err == nil || !strings.Contains(errs.String(), "supervisor") {
		t.Errorf("%v %s", err, &errs)
	}
}
