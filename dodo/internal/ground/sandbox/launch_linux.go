package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/fault"
)

// startTime is how long the walls of a command may take.
const startTime = 20 * time.Second

// walled is a command in a sandbox.
type walled struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	group   *group // nil where there is none
	level   Isolation
	over    chan struct{} // closed when nothing of it is left
	done    chan struct{} // closed when exit is there
	exit    Exit

	mu   sync.Mutex  // held while over is closed, and while it must not be; guards late
	late *time.Timer // ends a first process that does not end what it should
}

// streams are what a command reads and writes; nil is /dev/null.
type streams struct{ in, out, err *os.File }

// A plan is what the first process is told, and what the server does itself.
type plan struct {
	walls.Plan
	level   Isolation
	empty   string // a file, which bubblewrap shows in the place of others
	emptied int    // how many of Covers are not for a secret
	group   string // a directory of the cgroup tree to make a group in; empty is none
}

// outline is the part of a plan that the first process is started by.
func (b *Box) outline(level Isolation, loopback bool) plan {
	return plan{level: level, group: b.groups, Plan: walls.Plan{
		Alone: level == Reduced, Wrapped: level == Bwrap, Loopback: loopback && level != Reduced, NoSetID: os.Geteuid() == 0, User: os.Geteuid(), Group: os.Getegid(), Limits: limits(level == Reduced),
	}}
}

// begin starts a first process, by bubblewrap where wrap says so. It does nothing before run
// gives it its plan; what was begun is either run or abandoned.
func (b *Box) begin(p plan, wrap []string, s streams) (*walled, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, startFault(err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "control")
	defer theirs.Close()
	ours := os.NewFile(uintptr(ends[0]), "control")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, startFault(err)
	}
	w := &walled{control: conn.(*net.UnixConn), level: p.level, over: make(chan struct{}), done: make(chan struct{})}
	w.cmd = b.command(p, wrap, s, theirs)
	if p.group != "" {
		if w.group, err = newGroup(p.group); err != nil {
			w.control.Close()
			return nil, &walls.StepError{Step: "cgroup", Err: err}
		}
		w.cmd.SysProcAttr.UseCgroupFD, w.cmd.SysProcAttr.CgroupFD = true, int(w.group.fd.Fd())
	}
	if err := w.cmd.Start(); err != nil {
		w.control.Close()
		w.group.remove()
		return nil, &walls.StepError{Step: "namespaces", Err: err}
	}
	return w, nil
}

// run lets what was begun build the walls and waits until the command runs. The caller
// follows it.
func (w *walled) run(ctx context.Context, p plan) (*Process, error) {
	process := &Process{Isolation: w.level, p: w}
	if err := w.give(p); err != nil {
		w.abandon()
		return nil, startFault(err)
	}
	r, err := w.first(ctx, process)
	if err == nil && !r.Started {
		err = &walls.StepError{Step: r.Step, Err: &walls.Refusal{Errno: syscall.Errno(r.Errno), Reason: r.Reason}}
	}
	if err != nil {
		process.close()
		w.abandon()
		return nil, err
	}
	return process, nil
}

// give sends the plan. Where the first process has ended, first finds out why.
func (w *walled) give(p plan) error {
	file, err := p.File()
	if err != nil {
		return err
	}
	defer file.Close()
	_, _, err = w.control.WriteMsgUnix([]byte{walls.OrderBuild}, unix.UnixRights(int(file.Fd())), nil)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// abandon ends a first process whose command does not run after all.
func (w *walled) abandon() {
	if w.level != Reduced { // where it ends what it may have started
		_ = w.cmd.Process.Kill()
	}
	w.control.Close()
	_ = w.cmd.Wait()
	w.group.remove()
}

// close gives up what came with a process that does not run after all.
func (p *Process) close() {
	if p.Terminal != nil {
		p.Terminal.Close()
	}
	if p.Proxy != nil {
		p.Proxy.Close()
	}
}

// command is the helper's process.
func (b *Box) command(p plan, wrap []string, s streams, control *os.File) *exec.Cmd {
	c := &exec.Cmd{Path: b.o.Helper, Args: []string{walls.HelperName}, Env: walls.Environment(), ExtraFiles: []*os.File{control}}
	if s.in != nil {
		c.Stdin = s.in
	}
	if s.out != nil {
		c.Stdout = s.out
	}
	if s.err != nil {
		c.Stderr = s.err
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	switch {
	case p.level == Full:
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
		if p.Loopback {
			c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
		}
		for name, flag := range map[string]uintptr{
			"mnt": syscall.CLONE_NEWNS, "pid": syscall.CLONE_NEWPID, "ipc": syscall.CLONE_NEWIPC, "uts": syscall.CLONE_NEWUTS, "net": syscall.CLONE_NEWNET,
		} {
			if p.Skips(name) {
				c.SysProcAttr.Cloneflags &^= flag
			}
		}
		// As without a user namespace the new process shares the memory until it runs the
		// program, and this thread waits: to copy the tables of a server's memory takes longer than
		// all else here. It needs nothing from this side meanwhile; its numbers it gives itself.
		c.SysProcAttr.Cloneflags |= syscall.CLONE_VM | syscall.CLONE_VFORK
		c.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	case len(wrap) > 0:
		c.Path, c.Args = wrap[0], wrap
	}
	return c
}

// first waits until the command runs or the helper says why it does not, and takes what comes
// with it.
func (w *walled) first(ctx context.Context, p *Process) (r walls.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = w.control.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		if stop() {
			_ = w.control.SetReadDeadline(time.Time{})
		}
	}()
	buf, rights := make([]byte, walls.LargestReport), make([]byte, unix.CmsgSpace(2*4))
	for ready := false; ; ready = true {
		n, rn, _, _, err := w.control.ReadMsgUnix(buf, rights)
		switch {
		case ctx.Err() != nil:
			f := fault.Wrap(contract.Timeout, ctx.Err(), "the command was not started in time")
			if ready {
				return r, f // it may have begun
			}
			return r, f.WithHint("nothing was run; try again").Retry()
		case (err != nil || n == 0) && ready:
			return walls.Report{Started: true}, nil // and it has ended its first process
		case err != nil || n == 0:
			return r, &walls.StepError{Step: "helper", Err: fmt.Errorf("it ended before it could say why: %w", errors.Join(err, w.cmd.Wait()))}
		}
		r = walls.Report{}
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			return r, &walls.StepError{Step: "helper", Err: err}
		}
		if !r.Ready {
			return r, nil
		}
		fds, err := walls.Descriptors(rights[:rn])
		if err != nil {
			return r, &walls.StepError{Step: "helper", Err: err}
		}
		if err := p.take(fds); err != nil {
			return r, &walls.StepError{Step: "helper", Err: err}
		}
	}
}

// take makes files of descriptors: a terminal is a character device, a listener a socket.
func (p *Process) take(fds []int) error {
	for _, fd := range fds {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFCHR {
			if err := unix.SetNonblock(fd, true); err != nil {
				return err
			}
			p.Terminal = os.NewFile(uintptr(fd), "terminal")
			continue
		}
		f := os.NewFile(uintptr(fd), "proxy")
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return err
		}
		p.Proxy = l
	}
	return nil
}

// follow waits for the end, and then looks what is to be told of it.
func (w *walled) follow(p *Process, told func() []string) {
	defer close(w.done)
	buf := make([]byte, walls.LargestReport)
	var last walls.Report
	for {
		n, err := w.control.Read(buf)
		if err != nil || n == 0 {
			break
		}
		_ = json.Unmarshal(buf[:n], &last)
	}
	err := w.cmd.Wait() // when it returns the namespace is empty
	w.mu.Lock()
	close(w.over)
	if w.late != nil {
		w.late.Stop()
	}
	w.mu.Unlock()
	w.control.Close()
	w.group.remove()
	if p.Proxy != nil {
		p.Proxy.Close()
	}
	switch {
	case last.Ended && last.Signal != 0:
		w.exit = Exit{Code: -1, Signal: signalName(syscall.Signal(last.Signal))}
	case last.Ended:
		w.exit = Exit{Code: last.Exit}
	default: // its first process was killed
		w.exit = Exit{Code: -1, Signal: "SIGKILL"}
		var e *exec.ExitError
		if errors.As(err, &e) {
			if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				w.exit.Signal = signalName(ws.Signal())
			}
		}
	}
	w.exit.Notes = told()
}

func (w *walled) pid() int { return w.cmd.Process.Pid }

func (w *walled) ended() <-chan struct{} { return w.over }

// isOver is ended for who holds the lock.
func (w *walled) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

func (w *walled) wait() Exit {
	<-w.done
	return w.exit
}

func (w *walled) terminate() { _, _ = w.control.Write([]byte{walls.OrderTerminate}) }
func (w *walled) interrupt() { _, _ = w.control.Write([]byte{walls.OrderInterrupt}) }

// kill ends the first process, and the kernel the rest of the namespace. Where there is none,
// or another program is between, the end of the socket tells the first process to do it.
func (w *walled) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isOver() {
		return
	}
	if w.level == Full { // cmd is the first process of its namespace
		_ = w.cmd.Process.Kill()
		return
	}
	_ = w.control.CloseWrite()
	_ = w.cmd.Process.Signal(syscall.SIGCONT) // before signals could be scoped it may have been stopped
	if w.late == nil {
		w.late = time.AfterFunc(walls.SweepTime+5*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.isOver() {
				_ = w.cmd.Process.Kill()
			}
		})
	}
}

// failed says to the caller why a command does not run.
func failed(err error) error {
	var s *walls.StepError
	if !errors.As(err, &s) {
		return err
	}
	switch s.Step {
	case walls.StepRun:
		return startFault(s.Err)
	case walls.StepDir:
		if errors.Is(s.Err, os.ErrPermission) {
			return fault.Wrap(contract.PathDenied, s.Err, "the permissions of the directory to start in keep the command out").WithHint("the owner changes them, such as with chmod u+rwx")
		}
		return fault.Wrap(contract.NotFound, s.Err, "the directory to start in is not there").WithHint("check cwd")
	case walls.StepCover, walls.StepMoved:
		return fault.Wrap(contract.Conflict, s.Err, "files of the workspace were moved while the command was being started").
			WithHint("nothing was run; try again").Retry()
	}
	return fault.Wrap(contract.NotSupported, s.Err, "the walls around the command could not be built (%s); it was not run", visible(s.Step)).
		WithHint("the owner finds out more with: dodo doctor")
}

// visible keeps a step's name plain.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
