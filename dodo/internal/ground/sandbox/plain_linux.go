package sandbox

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// plain is a command without walls, in a session of its own.
type plain struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when exit is there
	exit Exit
}

// startPlain starts a command that may do what the user may do.
func startPlain(s Spec) (*Process, error) {
	if err := keepDescriptors(); err != nil {
		return nil, fault.Wrap(contract.InternalError, err, "files that dodo has open cannot be kept from commands, so none was run").
			WithHint("start dodo without open files beside its input and output, and with /proc")
	}
	c := exec.Command(s.Args[0], s.Args[1:]...)
	c.Dir, c.Env = s.Dir, s.Env
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &Process{Isolation: None}
	if s.Terminal != nil {
		master, slave, err := openTerminal(*s.Terminal)
		if err != nil {
			return nil, fault.Wrap(contract.NotSupported, err, "a terminal cannot be had here")
		}
		defer slave.Close()
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		c.SysProcAttr.Setctty = true
		p.Terminal = master
	} else {
		// A nil *os.File is not a nil io.Reader.
		if s.Stdin != nil {
			c.Stdin = s.Stdin
		}
		if s.Stdout != nil {
			c.Stdout = s.Stdout
		}
		if s.Stderr != nil {
			c.Stderr = s.Stderr
		}
	}
	if err := c.Start(); err != nil {
		if p.Terminal != nil {
			p.Terminal.Close()
		}
		return nil, startFault(err)
	}
	w := &plain{cmd: c, done: make(chan struct{})}
	go func() {
		_ = c.Wait() // how it ended is in the state
		w.exit = exitOf(c.ProcessState.Sys().(syscall.WaitStatus))
		// What it left behind in its group has had its time.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		close(w.done)
	}()
	p.p = w
	return p, nil
}

// keepDescriptors keeps what this process was given open, or opened in a careless way, from the
// programs that it starts. Where there are walls the first process in them does so.
func keepDescriptors() error {
	err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return err
	}
	list, err := os.ReadDir("/proc/self/fd") // before Linux 5.11, or where a filter does not know the call
	if err != nil {
		return err
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// openTerminal opens both ends of a terminal. Reading the caller's end can be interrupted.
func openTerminal(size Size) (master, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	err = pty.Setsize(m, &pty.Winsize{Cols: size.Columns, Rows: size.Rows})
	var fd int
	if err == nil {
		// The library's file is in blocking mode, for good.
		fd, err = unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		slave.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}

func (w *plain) pid() int { return w.cmd.Process.Pid }

func (w *plain) ended() <-chan struct{} { return w.done }

func (w *plain) wait() Exit {
	<-w.done
	return w.exit
}

func (w *plain) terminate() { w.signal(syscall.SIGTERM) }
func (w *plain) interrupt() { w.signal(syscall.SIGINT) }
func (w *plain) kill()      { w.signal(syscall.SIGKILL) }

// signal goes to the whole group.
func (w *plain) signal(s syscall.Signal) {
	select {
	case <-w.done: // its pid may be another's by now
	default:
		_ = syscall.Kill(-w.cmd.Process.Pid, s)
	}
}

// exitOf reads a wait status.
func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: -1, Signal: signalName(ws.Signal())}
	}
	return Exit{Code: ws.ExitStatus()}
}

// startFault says why a program does not start.
func startFault(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fault.Wrap(contract.NotFound, err, "the program, or what its first line names to run it, is not there").
			WithHint("check the name of the program and its #! line")
	case errors.Is(err, os.ErrPermission):
		return fault.Wrap(contract.PathDenied, err, "the file cannot be run").WithHint("name a program, or a script with the permission to be run")
	case errors.Is(err, syscall.ENOEXEC):
		return fault.Wrap(contract.InvalidInput, err, "the file is no program that this machine can run").WithHint("run it by its interpreter, such as sh FILE")
	case errors.Is(err, syscall.E2BIG):
		return fault.Wrap(contract.ResourceLimit, err, "the arguments and the environment are too large for one program").WithHint("put them into a file")
	case errors.Is(err, syscall.ETXTBSY):
		return fault.Wrap(contract.Conflict, err, "the program is being written now").WithHint("nothing was run; try again").Retry()
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return fault.Wrap(contract.ResourceLimit, err, "the system has no room for another process now").Retry()
	}
	return err
}
