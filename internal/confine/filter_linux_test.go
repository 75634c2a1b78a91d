package confine_test

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"localmcp/internal/confine"
)

// data is struct seccomp_data in words of 32 bits, as little-endian processors have it.
func data(arch, number uint32, args ...uint64) []uint32 {
	d := make([]uint32, 16)
	d[0], d[1] = number, arch
	for i, a := range args {
		d[4+2*i], d[5+2*i] = uint32(a), uint32(a>>32)
	}
	return d
}

// judge runs a filter as the kernel does.
func judge(t *testing.T, f []confine.SockFilter, d []uint32) uint32 {
	t.Helper()
	a := uint32(0)
	for pc := 0; pc < len(f); pc++ {
		i := f[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = d[i.K/4]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == i.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > i.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= i.K)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(i.K)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d is not one of ours: %+v", pc, i)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// The program says of every call, with arguments of all kinds, what the table says.
func TestFilterIsItsTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, table := range []confine.Table{
		confine.Calls(false), confine.Calls(true), confine.JailCalls(false, false), confine.JailCalls(true, false), confine.JailCalls(false, true),
	} {
		f := confine.Compile(table)
		if len(f) > unix.BPF_MAXINSNS {
			t.Fatalf("%d instructions", len(f))
		}
		interesting := []uint64{0, 1, 2, 4, 5, 7, unix.PROT_EXEC, unix.CLONE_THREAD, unix.CLONE_NEWUSER, unix.CLONE_NEWNET, unix.TIOCSTI, unix.F_SETLK, unix.PR_SET_VMA, ^uint64(0)}
		for number := range confine.Newest + 20 {
			for range 40 {
				args := make([]uint64, 6)
				for i := range args {
					args[i] = interesting[r.IntN(len(interesting))]
					if r.IntN(3) == 0 {
						args[i] |= uint64(r.Uint32()) << 32 // what the kernel does not look at
					}
					if r.IntN(4) == 0 {
						args[i] = r.Uint64()
					}
				}
				if got, want := judge(t, f, data(confine.AuditArch, number, args...)), table.Expect(number, args); got != want {
					t.Fatalf("call %d with %#x: %#x, want %#x", number, args, got, want)
				}
			}
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(confine.AuditArch, uint32(unix.SYS_MMAP), uint64(0), uint64(1)<<34|unix.PROT_EXEC)
	f.Add(uint32(0x40000003), uint32(20), uint64(0), uint64(0))
	f.Add(confine.AuditArch, uint32(0x40000000), uint64(0), uint64(0))
	table := confine.Calls(false)
	filter := confine.Compile(table)
	f.Fuzz(func(t *testing.T, arch, number uint32, first, third uint64) {
		args := []uint64{first, first, third, third, 0, 0}
		want := confine.RetKill
		if arch == confine.AuditArch {
			want = table.Expect(number, args)
		}
		if got := judge(t, filter, data(arch, number, args...)); got != want {
			t.Errorf("arch %#x call %d: %#x, want %#x", arch, number, got, want)
		}
	})
}

// What must never be allowed, by name: a slip in the table shows here.
func TestFilterDenies(t *testing.T) {
	worker, supervisor := confine.Compile(confine.Calls(false)), confine.Compile(confine.Calls(true))
	for name, number := range map[string]uint32{
		"socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR, "connect": unix.SYS_CONNECT, "bind": unix.SYS_BIND,
		"sendto": unix.SYS_SENDTO, "sendmsg": unix.SYS_SENDMSG, "recvmsg": unix.SYS_RECVMSG, "accept4": unix.SYS_ACCEPT4,
		"execveat": unix.SYS_EXECVEAT, "ptrace": unix.SYS_PTRACE, "mount": unix.SYS_MOUNT, "bpf": unix.SYS_BPF,
		"process_vm_writev": unix.SYS_PROCESS_VM_WRITEV, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "unshare": unix.SYS_UNSHARE,
		"fchmod": unix.SYS_FCHMOD, "fchmodat2": unix.SYS_FCHMODAT2, "truncate": unix.SYS_TRUNCATE, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	} {
		for who, f := range map[string][]confine.SockFilter{"worker": worker, "supervisor": supervisor} {
			if got := judge(t, f, data(confine.AuditArch, number)); got == confine.RetAllow {
				t.Errorf("the %s may call %s", who, name)
			}
		}
	}
	if judge(t, worker, data(confine.AuditArch, unix.SYS_EXECVE)) == confine.RetAllow {
		t.Error("a worker may run programs")
	}
	const fork = uint64(unix.SIGCHLD)
	if judge(t, worker, data(confine.AuditArch, unix.SYS_CLONE, fork)) == confine.RetAllow {
		t.Error("a worker may fork")
	}
	if judge(t, supervisor, data(confine.AuditArch, unix.SYS_CLONE, fork|unix.CLONE_NEWUSER)) == confine.RetAllow {
		t.Error("a supervisor may make a namespace")
	}
}

func TestMasks(t *testing.T) {
	for _, c := range []struct {
		abi                int
		files, net, scopes uint64
		level              confine.Level
	}{
		{0, 0, 0, 0, confine.None},
		{1, 0x1fff, 0, 0, confine.Partial},
		{2, 0x3fff, 0, 0, confine.Partial},
		{3, 0x7fff, 0, 0, confine.Partial},
		{4, 0x7fff, 3, 0, confine.Partial},
		{5, 0xffff, 3, 0, confine.Partial},
		{6, 0xffff, 3, 3, confine.Full},
		{7, 0xffff, 3, 3, confine.Full},
		{8, 0xffff, 3, 3, confine.Full},
		{9, 0x1ffff, 3, 3, confine.Full},
		{10, 0x1ffff, 15, 3, confine.Full},
		{99, 0x1ffff, 15, 3, confine.Full},
	} {
		m := confine.MasksOf(c.abi)
		if m.Files() != c.files || m.Net() != c.net || m.Scopes() != c.scopes || confine.LevelOf(c.abi) != c.level {
			t.Errorf("ABI %d: %#x %#x %#x %s", c.abi, m.Files(), m.Net(), m.Scopes(), confine.LevelOf(c.abi))
		}
	}
}

// A jail lets programs have the sockets that programs have, and no others.
func TestJailSockets(t *testing.T) {
	jail := confine.Compile(confine.JailCalls(false, false))
	for _, c := range []struct {
		family, kind, protocol uint64
		allowed                bool
	}{
		{unix.AF_INET, unix.SOCK_STREAM, 0, true},
		{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP, true},
		{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP, true},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, true},
		{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, true},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, true},
		{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, false}, // ping
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, false},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP | 1<<32, false},
		{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP, false},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, false},
		{unix.AF_VSOCK | 1<<32, unix.SOCK_STREAM, 0, false},
	} {
		got := judge(t, jail, data(confine.AuditArch, unix.SYS_SOCKET, c.family, c.kind, c.protocol))
		if (got == confine.RetAllow) != c.allowed {
			t.Errorf("%+v: %#x", c, got)
		}
	}
}
