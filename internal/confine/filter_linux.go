package confine

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A table is a filter before it is a program: what is done with each call that stands
// here, and with all others.
type table struct {
	calls     []call
	otherwise uint32
}

// A call is one system call. The first of its cases that holds decides; where none does,
// action is done.
type call struct {
	number uint32
	cases  []branch
	action uint32
}

// A branch holds when all its conditions do.
type branch struct {
	conditions []condition
	action     uint32
}

// A condition holds when (argument & mask) is one of values, or with not is none of them.
// Only the lower 32 bits of an argument are looked at, as the kernel does for every
// argument that stands in our tables.
type condition struct {
	arg    uint32
	mask   uint32
	values []uint32
	not    bool
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
	list := slices.SortedFunc(slices.Values(t.calls), func(a, b call) int { return cmp.Compare(a.number, b.number) })
	p := make(program, 0, 512)
	p.add(
		load(atArch),
		equal(auditArch, 1),
		give(retKill), // a 32-bit call would be read by the wrong table
		load(atNumber),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: newest, Jf: 1}, // x32 calls have bit 30 set, and are above too
		give(retUnknown),
	)
	p.search(list, t.otherwise)
	return p
}

// search looks for the number in a sorted list.
func (p *program) search(list []call, otherwise uint32) {
	if len(list) <= 3 {
		for _, c := range list {
			at := len(*p)
			p.add(unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: c.number, Jf: 1}, jump())
			(*p)[at].Jt, (*p)[at].Jf = 1, 0
			p.answer(c)
			p.land(at + 1)
		}
		p.add(give(otherwise))
		return
	}
	half := len(list) / 2
	at := len(*p)
	p.add(
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: list[half].number, Jf: 1},
		jump(), // further than the other jumps reach
	)
	p.search(list[:half], otherwise)
	p.land(at + 1)
	p.search(list[half:], otherwise)
}

// jump goes to where land says later.
func jump() unix.SockFilter { return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA} }

// land makes the jump at a place lead here.
func (p *program) land(at int) { (*p)[at].K = uint32(len(*p) - at - 1) }

// answer ends the program for a call of the table.
func (p *program) answer(c call) {
	for _, b := range c.cases {
		var away []int
		for _, d := range b.conditions {
			p.add(load(atArgs+8*d.arg), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: d.mask})
			n := len(d.values)
			if !d.not {
				for i, v := range d.values {
					p.add(equal(v, n-i)) // over the others and the jump
				}
				away = append(away, len(*p))
				p.add(jump())
				continue
			}
			for i, v := range d.values {
				p.add(equal(v, n-i)) // to the jump
			}
			away = append(away, len(*p)+1)
			p.add(unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, jump())
		}
		p.add(give(b.action))
		for _, at := range away {
			p.land(at)
		}
	}
	p.add(give(c.action))
}

// setFilter puts a filter in force on the calling thread, or with the flag for it on all.
func setFilter(f []unix.SockFilter, flags uintptr) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	switch {
	case errno != 0:
		return fmt.Errorf("set a filter: %w", errno)
	case tid != 0:
		return fmt.Errorf("set a filter: thread %d has another one", tid)
	}
	return nil
}
