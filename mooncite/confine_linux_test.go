package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/confine"
	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/testdata/attempts"
)

// A probed process's own report; see probe_on.go.
type probed struct {
	Confinement engine.Confinement
	Attempts    []confine.Attempt
	Report      attempts.Report
	Recall      engine.RecallOut
}

// eachUser runs a test in a world of the user who runs it and, when that is root, in one
// of an ordinary user.
func eachUser(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	if st := newWorld(t).status().Confinement; st.Level != string(confine.Full) {
		t.Skipf("this kernel does not confine in full: %+v", st)
	}
	t.Run("this user", func(t *testing.T) { t.Parallel(); test(t, sampleWorld(t)) })
	if os.Geteuid() != 0 {
		return
	}
	t.Run("ordinary user", func(t *testing.T) {
		t.Parallel()
		w := sampleWorld(t)
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("there is no setpriv here")
		}
		id := strconv.Itoa(int(w.nobody().Uid))
		w.wrap = []string{setpriv, "--reuid", id, "--regid", id, "--clear-groups"}
		test(t, w)
	})
}

// give makes everything in a world of an ordinary user that user's.
func (w *world) give() {
	w.t.Helper()
	if w.wrap == nil {
		return
	}
	if _, err := w.away(); err != nil {
		w.t.Fatal(err)
	}
}

// with is the world with another program in it.
func (w *world) with(program *testenv.Program) *world {
	w.t.Helper()
	other := *w
	other.path = filepath.Join(w.Path("tmp"), filepath.Base(filepath.Dir(program.Path(w.t))))
	testenv.Executable(w.t, other.path, []byte(read(w.t.(*testing.T), program.Path(w.t))))
	w.give()
	return &other
}

// aSource is a file of a root, of the sample histories.
const aSource = ".codex/sessions"

func (w *world) source() string {
	w.t.Helper()
	found := ""
	err := filepath.WalkDir(w.Path(aSource), func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".jsonl") {
			found = name
		}
		return err
	})
	if err != nil || found == "" {
		w.t.Fatal("no source", err)
	}
	return found
}

func (w *world) probe() probed {
	w.t.Helper()
	r := w.with(&probing).must(0, "probe", "--file", w.source())
	out := decode[probed](w.t, r.stdout)
	if out.Recall.Outcome != "matches" || out.Confinement.Level != string(confine.Full) || !out.Confinement.Seccomp {
		w.t.Errorf("%+v %s", out.Confinement, out.Recall.Text())
	}
	return out
}

const (
	byFilter   = "operation not permitted"
	byLandlock = "permission denied"
)

// denied wants every attempt to have met the kernel's refusal.
func denied(t *testing.T, what map[string]string, n int) {
	t.Helper()
	if len(what) < n {
		t.Errorf("%d attempts only: %v", len(what), what)
	}
	for name, got := range what {
		if !strings.Contains(got, byFilter) && got != byLandlock {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Cases 79 to 86 of the threat model: the numbers are its own.

// No connection of any kind is opened by whatever in the process tries.
func TestCase79Network(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		out := w.probe()
		denied(t, out.Report.Network, 9)
		if len(out.Attempts) < 16*45 {
			t.Errorf("%d attempts only", len(out.Attempts))
		}
		for _, a := range out.Attempts {
			if !a.Denied {
				t.Errorf("%s: %q", a.Name, a.Err)
			}
		}
	})
}

// No program is started and no memory becomes one.
func TestCase80Programs(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) { denied(t, w.probe().Report.Programs, 5) })
}

// Nothing in a root is changed, also by a whole index and a rebuild.
func TestCase81Sources(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		roots := []string{".pi", ".omp", ".claude", ".codex", "incoming"}
		var before []string
		for _, r := range roots {
			before = append(before, testenv.Fingerprint(t, w.Path(r)))
		}
		tried := w.probe().Report.Sources
		if tried["reading"] != "" || tried["ftruncate"] != "invalid argument" { // the file is open for reading only
			t.Errorf("%v", tried)
		}
		delete(tried, "ftruncate")
		denied(t, tried, 12)
		w.must(0, "rebuild")
		for i, r := range roots {
			if after := testenv.Fingerprint(t, w.Path(r)); after != before[i] {
				t.Errorf("%s changed:\n%s\n%s", r, before[i], after)
			}
		}
	})
}

// Every thread is confined, also those that came later and sit in system calls.
func TestCase82Threads(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		r := w.probe().Report
		if r.Count < 100 || r.Blocked != 100 { // the report counted them
			t.Errorf("%d threads, %d blocked", r.Count, r.Blocked)
		}
		const none = "0000000000000000"
		for name, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none} {
			if got := r.Threads[name]; len(got) != 1 || got[0] != want {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

// SQLite does all it has to, in two processes on one file.
func TestCase83SQLite(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		w.must(0, "recall", "ECONNRESET")
		p := w.with(&probing)
		var all sync.WaitGroup
		outs := make([]ran, 2)
		for i := range outs {
			c := p.command(t.Context(), "probe", "--file", w.source())
			all.Go(func() {
				out, err := c.Output()
				outs[i] = ran{status: c.ProcessState.ExitCode(), stdout: string(out), stderr: fmt.Sprint(err)}
			})
		}
		all.Wait()
		for _, r := range outs {
			if r.status != 0 {
				t.Fatalf("%+v", r)
			}
			did := decode[probed](t, r.stdout).Report.SQLite
			if len(did) != 6 {
				t.Errorf("%v", did)
			}
			for name, problem := range did {
				if problem != "" {
					t.Errorf("%s: %s", name, problem)
				}
			}
		}
	})
}

// A database of another program in a root is none of the five histories, in whatever state
// it is: open with a log, with a log that was left behind, closed. It is not opened, not
// locked, and nothing of it is found; under a name that histories have it is a damaged one.
func TestCase84ForeignDatabases(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	dir := filepath.Dir(w.source())
	files := decode[engine.StatusOut](t, w.must(0, "status", "--json").stdout).SourceFilesByOrigin.Codex
	open := func(name string) *sql.DB {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, name)+"?_pragma=journal_mode(wal)")
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"CREATE TABLE t (x)", "INSERT INTO t VALUES ('zanzibar telegram')"} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		return db
	}
	live := open("live.sqlite")
	defer live.Close()
	if err := open("closed.sqlite").Close(); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{
		"left.sqlite": "live.sqlite", "left.sqlite-wal": "live.sqlite-wal",
		"one.jsonl": "live.sqlite", "one.jsonl-wal": "live.sqlite-wal", "log.jsonl": "live.sqlite-wal", "closed.jsonl": "closed.sqlite",
	} {
		data := read(t, filepath.Join(dir, from))
		if strings.HasSuffix(to, ".jsonl") {
			data += "\n" // what has no end yet is not looked at
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"closed.sqlite-wal", "left.sqlite-shm"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Fatalf("%s is there, so the state is another than meant", name)
		}
	}
	before := testenv.Fingerprint(t, dir)
	if r := w.run("rebuild"); r.status != 0 && r.status != exitDegraded {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	if out := w.recall("zanzibar telegram"); len(out.Candidates) > 0 {
		t.Errorf("%s", out.Text())
	}
	// Those under a history's name were looked at, and no other.
	st := decode[engine.StatusOut](t, w.run("status", "--json").stdout)
	if got := st.SourceFilesByOrigin.Codex - files; got != 3 || st.Malformed < 3 {
		t.Errorf("%d files more, %s", got, st.Text())
	}
	if after := testenv.Fingerprint(t, dir); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

// worker is the process of a server that reads histories.
func (c *client) worker() int {
	c.t.Helper()
	supervisor := c.Cmd.Process.Pid
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
		for _, name := range tasks {
			data, err := os.ReadFile(name)
			if f := strings.Fields(string(data)); err == nil && len(f) == 1 {
				pid, err := strconv.Atoi(f[0])
				if err != nil {
					c.t.Fatal(err)
				}
				return pid
			}
		}
		if time.Now().After(end) {
			c.t.Fatalf("the server has no worker\n%s", c.Stderr())
		}
	}
}

// eras open a session, and give what a call's parameters need besides.
var eras = map[string]struct {
	open func(c *client)
	more string
}{
	"initialize": {func(c *client) {
		c.Call("initialize", initialize)
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}, ""},
	"2026-07-28": {func(c *client) { c.Call("server/discover", discover) }, "," + meta},
}

// recallIn is recall in one of the eras.
func (c *client) recallIn(more, query string) engine.RecallOut {
	c.t.Helper()
	r := result[toolResult](c.t, c.Call("tools/call", `{"name":"`+engine.ToolRecall+`","arguments":{"query":`+quoted(query)+`}`+more+`}`))
	if r.IsError {
		c.t.Fatalf("%+v", r)
	}
	return decode[engine.RecallOut](c.t, string(r.Data))
}

// A root that is added while a client is connected is read at the next request, by
// another worker, and the client sees nothing of that. One that is taken away cannot be
// read any more.
func TestSourceAddWhileConnected(t *testing.T) {
	t.Parallel()
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T, w *world) {
				old := &chat{origin: evidence.Claude, session: "ef070e01-e148-4182-8c76-e5995c050009", rel: "old/project/ef070e01-e148-4182-8c76-e5995c050009.jsonl"}
				w.start(old, "The registered root speaks.")
				w.give()
				c := w.startServer()
				era.open(c)
				if out := c.recallIn(era.more, "ECONNRESET"); out.Outcome != "matches" && out.Outcome != "inconclusive" {
					t.Errorf("%s", out.Text())
				}
				first := c.worker()
				c.recallIn(era.more, "ECONNRESET")
				if c.worker() != first {
					t.Error("the worker was replaced for nothing")
				}
				w.must(0, "source", "add", "claude-code", w.Path("old"))
				// Several requests at once, so that some wait while the workers change.
				var ids []string
				for range 5 {
					ids = append(ids, c.Request("tools/call", `{"name":"`+engine.ToolRecall+`","arguments":{"query":"registered root speaks"}`+era.more+`}`))
				}
				for _, id := range ids {
					out := decode[engine.RecallOut](t, string(result[toolResult](t, c.Await(id)).Data))
					if _, ok := holding(out, "registered root"); !ok && out.Conclusive {
						t.Errorf("%s", out.Text())
					}
				}
				for end := time.Now().Add(20 * time.Second); ; {
					out := c.recallIn(era.more, "registered root speaks")
					if _, ok := holding(out, "registered root"); ok {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("%s", out.Text())
					}
				}
				second := c.worker()
				if second == first {
					t.Error("the worker was not replaced")
				}
				w.must(0, "source", "remove", "claude-code", w.Path("old"))
				for end := time.Now().Add(20 * time.Second); ; {
					out := c.recallIn(era.more, "registered root speaks")
					if _, ok := holding(out, "registered root"); !ok {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("%s", out.Text())
					}
				}
				if c.worker() == second {
					t.Error("the worker kept the right to a root that was taken away")
				}
				c.CloseInput()
				if err := c.WaitExit(2 * time.Second); err != nil {
					t.Error(err)
				}
				for _, m := range c.Rest() {
					t.Errorf("one message too many: %+v", m)
				}
			})
		})
	}
}

// A root that was replaced is read anew; one that was renamed is gone and comes back; one
// that became a link is refused.
func TestCase85ChangedRoots(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		list := chats()
		codex := list[3]
		w.start(codex, "The first root of codex speaks.")
		w.give()
		c := w.serve()
		c.finds("first root of codex")
		first := c.worker()
		root := w.Path(".codex/sessions")
		do := func(errs ...error) {
			t.Helper()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		}
		// Renamed and back: the rule stays with the directory.
		do(os.Rename(root, root+"-away"))
		c.settles("first root of codex", func(o engine.RecallOut) bool {
			x, ok := holding(o, "first root")
			return ok && !x.SourcePresent
		})
		do(os.Rename(root+"-away", root))
		c.settles("first root of codex", func(o engine.RecallOut) bool {
			x, ok := holding(o, "first root")
			return ok && x.SourcePresent && o.Conclusive
		})
		if c.worker() != first {
			t.Error("a root that went and came cost a worker")
		}
		// Another directory of the same name.
		do(os.Rename(root, root+"-away"))
		codex.rel = strings.ReplaceAll(codex.rel, "/14/", "/15/")
		w.start(codex, "The second root of codex speaks.")
		w.give()
		c.finds("second root of codex")
		second := c.worker()
		if second == first {
			t.Error("the worker was not replaced")
		}
		// A link to elsewhere.
		do(os.Rename(root, root+"-second"), os.Symlink(root+"-away", root))
		c.settles("second root of codex", func(o engine.RecallOut) bool { return !o.Conclusive })
		if st := c.status(); len(st.Problems) != 1 || !strings.Contains(st.Problems[0].Detail, "link") {
			t.Errorf("%s", st.Text())
		}
		if c.worker() != second {
			t.Error("a link got a worker")
		}
	})
}

// In a network namespace with nothing but a loopback interface everything works, and the
// interface carries no packet.
func TestCase86EmptyNetwork(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare here")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a network namespace in which the directories above the home still have their owner")
	}
	wrap := []string{unshare, "--net"}
	lo := loopback.Path(t)
	if out, err := exec.Command(wrap[0], append(wrap[1:], lo, "up")...).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made here: %v %s", err, out)
	}
	w := sampleWorld(t)
	script := `set -e; "$1" up >/dev/null
` + everything + `
"$1"`
	c := exec.CommandContext(t.Context(), wrap[0], append(wrap[1:], "sh", "-c", script, w.path, lo)...)
	c.Env, c.Dir = w.Environ(), w.Dir
	r := finish(t, c)
	if r.status != 0 || !strings.HasSuffix(r.stdout, "done\nreceived 0 sent 0\n") {
		t.Errorf("status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// under runs a command under a kernel that seems to be another.
func (w *world) under(profile string, args ...string) ran {
	w.t.Helper()
	return w.with(&oldkernel).run(append([]string{profile, w.path}, args...)...)
}

// An old kernel confines as far as it can, and status says how far that is.
func TestOldKernel(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		for profile, want := range map[string]engine.Confinement{
			"no-landlock": {Level: "no-landlock", LandlockABI: 0, Seccomp: true},
			"landlock=1":  {Level: "partial-landlock", LandlockABI: 1, Seccomp: true},
			"landlock=3":  {Level: "partial-landlock", LandlockABI: 3, Seccomp: true},
			"landlock=5":  {Level: "partial-landlock", LandlockABI: 5, Seccomp: true},
			"landlock=6":  {Level: "full", LandlockABI: 6, Seccomp: true},
		} {
			r := w.under(profile, "status", "--json")
			if st := decode[engine.StatusOut](t, r.stdout); r.status != 0 || st.Confinement != want {
				t.Errorf("%s: status %d, %+v", profile, r.status, st.Confinement)
			}
			c := &client{mcptest.Start(t, w.Environ(), w.with(&oldkernel).line(profile, w.path, "serve")...), t}
			c.Call("initialize", initialize)
			if st := c.status(); st.Confinement != want {
				t.Errorf("%s: serve says %+v", profile, st.Confinement)
			}
			c.CloseInput()
			if err := c.WaitExit(2 * time.Second); err != nil {
				t.Error(err)
			}
			// Strict takes the full measure only.
			s := w.under(profile, "serve", "--strict")
			if want.Level == "full" && s.status != 0 || want.Level != "full" && (s.status != exitConfinement || !strings.Contains(s.stderr, "--strict")) || s.stdout != "" {
				t.Errorf("%s: serve --strict: status %d, %s%s", profile, s.status, s.stdout, s.stderr)
			}
			if want.Level == "full" {
				continue
			}
			// What is refused has opened no history: nothing was made to keep it in.
			fresh := w.Path("state-" + profile)
			strict := w.with(&oldkernel).command(t.Context(), profile, w.path, "serve", "--strict")
			strict.Env = append(strict.Env, "MOONCITE_STATE_DIR="+fresh)
			finish(t, strict)
			if names, err := os.ReadDir(fresh); err != nil || len(names) != 1 {
				t.Errorf("%s: serve --strict made %v (%v)", profile, names, err)
			}
		}
	})
}

// anEvidence is an evidence id that nothing has.
var anEvidence = "mooncite:codex:" + strings.Repeat(strings.Repeat("0", 24)+":", 3) + "0"

// A home that may be read, because it is the state directory or leads into a root, is no
// sign that the confinement fails.
func TestReadableHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dir := range []string{"both", "root/home", "config"} {
		if err := os.MkdirAll(w.Path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(w.Path("root/home"), w.Path("link")); err != nil {
		t.Fatal(err)
	}
	w.Set("HOME", w.Path("both"))
	w.Set("MOONCITE_STATE_DIR", w.Path("both"))
	if r := w.run("recall", "anything"); r.status != exitInconclusive {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	w.Set("XDG_CONFIG_HOME", w.Path("config"))
	w.Set("MOONCITE_STATE_DIR", w.Path("state"))
	w.Set("HOME", w.Path("link"))
	w.must(0, "source", "add", "claude-code", w.Path("root"))
	if r := w.run("recall", "anything"); r.status != exitInconclusive {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}

// Without seccomp nothing is read, and the reason is said. A kernel that only says that
// it confines is found out by the trial.
func TestConfinementFails(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, w *world) {
		for profile, why := range map[string]string{
			"no-seccomp":     "seccomp",
			"empty-seccomp":  "was not denied",
			"empty-landlock": "reading a file outside was not denied",
		} {
			for _, args := range [][]string{{"serve"}, {"recall", "ECONNRESET"}, {"inspect", anEvidence}, {"forget", "--evidence", anEvidence, "--yes"},
				{"rebuild"}, {"status"}, {"source", "list"}} {
				r := w.under(profile, args...)
				if r.status != exitConfinement || r.stdout != "" || !strings.Contains(r.stderr, why) {
					t.Errorf("%s: %v: status %d, %s%s", profile, args, r.status, r.stdout, r.stderr)
				}
			}
		}
		for _, name := range w.stateFiles() {
			if strings.HasPrefix(name, "index") {
				t.Errorf("%s was made", name)
			}
		}
		for _, root := range []string{".pi/agent/sessions", ".omp/agent/sessions", ".claude/projects", ".codex/sessions"} {
			if left, err := filepath.Glob(w.Path(root) + "/.confinement*"); err != nil || len(left) > 0 {
				t.Errorf("the trial left %v", left)
			}
		}
	})
}

// saidOpen is what both processes have open, as the README says.
var saidOpen = regexp.MustCompile(`^(/sys/fs/cgroup/|/memfd:confine-letter|anon_inode:\[(eventpoll|eventfd)\]$)`)

// Two processes serve: the one that started opens no history and has nothing to read
// with; both have no socket and nothing else that was left open.
func TestSupervisorHoldsNothing(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	c := w.serve()
	c.finds("ECONNRESET")
	if bound := fmt.Sprintf("/proc/%d/status", c.worker()); os.Geteuid() == 0 && !strings.Contains(read(t, bound), "CapBnd:\t0000000000000000\n") {
		t.Errorf("a worker could gain capabilities: %s", read(t, bound))
	}
	for _, pid := range []int{c.Cmd.Process.Pid, c.worker()} {
		names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if errors.Is(err, os.ErrPermission) && os.Geteuid() != 0 {
			continue // nobody but root may look into them, which is as it should be
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, n.Name()))
			if err != nil {
				continue
			}
			if n.Name() == "0" || n.Name() == "1" || n.Name() == "2" { // the client's
				continue
			}
			ofWorker := pid != c.Cmd.Process.Pid && strings.HasPrefix(to, w.Dir)
			if !ofWorker && !saidOpen.MatchString(to) {
				t.Errorf("process %d has %s open, of which the README does not tell", pid, to)
			}
		}
	}
}

// A killed worker ends the server with a reason, and nothing is lost; a killed server
// takes its worker along.
func TestKillEitherProcess(t *testing.T) {
	t.Parallel()
	w, stats := smallWorld(t)
	for round := range rounds(t, 10) {
		c := w.startServer()
		worker := c.worker()
		c.Send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":` + initialize + `}`)
		time.Sleep(time.Duration(round*7) * time.Millisecond)
		victim := worker
		if round%2 == 1 {
			victim = c.Cmd.Process.Pid
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := c.WaitExit(2 * time.Second)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || victim == worker && (exit.ExitCode() != 1 || !strings.Contains(c.Stderr(), "killed by signal 9")) {
			t.Errorf("round %d: %v, %s", round, err, c.Stderr())
		}
		for end := time.Now().Add(2 * time.Second); syscall.Kill(worker, 0) == nil; time.Sleep(2 * time.Millisecond) {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker)); err != nil || strings.Contains(string(data), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("round %d: the worker is still there", round)
			}
		}
		w.lastGood(round, "a killed server", stats.Planted[round%len(stats.Planted)])
	}
	w.must(0, "rebuild")
	w.clean()
}

// The end of the input, a signal, and the end of who started it end both processes.
func TestBothProcessesEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *client){
		"input":   func(c *client) { c.CloseInput() },
		"SIGTERM": func(c *client) { _ = c.Cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":  func(c *client) { _ = c.Cmd.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sampleWorld(t).serve()
			c.finds("ECONNRESET")
			worker := c.worker()
			end(c)
			if err := c.WaitExit(2 * time.Second); err != nil {
				t.Error(err, c.Stderr())
			}
			if err := syscall.Kill(worker, 0); err == nil {
				if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker)); err == nil && !strings.Contains(string(data), ") Z ") {
					t.Error("the worker is still there")
				}
			}
		})
	}
	t.Run("parent", func(t *testing.T) {
		t.Parallel()
		w := sampleWorld(t)
		// The shell is killed; somebody else still holds the pipes.
		c := &client{mcptest.Start(t, w.Environ(), "/bin/sh", "-c", `exec 3<&0; "$0" serve <&3 & echo "{\"id\":$!}"; wait`, w.path), t}
		m := c.AwaitFunc("the server's number", func(m mcptest.Message) bool { return m.Method == "" && m.Result == nil })
		pid, err := strconv.Atoi(string(m.ID))
		if err != nil {
			t.Fatal(err)
		}
		c.Call("initialize", initialize)
		if err := c.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(3 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(data), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the server is still there")
			}
		}
	})
}

// A worker is nothing to start by hand.
func TestWorkerByHand(t *testing.T) {
	t.Parallel()
	r := sampleWorld(t).run("serve", "--worker")
	if r.status != exitConfinement || r.stdout != "" || !strings.Contains(r.stderr, "supervisor") {
		t.Errorf("status %d: %s%s", r.status, r.stdout, r.stderr)
	}
}
