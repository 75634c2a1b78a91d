package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
)

// Case 2: a command follows an absolute link of the workspace to a file outside: there is no such file for it.
func TestCase02LinkOutside(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		must(t, os.Symlink(g.secret, g.root+"/link"))
		must(t, os.Symlink("../outside/secret", g.root+"/relative"))
		g.tries(job{},
			try{"read|" + g.root + "/link", g.by("ENOENT", "EACCES")},
			try{"read|" + g.root + "/relative", g.by("ENOENT", "EACCES")},
			try{"read|" + g.secret, g.by("ENOENT", "EACCES")},
			try{"read|" + g.root + "/../outside/secret", g.by("ENOENT", "EACCES")},
			try{"read|" + g.root + "/file", "got a file"},
		)
	})
}

// Case 7: magic links of /proc lead a command to files outside: none does.
func TestCase07MagicLinks(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		pid := name("%d", os.Getpid())
		var list []try
		for _, way := range []string{
			"/proc/self/root" + g.secret, "/proc/self/cwd/../outside/secret", "/proc/1/root" + g.secret, "/proc/1/cwd/etc/shadow", "/proc/self/task/1/root" + g.secret,
			"/proc/" + pid + "/root" + g.secret, "/proc/" + pid + "/cwd/doc.go", "/dev/fd/../../../../" + g.secret, "/dev/stdin/../" + g.secret,
		} {
			list = append(list, try{"read|" + way, "ENOENT|EACCES|ENOTDIR"})
		}
		g.tries(job{}, append(list, try{"read|/proc/self/root" + g.root + "/file", "got a file"})...)
	})
}

// Case 8: the server has a secret open without close-on-exec: the command's descriptors are 0, 1 and 2, without walls too.
func TestCase08InheritedDescriptors(t *testing.T) {
	each(t, append(allOf, sandbox.None), func(t *testing.T, g *ground) {
		j := job{Leak: []string{g.secret, g.secret, "/", "/dev/null", g.dir}}
		if g.level == sandbox.None {
			j.Spec.Mode = sandbox.Off
		}
		list := []try{{"fds", "got 0 1 2"}}
		for fd := 3; fd < 40; fd++ {
			list = append(list, try{name("read|/proc/self/fd/%d%s", fd, g.secret), "ENOENT|ENOTDIR|EACCES"})
		}
		g.tries(j, list...)
	})
}

// Case 9: a command links files outside into the workspace: refused.
func TestCase09LinkInto(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{},
			try{"link|" + g.secret + "|" + g.root + "/new", g.by("ENOENT", "EXDEV|EACCES")},
			try{"link|/usr/bin/env|" + g.root + "/env", "EXDEV|EACCES|EPERM"},
			try{"link|/proc/self/exe|" + g.root + "/exe", "EXDEV|EACCES|EPERM"},
			try{"link|" + g.root + "/file|" + g.root + "/again", "ok"},
		)
	})
}

// Case 11: a command moves files from outside into the workspace, and out of it: refused.
func TestCase11Move(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{},
			try{"rename|" + g.secret + "|" + g.root + "/new", g.by("ENOENT", "EXDEV|EACCES")},
			try{"rename|" + g.root + "/file|" + g.outside + "/new", g.by("ENOENT", "EXDEV|EACCES")},
			try{"exchange|" + g.root + "/file|" + g.secret, g.by("ENOENT", "EXDEV|EACCES")},
			try{"rename|" + g.root + "|" + g.dir + "/elsewhere", "EROFS|EBUSY|EXDEV|EACCES"},
			try{"create|" + g.dir + "/new", g.by("ok|EROFS", "EACCES")}, // what is above it is in memory
		)
		if _, err := os.Lstat(g.dir + "/new"); err == nil {
			t.Error("it is there")
		}
		if data, err := os.ReadFile(g.secret); string(data) != "a secret" {
			t.Error(err)
		}
	})
}

// Case 14: a command makes device files, as root too: refused; pipes may be made.
func TestCase14DeviceFiles(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, dir := range []string{g.root, g.by("/tmp", g.root)} {
			list = append(list,
				try{name("mknod|%s/c|%d|1|1", dir, syscall.S_IFCHR|0o666), "EACCES|EPERM"},
				try{name("mknod|%s/b|%d|254|0", dir, syscall.S_IFBLK|0o666), "EACCES|EPERM"},
				try{name("mknod|%s/w|%d|0|0", dir, syscall.S_IFCHR), "EACCES"},
			)
		}
		g.tries(job{}, append(list, try{name("mknod|%s/p|%d|0|0", g.root, syscall.S_IFIFO|0o600), "ok"})...)
	})
}

// Case 15: a command opens the machine's devices: they are not there.
func TestCase15Devices(t *testing.T) {
	disks, err := filepath.Glob("/dev/[svn][dvm][a-z]*")
	must(t, err)
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, dev := range append(disks, "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vsock", "/dev/vhost-vsock",
			"/dev/userfaultfd", "/dev/uinput", "/dev/loop0", "/dev/loop-control", "/dev/snd/timer", "/dev/dri/card0", "/dev/input/event0", "/dev/tty0", "/dev/console") {
			list = append(list, try{"open rw|" + dev, "ENOENT|EACCES"})
		}
		for _, dev := range []string{"null", "zero", "full", "random", "urandom"} {
			list = append(list, try{"open rw|/dev/" + dev, "ok"})
		}
		g.tries(job{}, list...)
	})
}

// Case 19: a command writes behind 2 GiB of a file: EFBIG, or SIGXFSZ ends it.
func TestCase19LargeFile(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{name("large|%s/large|%d", g.root, 2<<30), "EFBIG"}, try{name("large|%s/large|%d", g.root, 2<<30-1), "ok"})
		j := sh("exec head -c 1 /dev/zero >>large")
		if a := g.ran(j); a.Exit.Code == 0 {
			t.Errorf("%+v", a)
		}
	})
}

// Case 20: a command fills /tmp and /dev/shm: ENOSPC at 1 GiB and 256 MiB of memory.
func TestCase20FillMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes a gigabyte")
	}
	each(t, atFull, func(t *testing.T, g *ground) {
		g.tries(job{}, try{name("fill|/dev/shm|%d", 300<<20), "ENOSPC after 256"}, try{name("fill|/tmp|%d", 1100<<20), "ENOSPC after 10[0-9]{2}"})
	})
}

// Case 21: a command makes files without end: those in memory are counted, those in the workspace end with the command.
func TestCase21ManyFiles(t *testing.T) {
	each(t, atFull, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"files|/dev/shm|1000000", "ENOSPC after 16[0-9]{3}"})
		a := g.ran(job{KillOn: "0", Spec: spec{Args: attempts(g, "limits|7", "files|"+g.root+"|100000000")}})
		if a.Exit.Signal != "SIGKILL" {
			t.Errorf("%+v", a)
		}
		g.nothingLeft()
	})
}

// Case 22: names and arguments with bytes that mean something elsewhere: they arrive as they are; NUL is refused.
func TestCase22StrangeNames(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		strange := "a\n\x1b]52;c;x\x07\xff'\"*[?" + strings.Repeat("x", 220)
		dir := g.root + "/" + strange
		must(t, os.Mkdir(dir, 0o755))
		g.put(dir+"/file", "found")
		g.give()
		j := job{Spec: spec{Args: []string{"/bin/cat", dir + "/file"}, Dir: dir}}
		if g.level != sandbox.Reduced {
			g.put(dir+"/.env", "a secret")
			g.put(dir+"/.git/config", "")
			g.give()
			// The runner's messages are JSON, which has no such bytes.
			if strange = strings.ToValidUTF8(strange, "?"); strange == "" {
				t.Fatal()
			}
		}
		must(t, os.Rename(dir, strings.ToValidUTF8(dir, "?")))
		dir = strings.ToValidUTF8(dir, "?")
		j.Spec.Args[1], j.Spec.Dir = dir+"/file", dir
		if g.level != sandbox.Reduced {
			j.Secrets, j.Git = []string{dir + "/.env"}, []string{dir + "/.git"}
			j.Spec.Args = []string{"/bin/cat", dir + "/file", dir + "/.env"}
		}
		if a := g.ran(j); a.Out != "found" || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		for what, s := range map[string]spec{
			"argument": {Args: []string{"/bin/echo", "a\x00b"}}, "program": {Args: []string{"/bin/ec\x00ho"}}, "directory": {Args: []string{"/bin/true"}, Dir: g.root + "\x00"},
			"environment": {Args: []string{"/bin/true"}, Env: []string{"A=b\x00"}},
		} {
			if a := g.run(job{Spec: s}); a.Code != "INVALID_INPUT" {
				t.Errorf("%s: %q %s %s", what, a.Code, a.Text, a.Cause)
			}
		}
	})
}

// Case 23: a command changes modes, times and attributes outside: there are no such files (residual when reduced: Landlock does not look at these).
func TestCase23Attributes(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{},
			try{"chmod|" + g.secret + "|0640", g.by("ENOENT", "ok")},
			try{"utimes|" + g.secret, g.by("ENOENT", "ok")},
			try{"stat|" + g.secret, g.by("ENOENT", "ok")},
			try{"chown|" + g.secret + "|1", g.by("ENOENT", "EPERM")},
			try{"setxattr|" + g.secret + "|security.capability", g.by("ENOENT", "EPERM")},
			try{"truncate|" + g.secret, g.by("ENOENT", "EACCES")},
			try{"truncate open|" + g.secret, g.by("ENOENT", "EACCES")},
			try{"chmod|/usr/bin/env|0777", "EROFS|EPERM|ok"},
		)
		if g.level != sandbox.Reduced {
			g.tries(job{}, try{"chmod|/usr/bin/env|0755", "EROFS"}, try{"utimes|/usr/bin/env", "EROFS"}, try{"chmod|/|0777", "EROFS"})
		}
	})
}

// Case 24: a command watches a directory outside: it is not there (residual when reduced).
func TestCase24Watch(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"inotify|" + g.outside, g.by("ENOENT", "ok|EACCES")}, try{"inotify|" + g.root, "ok"}, try{"chdir|" + g.outside, g.by("ENOENT", "ok")})
	})
}

// Case 25: a command makes files with set-user-id bits: denied by every call when the server is root, allowed for an ordinary user (residual).
func TestCase25SetID(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		want, unknown, made := "ok", "ok", "ok"
		if g.root0 {
			want, unknown, made = "EPERM", "ENOSYS", "EPERM"
		}
		f := g.root + "/file"
		g.tries(job{},
			try{"chmod|" + f + "|04755", want}, try{"chmod|" + f + "|02755", want}, try{"fchmod|" + f + "|06755", want}, try{"fchmodat2|" + f + "|04755", want},
			try{"chmod|" + f + "|04755+high", want},
			try{"create|" + g.root + "/new|04755", want}, try{"tmpfile|" + g.root + "|04755", want}, try{"openat2|" + g.root + "/new2|04755", unknown},
			try{"creat|" + g.root + "/new3|04755", want}, try{"mkdir|" + g.root + "/new4|02755", made},
			try{name("mknod|%s/new5|%d|0|0", g.root, syscall.S_IFREG|0o4755), want},
			try{"setxattr|" + f + "|security.capability", "EPERM"},
			try{"chmod|" + f + "|0755", "ok"}, try{"create|" + g.root + "/new6|0755", "ok"},
		)
		if g.root0 {
			must(t, filepath.WalkDir(g.root, func(path string, d os.DirEntry, err error) error {
				must(t, err)
				st, err := d.Info()
				must(t, err)
				if st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
					t.Error(path, st.Mode())
				}
				return nil
			}))
		}
	})
}

// Case 26: a command runs a set-user-id program of root's: it gains nothing.
func TestCase26SetIDProgram(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make one")
	}
	each(t, allOf, func(t *testing.T, g *ground) {
		dir, err := os.MkdirTemp("", "sandbox-setid-")
		must(t, err)
		defer os.RemoveAll(dir)
		must(t, os.Chmod(dir, 0o755))
		data, err := os.ReadFile(programs(t) + "/attack")
		must(t, err)
		must(t, os.WriteFile(dir+"/root", data, 0o755))
		must(t, os.Chmod(dir+"/root", os.ModeSetuid|0o755))
		a := g.ran(job{Read: []string{dir}, Spec: spec{Args: append([]string{dir + "/root"}, attempts(g, "status", "read|/etc/shadow", "ids")[1:]...)}})
		all := got(t, a.Out)
		none := strings.Repeat("0", 16)
		if !strings.Contains(all["status"], "CapPrm:"+none+" CapEff:"+none) || all["read /etc/shadow"] != g.by("ENOENT", "EACCES") {
			t.Error(all)
		}
		if want := name("got %d %d", nobody, nobody); !g.root0 && all["ids"] != want {
			t.Errorf("%s, want %s", all["ids"], want)
		}
	})
}

// Case 27: a workspace below /tmp or /var/tmp works; one that is the whole file system, or the kernel's, is refused.
func TestCase27Workspaces(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		if a := g.ran(sh("cat file; pwd")); a.Out != "a file"+g.root+"\n" {
			t.Errorf("%+v", a)
		}
		other, err := os.MkdirTemp("/var/tmp", "sandbox-")
		must(t, err)
		defer os.RemoveAll(other)
		if g.who != nil {
			must(t, os.Chown(other, int(g.who.Uid), int(g.who.Gid)))
		}
		j := sh("pwd; echo x >y && cat y && touch /tmp/x")
		j.Root = other
		if g.level == sandbox.Reduced {
			j = sh("pwd; echo x >y && cat y && touch $TMPDIR/x")
			j.Root = other
		}
		if a := g.ran(j); a.Out != other+"\nx\n" || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		for _, root := range []string{"/", "/proc", "/proc/self", "/sys", "/dev", "/dev/shm"} {
			j := sh("true")
			j.Root = root
			g.refused(j, "NOT_SUPPORTED")
		}
	})
}

// Case 28: a link is in the place of the workspace: the command is not run.
func TestCase28WorkspaceReplaced(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		must(t, os.Rename(g.root, g.root+"-old"))
		must(t, os.Symlink(g.outside, g.root))
		a := g.refused(sh("cat secret"), "NOT_FOUND")
		if strings.Contains(a.Out, "secret") {
			t.Error(a.Out)
		}
		must(t, os.Remove(g.root))
		g.refused(sh("true"), "NOT_FOUND")
		must(t, os.Rename(g.root+"-old", g.root))
		// And above it.
		must(t, os.Mkdir(g.dir+"/up", 0o755))
		must(t, os.Rename(g.root, g.dir+"/up/work"))
		must(t, os.Rename(g.dir+"/up", g.dir+"/real"))
		must(t, os.Symlink("real", g.dir+"/up"))
		j := sh("true")
		j.Root = g.dir + "/up/work"
		g.refused(j, "NOT_FOUND")
	})
}

// Case 29: a command runs a program that is in memory alone: it runs, within the same walls.
func TestCase29MemoryProgram(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.ran(job{Spec: spec{Args: attempts(g, "exec memory|"+name(`["read","%s"]`, g.secret)+`|["status"]`)}})
		all := got(t, a.Out)
		none := strings.Repeat("0", 16)
		if all["read "+g.secret] != g.by("ENOENT", "EACCES") || !regexp.MustCompile("CapEff:"+none+".*NoNewPrivs:1 Seccomp:2").MatchString(all["status"]) {
			t.Error(all)
		}
	})
}

// Case 74: a command writes to the kernel's own files: refused.
func TestCase74KernelFiles(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, f := range []string{
			"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register",
			"/proc/self/oom_score_adj", "/proc/self/uid_map", "/proc/self/mem", "/proc/1/oom_score_adj", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/ns_last_pid",
			"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
		} {
			list = append(list, try{"write|" + f + "|1", "EROFS|EACCES|ENOENT|EPERM"})
		}
		g.tries(job{}, append(list, try{"read|/proc/kcore", "EACCES|EPERM|ENOENT"}, try{"read|/proc/kmsg", "EACCES|EPERM|ENOENT"})...)
	})
}

// Case 75: a command moves to another control group: their files are not there.
func TestCase75ControlGroups(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{},
			try{"list|/sys/fs/cgroup", g.by("ENOENT", "EACCES|ENOENT")},
			try{"write|/sys/fs/cgroup/cgroup.procs|0", g.by("ENOENT", "EACCES|ENOENT")},
			try{"mkdir|/sys/fs/cgroup/unified/x", g.by("ENOENT", "EACCES|EPERM|ENOENT|EROFS")},
			try{"syscall|165|0|0|0|0|0", "EPERM"},
		)
	})
}

// Case 65: a command connects to a socket file outside, as docker's: it is not there.
func TestCase65SocketOutside(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		l, err := net.Listen("unix", g.outside+"/docker.sock")
		must(t, err)
		defer l.Close()
		must(t, os.Chmod(g.outside+"/docker.sock", 0o666))
		g.tries(job{Path: []string{"/usr/bin", "/bin"}},
			try{"dial|unix|" + g.outside + "/docker.sock", g.by("ENOENT", "EPERM")},
			try{"list|/run", g.by("ENOENT", "EACCES")}, try{"list|/var/run", g.by("ENOENT", "EACCES")},
			try{"list|/sys", g.by("ENOENT", "EACCES")}, try{"list|/home", g.by("got dodo|EACCES", "EACCES")}, try{"list|/root", g.by("ENOENT", "EACCES")},
			try{"list|" + g.dir, g.by("got work", "EACCES")}, try{"read|/etc/shadow", g.by("ENOENT", "EACCES")}, try{"list|/etc/ssl/private", g.by("ENOENT", "EACCES")},
		)
	})
}

// Case 66: a command connects to a socket in the workspace that a program outside serves: it can (residual), but not when reduced.
func TestCase66SocketInside(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		l, err := net.Listen("unix", g.root+"/s")
		must(t, err)
		defer l.Close()
		must(t, os.Chmod(g.root+"/s", 0o666))
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		g.tries(job{}, try{"dial|unix|" + g.root + "/s", g.by("ok", "EPERM")})
	})
}

// Case 76: shared memory of System V, queues of POSIX: a command has its own memory, which ends with it, and no queues.
func TestCase76SharedMemory(t *testing.T) {
	const key = "0x646f646f"
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"shm|" + key, g.by("got 0", "EPERM")}, try{"mq|sandbox", g.by("EACCES", "EPERM")})
		g.tries(job{}, try{"shm|" + key, g.by("got 0", "EPERM")})
		if data, err := os.ReadFile("/proc/sysvipc/shm"); err == nil && strings.Contains(string(data), "1685021807") {
			t.Error(string(data))
		}
	})
}
