package sandbox_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/sandbox"
)

// A host is what the machine offers to everybody on it, with a count of who came.
type host struct {
	tcp4, tcp6, udp, abstract string
	came                      atomic.Int32
}

func newHost(t testing.TB) *host {
	h := &host{}
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Logf("%s %s: %v", network, address, err)
			return ""
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				h.came.Add(1)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	h.tcp4, h.tcp6 = listen("tcp4", "127.0.0.1:0"), listen("tcp6", "[::1]:0")
	h.abstract = "@sandbox-" + h.tcp4
	listen("unix", h.abstract)
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { c.Close() })
	h.udp = c.LocalAddr().String()
	go func() {
		buf := make([]byte, 10)
		for {
			if _, _, err := c.ReadFrom(buf); err != nil {
				return
			}
			h.came.Add(1)
		}
	}()
	return h
}

// Case 59: a command connects to the machine's loopback by TCP and UDP: nothing arrives.
func TestCase59HostLoopback(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		for _, network := range []sandbox.Network{sandbox.NoNetwork, sandbox.Proxy} {
			h := newHost(t)
			want := g.by("ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL", "EPERM")
			list := []try{{"dial|tcp|" + h.tcp4, want}, {"dial|udp|" + h.udp, g.by("ok|ECONNREFUSED", "EPERM")}, {"interfaces", g.by("got lo", ".*")}}
			if h.tcp6 != "" {
				list = append(list, try{"dial|tcp|" + h.tcp6, want})
			}
			a := g.tries(job{Spec: spec{Network: network}}, list...)
			if h.came.Load() != 0 {
				t.Error("something arrived")
			}
			if told := len(a.Notes) > 0; told != (g.level == sandbox.Reduced && network == sandbox.Proxy) {
				t.Error(a.Notes)
			}
		}
	})
}

// Case 60: a command connects by other names of the machine and to the networks beside it: unreachable.
func TestCase60OtherAddresses(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		h := newHost(t)
		_, port, _ := net.SplitHostPort(h.tcp4)
		var list []try
		for _, address := range []string{"[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, "[::]:" + port, "127.1.2.3:" + port, "169.254.169.254:80", "10.0.0.1:80", "192.168.1.1:80", "1.1.1.1:443", "[fe80::1%25lo]:80", "[2001:db8::1]:80"} {
			list = append(list, try{"dial|tcp|" + address, g.by("ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL|EINVAL|EHOSTUNREACH", "EPERM|EINVAL")})
		}
		g.tries(job{}, list...)
		if h.came.Load() != 0 {
			t.Error("something arrived")
		}
	})
}

// Case 61: a command asks for names, by packets and by the sockets of name services: it fails at once.
func TestCase61Names(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{"lookup|example.org", "no such host"},
			try{"dial|unix|/var/run/nscd/socket", g.by("ENOENT", "EPERM")}, try{"dial|unix|/run/systemd/resolve/io.systemd.Resolve", g.by("ENOENT", "EPERM")})
	})
}

// Case 62: a command opens a socket to the hypervisor, also with bit 32 set and by io_uring: refused.
func TestCase62Hypervisor(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		want := g.by("EAFNOSUPPORT", "EPERM")
		g.tries(job{}, try{"socket|40|1|0", want}, try{"socket|40+high|1|0", want}, try{"socket|40|2|0", want}, try{"socketpair|40", "EAFNOSUPPORT"},
			try{name("syscall|%d|8|0", unix.SYS_IO_URING_SETUP), "ENOSYS"})
	})
}

// Case 63: a command opens raw, ping, packet and other sockets that are not for programs: refused.
func TestCase63OtherSockets(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, network := range []sandbox.Network{sandbox.NoNetwork, sandbox.Host} {
			for _, s := range []string{"2|3|1", "2|3|255", "10|3|58", "2|2|1", "10|2|58", "2|2+0x80000|1", "2|1|132", "2|6|33", "2|2|136", "2|1|256", "2|5|132", "2|10|0"} {
				list = append(list, try{"socket|" + s, "EPERM"})
			}
			for _, s := range []string{"17|3|0", "44|3|0", "38|5|0", "16|3|9", "16|3|12", "16|3|4", "16|3|15", "43|1|0", "21|5|0", "31|3|1", "29|3|1", "30|1|0", "15|3|2", "16|3|0+high+9"} {
				list = append(list, try{"socket|" + s, g.by("EAFNOSUPPORT", "EPERM")})
			}
			for _, s := range []string{"2|1|0", "2|1|6", "2|2|17", "10|1|0", "1|1|0", "1|2|0", "16|3|0", "2|1+0x80800|6"} {
				list = append(list, try{"socket|" + s, g.by("ok", "EPERM")})
			}
			g.tries(job{Spec: spec{Network: network}}, list...)
		}
	})
}

// Case 64: a command connects to an abstract socket of the machine: ECONNREFUSED, with the machine's network EPERM.
func TestCase64AbstractSocket(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		h := newHost(t)
		g.tries(job{}, try{"dial|unix|" + h.abstract, g.by("ECONNREFUSED", "EPERM")})
		g.tries(job{Spec: spec{Network: sandbox.Host}}, try{"dial|unix|" + h.abstract, "EPERM"}, try{"dial|tcp|" + h.tcp4, g.by("ok", "EPERM")})
		if g.level == sandbox.Reduced && h.came.Load() != 0 || h.came.Load() > 1 {
			t.Error("something arrived")
		}
	})
}

// Case 67: descriptors that came by a socket: a command has 0, 1 and 2 alone, with a proxy and with a terminal too.
func TestCase67Descriptors(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{Spec: spec{Network: sandbox.Proxy}}, try{"fds", "got 0 1 2"})
		g.tries(job{Spec: spec{Terminal: &sandbox.Size{Columns: 80, Rows: 24}, Network: sandbox.Proxy}}, try{"fds", "got 0 1 2"})
	})
}

// Case 69: a command serves and connects to itself: works, but not when reduced.
func TestCase69OwnLoopback(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		want := g.by("got hello", "EPERM")
		g.tries(job{}, try{"loopback|tcp4|127.0.0.1:0", want}, try{"loopback|tcp6|[::1]:0", want}, try{"loopback|unix|" + g.root + "/sock", want}, try{"loopback|unix|@own", want},
			try{"socketpair|1", "ok"})
	})
}

// Case 70: a command calls io_uring, bpf, performance events, page faults and keyrings: ENOSYS or EPERM.
func TestCase70KernelCalls(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, n := range []int{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3} {
			list = append(list, try{name("syscall|%d|8|0", n), "ENOSYS"})
		}
		for _, n := range []int{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
			unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME,
			unix.SYS_MOVE_PAGES, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_VHANGUP} {
			list = append(list, try{name("syscall|%d|0|0|0|0|0", n), "EPERM"})
		}
		g.tries(job{}, list...)
	})
}

// Case 71: a command makes namespaces, mounts and roots: refused.
func TestCase71Namespaces(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		var list []try
		for _, flag := range []int{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWTIME} {
			list = append(list, try{name("syscall|%d|%d", unix.SYS_UNSHARE, flag), "EPERM"})
			if flag != unix.CLONE_NEWTIME { // which clone takes for a signal
				list = append(list, try{name("syscall|%d|%d|0", unix.SYS_CLONE, flag|17), "EPERM"}, try{name("syscall|%d|%d+high|0", unix.SYS_CLONE, flag|17), "EPERM"})
			}
		}
		for _, n := range []int{unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
			unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, 467 /* open_tree_attr */} {
			list = append(list, try{name("syscall|%d|0|0|0|0|0", n), "EPERM"})
		}
		g.tries(job{}, list...)
	})
}

// Case 72: a command makes a 32-bit call, and one of x32: SIGSYS ends it, ENOSYS.
func TestCase72ForeignCalls(t *testing.T) {
	if strings.Contains(unix.ByteSliceToString(machine()), "aarch64") {
		t.Skip("only amd64 has a second door")
	}
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{name("syscall|%d", 0x40000000+39), "ENOSYS"}, try{"syscall|100000", "ENOSYS"})
		a := g.ran(job{Spec: spec{Args: attempts(g, "int80")}})
		if a.Exit.Signal != "SIGSYS" || a.Exit.Code != -1 || a.Out != "" {
			t.Errorf("%+v", a)
		}
	})
}

func machine() []byte {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return u.Machine[:]
}

// Case 73: a command opens files by handles: EPERM.
func TestCase73Handles(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		g.tries(job{}, try{name("syscall|%d|0|0|0", unix.SYS_OPEN_BY_HANDLE_AT), "EPERM"}, try{name("syscall|%d|0|0|0|0|0", unix.SYS_NAME_TO_HANDLE_AT), "EPERM"})
	})
}
