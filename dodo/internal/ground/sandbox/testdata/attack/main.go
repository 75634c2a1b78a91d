// Command attack tries what a program in a sandbox must not be able to do. Its arguments are
// attempts, each a list of words in JSON; it prints what each came to, a line of JSON each:
// "ok", what was got, or the name of the error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread()
	for _, arg := range os.Args[1:] {
		var words []string
		if err := json.Unmarshal([]byte(arg), &words); err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		tell(words, attempt(words[0], words[1:]))
	}
}

func tell(words []string, got string) {
	text, err := json.Marshal(map[string]string{"Name": strings.Join(words, " "), "Got": got})
	if err != nil {
		panic(err)
	}
	// In one piece: children write too.
	_, _ = os.Stdout.Write(append(text, '\n'))
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		if errno == 0 {
			return "ok"
		}
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// number reads 1<<32+5 as well.
func number(s string) (n uint64) {
	for _, part := range strings.Split(s, "+") {
		if part == "high" {
			n += 1 << 32
			continue
		}
		v, err := strconv.ParseInt(part, 0, 64)
		if err != nil {
			panic(err)
		}
		n += uint64(v)
	}
	return n
}

func call(trap uint64, args ...uint64) string {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
	}
	_, _, errno := unix.RawSyscall6(uintptr(trap), a[0], a[1], a[2], a[3], a[4], a[5])
	return outcome(errno)
}

func text(s string) *byte {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	return p
}

func attempt(name string, a []string) string {
	switch name {
	// files
	case "read":
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		buf := make([]byte, 200)
		n, err := unix.Read(fd, buf)
		if err != nil {
			return outcome(err)
		}
		return "got " + string(buf[:n])
	case "list":
		list, err := os.ReadDir(a[0])
		if err != nil {
			return outcome(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		return "got " + strings.Join(names, " ")
	case "stat":
		var st unix.Stat_t
		return outcome(unix.Stat(a[0], &st))
	case "size":
		st, err := os.Stat(a[0])
		if err != nil {
			return outcome(err)
		}
		return "got " + strconv.FormatInt(st.Size(), 10)
	case "readlink":
		to, err := os.Readlink(a[0])
		if err != nil {
			return outcome(err)
		}
		return "got " + to
	case "write":
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte(a[1]))
		return outcome(err)
	case "open rw":
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.Close(fd)
		}
		return outcome(err)
	case "truncate open": // with a descriptor for reading
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_TRUNC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return outcome(err)
	case "create":
		mode := uint32(0o644)
		if len(a) > 1 {
			mode = uint32(number(a[1]))
		}
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT, mode)
		if err == nil {
			unix.Close(fd)
		}
		return outcome(err)
	case "tmpfile":
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_TMPFILE, uint32(number(a[1])))
		if err == nil {
			unix.Close(fd)
		}
		return outcome(err)
	case "openat2":
		fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT, Mode: number(a[1])})
		if err == nil {
			unix.Close(fd)
		}
		return outcome(err)
	case "creat":
		return creat(a[0], number(a[1]))
	case "truncate":
		return outcome(unix.Truncate(a[0], 0))
	case "chmod":
		return outcome(unix.Chmod(a[0], uint32(number(a[1]))))
	case "fchmod":
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		return outcome(unix.Fchmod(fd, uint32(number(a[1]))))
	case "fchmodat2":
		at := unix.AT_FDCWD
		return call(unix.SYS_FCHMODAT2, uint64(at), uint64(uintptr(unsafe.Pointer(text(a[0])))), number(a[1]), 0)
	case "chown":
		return outcome(unix.Lchown(a[0], int(number(a[1])), int(number(a[1]))))
	case "utimes":
		return outcome(os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)))
	case "setxattr":
		value := []byte("x")
		if a[1] == "security.capability" { // VFS_CAP_REVISION_2 with everything
			value = []byte{1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		}
		return outcome(unix.Setxattr(a[0], a[1], value, 0))
	case "link":
		return outcome(unix.Link(a[0], a[1]))
	case "symlink":
		return outcome(unix.Symlink(a[0], a[1]))
	case "rename":
		return outcome(unix.Rename(a[0], a[1]))
	case "exchange":
		return outcome(unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE))
	case "remove":
		return outcome(os.RemoveAll(a[0]))
	case "unlink":
		return outcome(unix.Unlink(a[0]))
	case "mkdir":
		mode := uint32(0o755)
		if len(a) > 1 {
			mode = uint32(number(a[1]))
		}
		return outcome(unix.Mkdir(a[0], mode))
	case "mknod": // PATH MODE MAJOR MINOR
		return outcome(unix.Mknod(a[0], uint32(number(a[1])), int(unix.Mkdev(uint32(number(a[2])), uint32(number(a[3]))))))
	case "inotify":
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
		return outcome(err)
	case "chdir":
		here, _ := os.Getwd()
		err := os.Chdir(a[0])
		_ = os.Chdir(here)
		return outcome(err)
	case "fill": // a directory with so many bytes, until there is no room
		return fill(a[0], int(number(a[1])))
	case "files": // so many empty files
		for i := range int(number(a[1])) {
			fd, err := unix.Open(a[0]+"/f"+strconv.Itoa(i), unix.O_WRONLY|unix.O_CREAT, 0o600)
			if err != nil {
				return outcome(err) + " after " + strconv.Itoa(i)
			}
			unix.Close(fd)
		}
		return "ok"
	case "large": // a file of that size
		signal.Ignore(syscall.SIGXFSZ)
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		_, err = unix.Pwrite(fd, []byte("x"), int64(number(a[1])))
		return outcome(err)
	case "exec memory":
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return outcome(err)
		}
		data, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			return outcome(err)
		}
		f := os.NewFile(uintptr(fd), "x")
		if _, err := f.Write(data); err != nil {
			return outcome(err)
		}
		return run(fmt.Sprintf("/proc/self/fd/%d", fd), a...)
	case "exec":
		return run(a[0], a[1:]...)
	// descriptors
	case "fds":
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return outcome(err)
		}
		var names []string
		for _, e := range list {
			to, err := os.Readlink("/proc/self/fd/" + e.Name())
			// What the Go runtime reads the bounds on its processors from is its own.
			if strings.HasPrefix(to, "/sys/fs/cgroup/") && strings.HasPrefix(filepath.Base(to), "cpu.") {
				continue
			}
			if err == nil && to != "/proc/self/fd" && to != "/proc/"+strconv.Itoa(os.Getpid())+"/fd" && !strings.HasPrefix(to, "anon_inode:[event") {
				names = append(names, e.Name())
			}
		}
		sort.Strings(names)
		return "got " + strings.Join(names, " ")
	case "env":
		list := os.Environ()
		slices.Sort(list)
		return "got " + strings.Join(list, " ")
	case "args": // of every process there is
		var all []string
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range list {
			data, _ := os.ReadFile(path)
			all = append(all, strings.ReplaceAll(string(data), "\x00", " "))
		}
		return "got " + strings.Join(all, "; ")
	case "processes":
		list, _ := filepath.Glob("/proc/[0-9]*")
		return "got " + strconv.Itoa(len(list))
	case "search": // every process's environment and arguments, for a word
		list, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range list {
			if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
				continue
			}
			for _, what := range []string{"/environ", "/cmdline"} {
				if data, err := os.ReadFile(dir + what); err == nil && strings.Contains(string(data), a[0]) {
					return "got " + dir + what
				}
			}
		}
		return "nothing"
	// processes
	case "kill":
		return outcome(unix.Kill(int(number(a[0])), unix.Signal(number(a[1]))))
	case "queue": // a signal that looks as if the kernel sent it
		info := struct {
			signo, errno, code int32
			rest               [116]byte
		}{signo: int32(number(a[1])), code: -60}
		return call(unix.SYS_RT_SIGQUEUEINFO, number(a[0]), number(a[1]), uint64(uintptr(unsafe.Pointer(&info))))
	case "kill threads": // of a process, each by its own number
		return killThreads(a[0], unix.Signal(number(a[1])))
	case "kill parent":
		return outcome(unix.Kill(os.Getppid(), unix.Signal(number(a[0]))))
	case "limit":
		return outcome(unix.Prlimit(int(number(a[0])), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil))
	case "priority":
		return outcome(unix.Setpriority(unix.PRIO_PROCESS, int(number(a[0])), 19))
	case "affinity":
		var set unix.CPUSet
		set.Set(0)
		return outcome(unix.SchedSetaffinity(int(number(a[0])), &set))
	case "vm read":
		buf := make([]byte, 8)
		local, remote := []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
		_, err := unix.ProcessVMReadv(int(number(a[0])), local, remote, 0)
		return outcome(err)
	case "getfd":
		fd, err := unix.PidfdOpen(int(number(a[0])), 0)
		if err != nil {
			return outcome(err)
		}
		defer unix.Close(fd)
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return outcome(err)
	case "syscall":
		var args []uint64
		for _, s := range a[1:] {
			args = append(args, number(s))
		}
		return call(number(a[0]), args...)
	case "int80":
		int80()
		return "ok"
	case "die":
		_ = unix.Kill(os.Getpid(), unix.Signal(number(a[0])))
		select {}
	case "core":
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		signal.Reset()
		_ = unix.Kill(os.Getpid(), unix.SIGQUIT)
		time.Sleep(time.Minute)
		return "alive"
	case "daemon", "zombies", "fork bomb", "stop all", "stay", "storm":
		return processes(name, a)
	case "hog": // memory in one piece after the other
		var all [][]byte
		for range int(number(a[0])) {
			m, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				return outcome(err) + " after " + strconv.Itoa(64*len(all))
			}
			all = append(all, m)
		}
		return "ok"
	case "status":
		data, _ := os.ReadFile("/proc/self/status")
		var lines []string
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNew") || strings.HasPrefix(line, "Seccomp:") || strings.HasPrefix(line, "Groups") {
				lines = append(lines, strings.Join(strings.Fields(line), ""))
			}
		}
		return "got " + strings.Join(lines, " ")
	case "ids":
		return fmt.Sprintf("got %d %d", os.Getuid(), os.Geteuid())
	case "limits":
		var r unix.Rlimit
		_ = unix.Getrlimit(int(number(a[0])), &r)
		return fmt.Sprintf("got %d %d", r.Cur, r.Max)
	case "stdin":
		buf := make([]byte, 100)
		n, err := os.Stdin.Read(buf)
		return fmt.Sprintf("got %q %v", buf[:n], err)
	// terminals
	case "ioctl": // FD REQUEST, with a byte
		b := [64]byte{'x'}
		return call(unix.SYS_IOCTL, number(a[0]), number(a[1]), uint64(uintptr(unsafe.Pointer(&b[0]))))
	case "pty": // a pair of one's own
		return ptyPair()
	default:
		return network(name, a)
	}
}

func run(path string, args ...string) string {
	pid, err := syscall.ForkExec(path, append([]string{"x"}, args...), &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: os.Environ()})
	if err != nil {
		return outcome(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		return outcome(err)
	}
	if ws.Signaled() {
		return "signal " + unix.SignalName(ws.Signal())
	}
	return "exit " + strconv.Itoa(ws.ExitStatus())
}

func fill(dir string, most int) string {
	piece := make([]byte, 1<<20)
	f, err := os.Create(dir + "/fill")
	if err != nil {
		return outcome(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	for n := 0; n < most; {
		m, err := f.Write(piece)
		n += m
		if err != nil {
			return fmt.Sprintf("%s after %d", outcome(err), n>>20)
		}
	}
	return "ok"
}

func killThreads(pid string, s unix.Signal) string {
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return outcome(err)
	}
	got := map[string]bool{}
	leader, _ := strconv.Atoi(pid)
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		got[outcome(unix.Tgkill(leader, tid, s))] = true
		got[outcome(unix.Kill(tid, s))] = true
	}
	var list []string
	for g := range got {
		list = append(list, g)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// again starts this program with other attempts, in a session of its own when it is to be
// lost.
func again(session bool, attempts ...[]string) (int, error) {
	args := []string{"attack"}
	for _, a := range attempts {
		text, _ := json.Marshal(a)
		args = append(args, string(text))
	}
	return syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2}, Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: session},
	})
}

func processes(name string, a []string) string {
	switch name {
	case "stay": // whatever it is told; says in a file that it is there
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
		if len(a) > 0 {
			_ = os.WriteFile(a[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
		}
		for {
			time.Sleep(time.Minute)
		}
	case "daemon": // FILE: a process in a session of its own whose parent is gone
		if len(a) > 1 { // the parent
			if _, err := again(true, []string{"stay", a[0]}); err != nil {
				return outcome(err)
			}
			return "ok"
		}
		pid, err := again(true, []string{"daemon", a[0], "x"})
		if err != nil {
			return outcome(err)
		}
		var ws syscall.WaitStatus
		_, err = syscall.Wait4(pid, &ws, 0, nil)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile(a[0]); err == nil && len(text) > 0 {
				break
			}
		}
		return outcome(err)
	case "zombies": // children of children that end when their parents have
		for range int(number(a[0])) {
			pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
			if errno != 0 {
				return outcome(errno)
			}
			if pid == 0 {
				unix.RawSyscall(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
				unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
			var ws syscall.WaitStatus
			if _, err := syscall.Wait4(int(pid), &ws, 0, nil); err != nil {
				return outcome(err)
			}
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			states, _ := filepath.Glob("/proc/[0-9]*/stat")
			if len(states) <= 3 {
				return "none left"
			}
			if time.Now().After(end) {
				return strconv.Itoa(len(states)) + " left"
			}
		}
	case "fork bomb": // until there is no room
		for n := 0; ; n++ {
			pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
			if errno != 0 {
				return fmt.Sprintf("%s after %d", outcome(errno), n)
			}
			if pid == 0 {
				for {
					unix.RawSyscall(unix.SYS_PPOLL, 0, 0, 0)
				}
			}
			if len(a) > 0 && n == int(number(a[0])) {
				return "ok"
			}
		}
	case "storm": // N: processes that replace themselves by new ones, each with another parent
		for range int(number(a[0])) {
			pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
			if errno == 0 && pid == 0 {
				unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
				for range 200 { // few, for the machine is others' too
					pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
					if errno == 0 && pid != 0 {
						unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
					}
				}
				unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
		}
		return "ok"
	case "stop all":
		if _, err := again(false, []string{"stay", a[0]}); err != nil {
			return outcome(err)
		}
		for {
			if _, err := os.Stat(a[0]); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		tell([]string{"stopping"}, "ok")
		_ = unix.Kill(-1, unix.SIGSTOP)
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		return "going on"
	}
	return "unknown"
}

func ptyPair() string {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return outcome(err)
	}
	defer unix.Close(m)
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return outcome(err)
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err != nil {
		return outcome(err)
	}
	s, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "slave: " + outcome(err)
	}
	unix.Close(s)
	return "ok"
}

func network(name string, a []string) string {
	switch name {
	case "socket": // FAMILY TYPE PROTOCOL
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(number(a[0])), uintptr(number(a[1])), uintptr(number(a[2])))
		if errno == 0 {
			unix.Close(int(fd))
		}
		return outcome(errno)
	case "socketpair":
		var pair [2]int32
		_, _, errno := unix.RawSyscall6(unix.SYS_SOCKETPAIR, uintptr(number(a[0])), unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)
		return outcome(errno)
	case "dial": // NETWORK ADDRESS
		begun := time.Now()
		c, err := net.DialTimeout(a[0], a[1], 3*time.Second)
		if time.Since(begun) > 2*time.Second {
			return "hangs"
		}
		if err != nil {
			return outcome(err)
		}
		defer c.Close()
		if a[0] == "udp" {
			_, err = c.Write([]byte("x"))
			return outcome(err)
		}
		return "ok"
	case "lookup":
		begun := time.Now()
		_, err := net.LookupHost(a[0])
		if time.Since(begun) > 2*time.Second {
			return "hangs"
		}
		if err != nil {
			return "no such host"
		}
		return "ok"
	case "loopback": // a server and a client of one's own
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			return outcome(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte("hello"))
				c.Close()
			}
		}()
		c, err := net.Dial(a[0], l.Addr().String())
		if err != nil {
			return outcome(err)
		}
		defer c.Close()
		buf := make([]byte, 10)
		n, err := c.Read(buf)
		if err != nil {
			return outcome(err)
		}
		return "got " + string(buf[:n])
	case "interfaces":
		list, err := net.Interfaces()
		if err != nil {
			return outcome(err)
		}
		var names []string
		for _, i := range list {
			names = append(names, i.Name)
		}
		return "got " + strings.Join(names, " ")
	case "shm": // a segment that others would see: KEY
		id, _, errno := unix.RawSyscall(unix.SYS_SHMGET, uintptr(number(a[0])), 4096, unix.IPC_CREAT|0o600)
		if errno != 0 {
			return outcome(errno)
		}
		return "got " + strconv.Itoa(int(id))
	case "mq":
		at := text(a[0])
		fd, _, errno := unix.RawSyscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(at)), uintptr(unix.O_CREAT|unix.O_RDWR), 0o600, 0, 0, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		return outcome(errno)
	}
	return "unknown attempt"
}
