package confine

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call is a system call that is allowed: always, or when (argument & mask) is one of
// values. Only the lower 32 bits of an argument are looked at, as the kernel does for
// every argument that stands here.
type call struct {
	number uint32
	arg    uint32
	mask   uint32
	values []uint32 // nil: whatever the arguments
	action uint32   // what is done then
}

// table is what a filter allows, and what it answers as a kernel would that has never
// heard of it.
type table struct {
	allowed []call
	unknown []uint32
}

// Places in struct seccomp_data.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

const (
	retAllow   = unix.SECCOMP_RET_ALLOW
	retKill    = unix.SECCOMP_RET_KILL_PROCESS
	retDenied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retUnknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// newest is the last system call that was known when the tables were written. What is
// invented later is answered as unknown, so that a program falls back to what it had.
const newest = unix.SYS_RSEQ_SLICE_YIELD

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// equal skips instructions when the loaded word is k.
func equal(k uint32, skip int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(skip), K: k}
}

func give(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// A program is a filter as it is being written.
type program []unix.SockFilter

func (p *program) add(f ...unix.SockFilter) { *p = append(*p, f...) }

// compile writes a table as a program for the kernel, a search by halves: to install it
// the kernel runs it once for every number there is, and remembers which calls are
// always allowed.
func compile(t table) []unix.SockFilter {
	list := slices.Clone(t.allowed)
	for _, n := range t.unknown {
		list = append(list, call{number: n, action: retUnknown})
	}
	slices.SortFunc(list, func(a, b call) int { return cmp.Compare(a.number, b.number) })
	p := make(program, 0, 512)
	p.add(
		load(atArch),
		equal(auditArch, 1),
		give(retKill), // a 32-bit call would be read by the wrong table
		load(atNumber),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: newest, Jf: 1}, // x32 calls have bit 30 set, and are above too
		give(retUnknown),
	)
	p.search(list)
	return p
}

// search looks for the number in a sorted list.
func (p *program) search(list []call) {
	if len(list) <= 3 {
		for _, c := range list {
			at := len(*p)
			p.add(unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: c.number})
			p.answer(c)
			(*p)[at].Jf = uint8(len(*p) - at - 1)
		}
		p.add(give(retDenied))
		return
	}
	half := len(list) / 2
	at := len(*p)
	p.add(
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: list[half].number, Jf: 1},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA}, // further than the other jumps reach
	)
	p.search(list[:half])
	(*p)[at+1].K = uint32(len(*p) - at - 2)
	p.search(list[half:])
}

// answer ends the program for a call of the table.
func (p *program) answer(c call) {
	if c.values == nil {
		p.add(give(c.action))
		return
	}
	p.add(load(atArgs+8*c.arg), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
	for i, v := range c.values {
		p.add(equal(v, len(c.values)-i))
	}
	p.add(give(retDenied), give(c.action))
}

// setFilter puts a filter in force on every thread.
func setFilter(f []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	switch {
	case errno != 0:
		return fmt.Errorf("set a filter: %w", errno)
	case tid != 0:
		return fmt.Errorf("set a filter: thread %d has another one", tid)
	}
	return nil
}
