package confine

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

const (
	// ownBinary is the program as it was started, also when its file was replaced since.
	ownBinary = "/proc/self/exe"
	// letterFD is where a worker finds the letter of the one before it.
	letterFD   = 3
	letterName = "confine-letter"
	// Again is the exit status of a worker that left a letter and wants a new one to go on
	// in its place.
	Again = 75
	// grace is how long a worker has to end after it was told to.
	grace = 1500 * time.Millisecond
)

// Supervise starts the program again with these arguments (the first is its name) and
// this process's environment and standard streams, and returns the exit status it ends
// with. One that ends with [Again] is replaced; one that was killed is not, because what
// it had read is lost, and gives a fault. When ctx is done, or who started this process
// is gone, the worker is told to end and later killed.
//
// The process confines itself before ([Policy.Supervisor]), on the same goroutine.
// Supervise keeps its thread for ever: the kernel kills a worker when the thread that
// started it ends.
func Supervise(ctx context.Context, args []string) (int, error) {
	runtime.LockOSThread()
	letter, err := newLetter()
	if err != nil {
		return 0, refused(err, "memory for handing over cannot be had")
	}
	for {
		status, err := runWorker(ctx, args, letter)
		switch {
		case err != nil || status != Again:
			return status, err
		case ctx.Err() != nil:
			return 0, nil // there is nothing to go on with
		}
	}
}

func newLetter() (int, error) {
	fd, err := unix.MemfdCreate(letterName, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(letterName, unix.MFD_CLOEXEC)
	}
	return fd, err
}

// runWorker runs one worker to its end.
func runWorker(ctx context.Context, args []string, letter int) (int, error) {
	pid, err := syscall.ForkExec(ownBinary, args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, uintptr(letter)},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fault.Wrap(Refused, err, "the program cannot start itself again").WithHint("look whether /proc is mounted and how many processes you may have")
	}
	w := worker{pid: pid}
	stop := context.AfterFunc(ctx, func() { w.signal(unix.SIGTERM) })
	defer stop()
	kill := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { w.signal(unix.SIGKILL) })
	})
	defer kill()
	ws, err := w.wait()
	switch {
	case err != nil:
		return 0, err
	case ws.Exited():
		return ws.ExitStatus(), nil
	case ctx.Err() != nil:
		return 0, nil // it was told to end
	}
	return 0, fault.New(Died, "the worker process was killed by signal %d (%s)", ws.Signal(), ws.Signal()).
		WithHint("start the program again; nothing that was complete is lost")
}

// worker is a running child.
type worker struct {
	pid int

	mu   sync.Mutex // guards dead
	dead bool       // its pid may be another's by now
}

func (w *worker) signal(s unix.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead {
		_ = unix.Kill(w.pid, s) // it may just have ended
	}
}

// wait waits for the end without taking the pid away, so that a signal meets nobody else.
func (w *worker) wait() (ws unix.WaitStatus, err error) {
	for {
		err := unix.Waitid(unix.P_PID, w.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for {
		_, err = unix.Wait4(w.pid, &ws, 0, nil)
		if err != unix.EINTR {
			return ws, err
		}
	}
}

// Letter is what a worker leaves for the one that takes its place.
type Letter struct{ f *os.File }

// Inherit returns the letter that the worker before left, which is empty for the first
// one, and the means to leave another. It fails in a process that no supervisor started.
func Inherit() (*Letter, []byte, error) {
	// The name of memory that was made for nothing else.
	if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(letterFD)); err != nil || !strings.HasPrefix(name, "/memfd:"+letterName) {
		return nil, nil, fault.New(Refused, "a worker is started by its supervisor only").WithHint("leave the flag away")
	}
	unix.CloseOnExec(letterFD)
	f := os.NewFile(letterFD, letterName)
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return nil, nil, err
	}
	return &Letter{f}, text, f.Truncate(0)
}

// Descriptors are what [Self] has to keep open. No letter has none.
func (l *Letter) Descriptors() []int {
	if l == nil {
		return nil
	}
	return []int{letterFD}
}

// Leave writes the letter. The worker then ends with [Again].
func (l *Letter) Leave(text []byte) error {
	_, err := l.f.WriteAt(text, 0)
	return err
}
