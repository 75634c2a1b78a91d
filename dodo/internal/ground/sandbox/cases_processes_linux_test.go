package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/sandbox"
)

// Case 30: a command signals everybody, the server and another program of the user: there are no such processes (EPERM when reduced).
func TestCase30Kill(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		other := g.sibling()
		want := g.by("ESRCH", "EPERM")
		a := g.tries(job{},
			try{"kill|" + name("%d", os.Getpid()) + "|9", want}, try{"kill|" + other + "|9", want}, try{"kill|" + other + "|0", want},
			try{"kill threads|" + other + "|9", g.by("ENOENT", "EPERM")},
			try{"kill|-1|0", g.by("ok|ESRCH", "ok|EPERM|ESRCH")},
			try{"queue|" + other + "|11", g.by("ESRCH|EPERM", "EPERM")},
		)
		if a.Exit.Code != 0 {
			t.Errorf("%+v", a.Exit)
		}
		if err := syscall.Kill(atoi(t, other), 0); err != nil {
			t.Error(err)
		}
		// And everybody in truth: the runner still answers.
		a = g.ran(job{Spec: spec{Args: attempts(g, "kill|-1|9", "env")}})
		if a.Exit.Code != 0 && a.Exit.Signal != "SIGKILL" {
			t.Errorf("%+v", a)
		}
		if err := syscall.Kill(atoi(t, other), 0); err != nil {
			t.Error(err)
		}
	})
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}

// Case 31: a command traces, reads the memory of and takes descriptors from other processes: refused.
func TestCase31Trace(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		other := g.sibling()
		var list []try
		for _, pid := range []string{other, "1", name("%d", os.Getpid())} {
			list = append(list,
				try{name("syscall|%d|%d|%s|0|0", unix.SYS_PTRACE, unix.PTRACE_ATTACH, pid), "EPERM"},
				try{name("syscall|%d|%d|%s|0|0", unix.SYS_PTRACE, unix.PTRACE_SEIZE, pid), "EPERM"},
				try{"vm read|" + pid, "EPERM"}, try{"getfd|" + pid, "EPERM|ESRCH"},
				try{name("syscall|%d|%s|%s|0|0|0", unix.SYS_KCMP, pid, pid), "EPERM"},
				try{"open rw|/proc/" + pid + "/mem", "ENOENT|EACCES|EROFS|EPERM"},
			)
		}
		g.tries(job{}, list...)
	})
}

// Case 32: a command reads what the system shows of the server: it is not there (when reduced nothing but what every user sees).
func TestCase32ServerFiles(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		for _, pid := range []string{g.sibling(), name("%d", os.Getpid())} {
			var list []try
			for _, f := range []string{"environ", "mem", "maps", "cwd/x", "exe", "fd/0", "root/etc", "auxv"} {
				list = append(list, try{"read|/proc/" + pid + "/" + f, g.by("ENOENT", "EACCES|EPERM|ENOENT")})
			}
			g.tries(job{}, list...)
		}
	})
}

// Case 33: the same as root with Landlock alone: refused, because no capability is left.
func TestCase33RootReduced(t *testing.T) {
	each(t, reduced, func(t *testing.T, g *ground) {
		var list []try
		for _, pid := range []string{"1", name("%d", os.Getppid())} {
			for _, f := range []string{"environ", "maps", "mem", "stack", "syscall", "fd/0"} {
				list = append(list, try{"read|/proc/" + pid + "/" + f, "EACCES|EPERM|ENOENT"})
			}
		}
		g.tries(job{}, append(list, try{"status", "got Groups:.*CapInh:0{16} CapPrm:0{16} CapEff:0{16} CapBnd:[0-9a-f]{16} CapAmb:0{16} NoNewPrivs:1 Seccomp:2"})...)
	})
}

// Case 34: a command changes limits, priority and processors of another program of the user: there is none (EPERM when reduced).
func TestCase34Settings(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		other := g.sibling()
		want := g.by("ESRCH", "EPERM")
		g.tries(job{}, try{"limit|" + other, want}, try{"priority|" + other, want}, try{"affinity|" + other, want}, try{"limit|0", "ok"}, try{"priority|0", "ok"}, try{"affinity|0", "ok"},
			try{name("syscall|%d|1|0|19", unix.SYS_SETPRIORITY), g.by("ok|EPERM", "EPERM")}, try{name("syscall|%d|2|0|19", unix.SYS_SETPRIORITY), g.by("ok", "EPERM")})
	})
}

// Case 35: a command looks into the first process of its sandbox: refused.
func TestCase35FirstProcess(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		var list []try
		for _, f := range []string{"exe", "fd/3", "fd/4", "root/etc/passwd", "cwd/file", "environ", "mem", "maps", "task/1/mem", "ns/pid"} {
			list = append(list, try{"read|/proc/1/" + f, "EACCES|EPERM|ENOENT"}, try{"open rw|/proc/1/" + f, "EACCES|EPERM|ENOENT|EROFS"})
		}
		g.tries(job{}, append(list, try{"readlink|/proc/1/exe", "EACCES"}, try{"readlink|/proc/1/fd/3", "EACCES|ENOENT"}, try{"args", "got (dodo-sandbox|/.dodo-sandbox) ;.*"})...)
	})
}

// No signal that a command sends to the first process of its sandbox ends that.
func TestSignalsToFirstProcess(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		a := g.ran(sh("i=0; while [ $i -lt 64 ]; do i=$((i+1)); kill -$i 1 || echo $i; done; sleep 0.1; echo alive"))
		if a.Exit.Code != 0 || a.Out != "alive\n" {
			t.Errorf("%+v %q", a.Exit, a.Out)
		}
	})
}

// Case 36: a command leaves a daemon that ignores signals: it is gone when the command is.
func TestCase36Daemon(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(job{Spec: spec{Args: attempts(g, "daemon|"+g.root+"/daemon", "daemon|"+g.root+"/second")}})
		g.nothingLeft()
		if a.Exit.Code != 0 || !there(g.root+"/daemon")() || !there(g.root+"/second")() {
			t.Errorf("%+v", a)
		}
	})
}

// Case 37: a command that left its group and ignores signals is killed: everything it started is gone.
func TestCase37KilledTree(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(job{KillOn: "daemon", Spec: spec{Args: attempts(g, "daemon|"+g.root+"/daemon", "stay")}})
		g.nothingLeft()
		if a.Exit.Signal != "SIGKILL" || a.Exit.Code != -1 {
			t.Errorf("%+v", a)
		}
		t.Logf("%s: gone %v after the order", g.level, a.End)
		if a.End > 5*time.Second {
			t.Error(a.End)
		}
		// And in the polite way, which reaches what has left the group.
		j := sh("trap 'until [ -e told ]; do sleep 0.01; done; echo got it; exit 7' TERM; (setsid sh -c 'trap \"echo >" + g.root + "/told\" TERM; echo ready; while :; do sleep 0.01; done') & while :; do sleep 0.01; done")
		j.Terminate = "ready"
		if a := g.ran(j); a.Exit.Code != 7 || !strings.Contains(a.Out, "got it") {
			t.Errorf("%+v", a)
		}
		g.nothingLeft()
	})
}

// Case 38: the server is killed: all its commands are gone within a second.
func TestCase38ServerKilled(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		s := g.serve(job{Spec: spec{Args: attempts(g, "daemon|"+g.root+"/daemon", "stay|"+g.root+"/stays")}})
		if a := s.next(); !a.Begun || a.Isolation != g.level {
			t.Fatalf("%+v", a)
		}
		until(t, "the command runs", there(g.root+"/stays"))
		if len(g.left()) == 0 {
			t.Fatal("it cannot be seen")
		}
		must(t, s.cmd.Process.Kill())
		took := until(t, "nothing is left", func() bool { return len(g.left()) == 0 })
		t.Logf("%s: gone %v after the server", g.level, took)
		if took > 5*time.Second {
			t.Error(took)
		}
	})
}

// Case 39: a command forks without end: EAGAIN at 512 processes, for root at 4096 where the kernel counts them for each namespace (6.14), and it can be killed (residual when reduced: no bound).
func TestCase39ForkBomb(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		most := "fork bomb|700"
		if g.root0 && g.level == sandbox.Full && newKernel() {
			most = "fork bomb|4500"
		}
		j := job{KillOn: "Got", Spec: spec{Args: attempts(g, most, "stay")}}
		a := g.ran(j)
		g.nothingLeft()
		want := "EAGAIN after (4[89]|50)[0-9]"
		switch {
		case most != "fork bomb|700":
			want = "EAGAIN after (3[0-9]|40)[0-9][0-9]"
		case g.root0 || g.level == sandbox.Reduced:
			want = "ok"
		}
		if what := got(t, a.Out)[strings.Replace(most, "|", " ", 1)]; !regexp.MustCompile(want).MatchString(what) {
			t.Errorf("%s, want %s", what, want)
		}
		t.Logf("gone %v after the order", a.End)
	})
}

// Case 40: a command takes memory without end: ENOMEM at 4 GiB of one process.
func TestCase40Memory(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"hog|80", "ENOMEM after (3|4)[0-9]{3}"})
	})
}

// Case 43: a process that a command left holds its output: the command's end is seen at once.
func TestCase43HeldOutput(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(sh("(setsid sleep 600) & echo done"))
		if a.Took > 5*time.Second || a.Out != "done\n" || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		g.nothingLeft()
	})
}

// Case 44: a command crashes: no memory dump is written, and the signal is said.
func TestCase44CoreDump(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(sh("ulimit -c unlimited 2>/dev/null; kill -ABRT $$"))
		if a.Exit.Signal != "SIGABRT" || a.Exit.Code != -1 {
			t.Errorf("%+v", a)
		}
		// 1, not 0: a program that the system gives dumps to would get those of 0 too.
		g.tries(job{}, try{name("limits|%d", unix.RLIMIT_CORE), "got 1 1"})
		if found, _ := filepath.Glob(g.root + "/*core*"); len(found) > 0 {
			t.Error(found)
		}
	})
}

// Case 45: a command stops everything and itself, and is killed then: it ends.
func TestCase45Stopped(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(job{KillOn: "stopping", Spec: spec{Args: attempts(g, "stop all|"+g.root+"/x")}})
		if a.Exit.Signal != "SIGKILL" || a.End > 5*time.Second {
			t.Errorf("%+v", a)
		}
		g.nothingLeft()
	})
}

// Case 46: a command leaves hundreds of dead children of dead children: none is left as a zombie.
func TestCase46Zombies(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"zombies|400", "none left"})
	})
}

// Case 47: programs that cannot be run, and arguments that are too large: the error says so.
func TestCase47NotRun(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.put(g.root+"/lost", "#!/no/such/interpreter\n")
		g.put(g.root+"/empty", "")
		g.put(g.root+"/plain", "x")
		must(t, os.Chmod(g.root+"/lost", 0o755))
		must(t, os.Chmod(g.root+"/empty", 0o755))
		g.give()
		huge := strings.Repeat("x", 200<<10)
		var many []string
		for range 30 {
			many = append(many, huge[:100<<10])
		}
		for _, c := range []struct {
			s    spec
			code string
		}{
			{spec{Args: []string{g.root + "/lost"}}, "NOT_FOUND"},
			{spec{Args: []string{g.root + "/missing"}}, "NOT_FOUND"},
			{spec{Args: []string{g.root + "/empty"}}, "INVALID_INPUT"},
			{spec{Args: []string{g.root + "/plain"}}, "PATH_DENIED"},
			{spec{Args: []string{g.root}}, "PATH_DENIED"},
			{spec{Args: []string{g.root + "/file/x"}}, "NOT_FOUND"},
			{spec{Args: []string{"/bin/true"}, Dir: g.root + "/missing"}, "NOT_FOUND"},
			{spec{Args: []string{"/bin/true"}, Dir: g.root + "/file"}, "NOT_FOUND"},
			{spec{Args: []string{"/bin/true"}, Dir: g.outside}, g.by("NOT_FOUND", "")},
			{spec{Args: []string{"/bin/true", huge}}, "RESOURCE_LIMIT"},
			{spec{Args: []string{"/bin/true"}, Env: []string{"A=" + huge}}, "RESOURCE_LIMIT"},
			{spec{Args: append([]string{"/bin/true"}, many...)}, "RESOURCE_LIMIT"},
			{spec{Args: []string{"true"}}, "INVALID_INPUT"},
		} {
			if a := g.run(job{Spec: c.s}); a.Code != c.code {
				t.Errorf("%.80v: %q %s (%.200s), want %s", c.s.Args, a.Code, a.Text, a.Cause, c.code)
			}
		}
		// Large and still allowed.
		var env []string
		for i := range 10 {
			env = append(env, name("V%d=%s", i, huge[:100<<10]))
		}
		j := job{Spec: spec{Args: []string{"/usr/bin/env"}, Env: env}}
		if a := g.ran(j); a.Bytes < 1000<<10 {
			t.Errorf("%d bytes %+v", a.Bytes, a.Exit)
		}
	})
}

// Case 41: a command waits for input that nobody gave: the input has ended at once.
func TestCase41Input(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"stdin", `got "" EOF`})
		g.tries(job{Input: "pipe", Say: "hello"}, try{"stdin", `got "hello" <nil>`})
	})
}

// The first process of a sandbox gets every signal from within: it goes on, or all of it ends
// and the answer says so.
func TestFirstProcessSignalled(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		for _, s := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 19, 20, 23, 31, 40, 64} {
			list := []string{name("kill parent|%d", s)}
			if g.level != sandbox.Reduced {
				list = append(list, name("queue|1|%d", s), name("kill threads|1|%d", s))
			}
			a := g.ran(job{Spec: spec{Args: attempts(g, append(list, "status")...)}})
			all := got(t, a.Out)
			switch {
			case a.Exit.Code == 0 && all["status"] != "":
				if g.level == sandbox.Reduced && all[list[0][:11]+" "+strconv.Itoa(s)] != "EPERM" {
					t.Errorf("signal %d: %v", s, all)
				}
			case a.Exit.Code == -1 && a.Exit.Signal != "" && g.level != sandbox.Reduced:
				t.Logf("signal %d ended the sandbox: %s", s, a.Exit.Signal)
			default:
				t.Errorf("signal %d: %+v", s, a)
			}
		}
		g.nothingLeft()
	})
}

// Without namespaces a command can signal no thread of its helper, and what it leaves is
// found although it comes faster than it is looked for.
func TestReducedHelper(t *testing.T) {
	each(t, reduced, func(t *testing.T, g *ground) {
		s := g.serve(job{Spec: spec{Args: attempts(g, "stay|"+g.root+"/stays")}})
		helper := s.next().Pid
		until(t, "the command runs", there(g.root+"/stays"))
		must(t, s.cmd.Process.Kill())
		until(t, "nothing is left", func() bool { return len(g.left()) == 0 })
		if err := syscall.Kill(helper, 0); err == nil {
			until(t, "the helper ends", func() bool { return syscall.Kill(helper, 0) != nil })
		}
		a := g.ran(sh("for t in /proc/$PPID/task/*; do kill -9 ${t##*/}; done 2>/dev/null; kill -9 $PPID 2>/dev/null; echo alive"))
		if a.Out != "alive\n" || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		a = g.ran(job{Spec: spec{Args: attempts(g, "storm|4")}})
		g.nothingLeft()
		t.Logf("a storm of processes was over after %v", a.Took)
	})
}

// newKernel reports whether each namespace has a highest number of a process.
func newKernel() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 14)
}
