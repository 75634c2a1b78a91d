package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/testenv"
)

// Attacks are tried by a program of their own, in sandboxes that another program makes: as
// root and as an ordinary user, at every level, under kernels that seem older. The first
// line of each test's comment says what it tries and what must come of it; docs/security.md
// has a table of them.

var (
	runner    = testenv.Program{Package: "./testdata/place", Tags: "weak"}
	attacker  = testenv.Program{Package: "./testdata/attack"}
	oldkernel = testenv.Program{Package: "localmcp/internal/confine/testdata/oldkernel"}

	shared struct {
		sync.Once
		dir string
		err error
	}
)

// programs is a directory that everybody can read with the programs of these tests.
func programs(t testing.TB) string {
	t.Helper()
	paths := map[string]string{"place": runner.Path(t), "attack": attacker.Path(t), "oldkernel": oldkernel.Path(t)}
	shared.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "sandbox-programs-"); shared.err != nil {
			return
		}
		shared.err = os.Chmod(shared.dir, 0o755)
		for name, path := range paths {
			data, err := os.ReadFile(path)
			if err == nil {
				testenv.Executable(t, filepath.Join(shared.dir, name), data)
				err = os.Chmod(filepath.Join(shared.dir, name), 0o755)
			}
			shared.err = errors.Join(shared.err, err)
		}
	})
	must(t, shared.err)
	return shared.dir
}

// The messages of testdata/place.
type job struct {
	Root, Cache, Home  string
	Path, Hidden, Read []string
	Secrets, Git       []string
	Fixed, Closed      []string
	Find               bool
	SecretsAfter       []string
	Only               sandbox.Isolation
	Without            string
	Spec               spec
	Say, Input         string
	KillOn, Terminate  string
	Hangup             string
	Leak               []string
	Most               int
	Look               []string
	Times              int
	Hold               bool
}

type spec struct {
	Args, Env []string
	Dir       string
	Mode      sandbox.Mode
	Network   sandbox.Network
	ReadOnly  bool
	Terminal  *sandbox.Size
	Script    string
}

type answer struct {
	Code, Text, Cause string
	Exit              sandbox.Exit
	Isolation         sandbox.Isolation
	Notes             []string
	Hidden            int
	Out               string
	Bytes             int
	Report            sandbox.Report
	Looked            map[string]string
	Started, Took     time.Duration
	End               time.Duration
	Begun             bool
	Pid               int
}

// A ground is where attacks are tried: a workspace, what is outside of it, a user, a level.
type ground struct {
	t                          testing.TB
	dir, root, outside, secret string
	who                        *syscall.Credential // nil: the one who runs the tests
	level                      sandbox.Isolation
	wrap                       []string // an older kernel
	root0                      bool     // the user is root
}

// nobody is an ordinary user that most systems know and no process here runs as.
const nobody = 65534

var (
	atFull  = []sandbox.Isolation{sandbox.Full}
	walled  = []sandbox.Isolation{sandbox.Full, sandbox.Bwrap}
	reduced = []sandbox.Isolation{sandbox.Reduced}
	allOf   = []sandbox.Isolation{sandbox.Full, sandbox.Bwrap, sandbox.Reduced}
)

// users runs a test as the user who runs the tests and, when that is root, as an ordinary
// one too.
func users(t *testing.T, test func(t *testing.T, g *ground)) {
	who := map[string]*syscall.Credential{"user": nil}
	if os.Geteuid() == 0 {
		who = map[string]*syscall.Credential{"root": nil, "user": {Uid: nobody, Gid: nobody}}
	}
	for _, name := range slices.Sorted(maps.Keys(who)) {
		t.Run(name, func(t *testing.T) { test(t, newGround(t, who[name])) })
	}
}

// each runs a test as each user at each level.
func each(t *testing.T, levels []sandbox.Isolation, test func(t *testing.T, g *ground)) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			if level == sandbox.Bwrap {
				if _, err := exec.LookPath("bwrap"); err != nil {
					t.Skip("bubblewrap is not installed")
				}
			}
			users(t, func(t *testing.T, g *ground) {
				g.level = level
				g.available()
				test(t, g)
			})
		})
	}
}

// available skips a test where the machine cannot do what it is about. What it cannot do is
// looked for once.
func (g *ground) available() {
	g.t.Helper()
	key := name("%s %v", g.level, g.root0)
	why, known := can.Load(key)
	if !known {
		j := job{Spec: spec{Args: []string{"/bin/true"}}}
		if g.level == sandbox.None {
			j.Spec.Mode = sandbox.Off
		}
		a := g.run(j)
		why = ""
		if a.Code == "NOT_SUPPORTED" {
			why = a.Text
		}
		can.Store(key, why)
	}
	if why != "" {
		g.t.Skip(why)
	}
}

// can is why levels cannot be had, by level and user.
var can sync.Map

func newGround(t testing.TB, who *syscall.Credential) *ground {
	t.Helper()
	// Not t.TempDir: the directories above it are closed to another user.
	dir, err := os.MkdirTemp("", "sandbox-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	g := &ground{t: t, dir: dir, root: dir + "/work", outside: dir + "/outside", secret: dir + "/outside/secret", who: who, level: sandbox.Full}
	g.root0 = os.Geteuid() == 0 && who == nil
	for _, d := range []string{g.root, g.outside, g.dir + "/state"} {
		must(t, os.Mkdir(d, 0o755))
	}
	g.put(g.secret, "a secret")
	g.put(g.root+"/file", "a file")
	g.give()
	return g
}

func (g *ground) put(path, text string) {
	g.t.Helper()
	must(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(g.t, os.WriteFile(path, []byte(text), 0o644))
}

// give makes everything the user's.
func (g *ground) give() {
	g.t.Helper()
	if g.who == nil {
		return
	}
	must(g.t, filepath.WalkDir(g.dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, int(g.who.Uid), int(g.who.Gid)))
	}))
}

// mark is in the environment of every command of a ground.
func (g *ground) mark() string { return "GROUND=" + g.dir }

// fill completes a job.
func (g *ground) fill(j job) job {
	g.t.Helper()
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&j.Root, g.root)
	set(&j.Cache, g.dir+"/state/cache")
	set(&j.Home, g.dir+"/home")
	set(&j.Spec.Dir, j.Root)
	if j.Path == nil {
		j.Path = filepath.SplitList(os.Getenv("PATH"))
	}
	j.Read = append(j.Read, programs(g.t))
	j.Hidden = append(j.Hidden, g.dir+"/state")
	switch j.Only {
	case "":
		j.Only = g.level
	case "any":
		j.Only = ""
	}
	if j.Spec.Mode == "" {
		j.Spec.Mode = sandbox.Prefer
	}
	if j.Spec.Env == nil {
		j.Spec.Env = []string{"PATH=" + strings.Join(j.Path, ":"), "LANG=C.UTF-8"}
	}
	j.Spec.Env = append(j.Spec.Env, g.mark())
	return j
}

// A server is a running testdata/place.
type server struct {
	t    testing.TB
	cmd  *exec.Cmd
	from *json.Decoder
	errs bytes.Buffer
}

func (g *ground) serve(j job) *server {
	g.t.Helper()
	text, err := json.Marshal(g.fill(j))
	must(g.t, err)
	args := append(slices.Clone(g.wrap), programs(g.t)+"/place")
	s := &server{t: g.t, cmd: exec.Command(args[0], args[1:]...)}
	s.cmd.Dir, s.cmd.Env = "/", []string{"LEAK_TOKEN=of-the-server", "SSH_AUTH_SOCK=/run/agent", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus"}
	s.cmd.Stdin, s.cmd.Stderr = bytes.NewReader(text), &s.errs
	if g.who != nil {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: g.who}
	}
	out, err := s.cmd.StdoutPipe()
	must(g.t, err)
	must(g.t, s.cmd.Start())
	// What hangs fails by itself.
	late := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	g.t.Cleanup(func() { late.Stop() })
	g.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.from = json.NewDecoder(out)
	return s
}

// next is the next answer.
func (s *server) next() answer {
	s.t.Helper()
	var a answer
	if err := s.from.Decode(&a); err != nil {
		_ = s.cmd.Wait()
		s.t.Fatalf("%v: %v %s", err, s.cmd.ProcessState, &s.errs)
	}
	return a
}

// last is the answer after which there is none.
func (s *server) last() answer {
	s.t.Helper()
	for {
		if a := s.next(); !a.Begun {
			return a
		}
	}
}

// run runs a job to its end.
func (g *ground) run(j job) answer {
	g.t.Helper()
	s := g.serve(j)
	a := s.last()
	if err := s.cmd.Wait(); err != nil {
		g.t.Fatal(err, &s.errs)
	}
	return a
}

// ran wants the command to have run, at the level of the ground.
func (g *ground) ran(j job) answer {
	g.t.Helper()
	a := g.run(j)
	if a.Code != "" || a.Isolation != g.level {
		g.t.Fatalf("%s: %s (%s); %v; isolation %q", a.Code, a.Text, a.Cause, a.Report.Reasons, a.Isolation)
	}
	return a
}

// refused wants the command not to have run.
func (g *ground) refused(j job, code string) answer {
	g.t.Helper()
	a := g.run(j)
	if a.Code != code {
		g.t.Errorf("%q %s (%s), want %s; %+v %s", a.Code, a.Text, a.Cause, code, a.Exit, a.Out)
	}
	return a
}

// sh is a job that runs a script.
func sh(script string) job { return job{Spec: spec{Args: []string{"/bin/sh", "-c", script}}} }

// attempts are the arguments of testdata/attack; words are apart by bars.
func attempts(g *ground, lines ...string) []string {
	args := []string{programs(g.t) + "/attack"}
	for _, line := range lines {
		text, err := json.Marshal(strings.Split(line, "|"))
		must(g.t, err)
		args = append(args, string(text))
	}
	return args
}

// got reads what attempts came to.
func got(t testing.TB, out string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var a struct{ Name, Got string }
		switch err := d.Decode(&a); {
		case err == io.EOF:
			return all
		case err != nil:
			t.Fatalf("%v in %s", err, out)
		}
		all[a.Name] = a.Got
	}
}

// A try is an attempt and what must come of it, by a regular expression of the whole.
type try struct{ attempt, want string }

// tries makes attempts in a sandbox.
func (g *ground) tries(j job, list ...try) answer {
	g.t.Helper()
	var lines []string
	for _, x := range list {
		lines = append(lines, x.attempt)
	}
	j.Spec.Args = attempts(g, lines...)
	a := g.ran(j)
	all := got(g.t, strings.ReplaceAll(a.Out, "\r\n", "\n"))
	for _, x := range list {
		what, there := all[strings.ReplaceAll(x.attempt, "|", " ")]
		if !there || !regexp.MustCompile("^(?s:"+x.want+")$").MatchString(what) {
			g.t.Errorf("%s: %q, want %s", x.attempt, what, x.want)
		}
	}
	if g.t.Failed() {
		g.t.Logf("%+v", a)
	}
	return a
}

// by is what is wanted at the levels with namespaces, and at the reduced one.
func (g *ground) by(walled, reduced string) string {
	if g.level == sandbox.Reduced {
		return reduced
	}
	return walled
}

// left are the processes of the ground's commands that run, by their environment.
func (g *ground) left() (list []string) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(g.t, err)
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(env, []byte(g.mark())) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			continue
		}
		cmd, _ := os.ReadFile(dir + "/cmdline")
		list = append(list, filepath.Base(dir)+" "+string(bytes.ReplaceAll(cmd, []byte{0}, []byte(" "))))
	}
	return list
}

// nothingLeft wants that, now.
func (g *ground) nothingLeft() {
	g.t.Helper()
	if list := g.left(); len(list) > 0 {
		g.t.Errorf("left: %s", list)
	}
}

// until polls a condition.
func until(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%s: not in 20 s", what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

func there(path string) func() bool {
	return func() bool {
		data, err := os.ReadFile(path)
		return err == nil && len(data) > 0
	}
}

// sibling is a process of the same user that is no command's.
func (g *ground) sibling() string {
	g.t.Helper()
	c := exec.Command("sleep", "600")
	c.Env = []string{"OTHER=of-a-sibling"}
	if g.who != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: g.who}
	}
	must(g.t, c.Start())
	g.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return strconv.Itoa(c.Process.Pid)
}

func name(format string, args ...any) string { return fmt.Sprintf(format, args...) }
