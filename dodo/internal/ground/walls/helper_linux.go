package walls

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"localmcp/internal/confine"
)

// init is the whole program where the process was started as the first one of a sandbox.
// Nothing else may run before it that can wait (see the package comment).
func init() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case HelperName, InsideName:
		os.Exit(help())
	case becomingName:
		os.Exit(become())
	}
}

// helper is the first process of a sandbox.
type helper struct {
	Plan
	descriptors []int // to be given to the server: the terminal's other end, the proxy's listener
	main        int   // pid of the command
}

func help() int {
	var h helper
	if err := h.read(); err != nil {
		return fail(err)
	}
	if err := h.fend(); err != nil {
		return fail(err)
	}
	go h.obey()
	enter := h.enter
	if h.Alone {
		enter = h.enterAlone
	}
	if err := enter(); err != nil {
		return fail(err)
	}
	if len(h.Args) == 0 {
		tell(Report{Started: true})
		tell(Report{Ended: true})
		return 0
	}
	tell(Report{Started: true})
	ws, ok := h.reap()
	if h.Alone {
		sweep()
	}
	if !ok {
		return ExitFailed
	}
	if ws.Signaled() {
		tell(Report{Ended: true, Signal: int(ws.Signal())})
		return 128 + int(ws.Signal())
	}
	tell(Report{Ended: true, Exit: ws.ExitStatus()})
	return ws.ExitStatus()
}

// own reports whether the namespaces were made for this process by the server.
func (h *helper) own() bool { return !h.Alone && !h.Wrapped }

// fend keeps signals from ending this process, which Go's handlers would do. The first process
// of a namespace gets none from inside that it has no handler for, SIGKILL included. Elsewhere
// all are taken and dropped, which wants a thread and two switches to it for each; a signal
// that is ignored instead would be ignored by the command too.
func (h *helper) fend() error {
	if h.Alone {
		signal.Notify(make(chan os.Signal, 1))
		return nil
	}
	return step("signals", confine.DefaultSignals())
}

// enter builds the walls and starts the command in them.
func (h *helper) enter() error {
	if err := h.build(); err != nil {
		return err
	}
	if len(h.Args) == 0 {
		return nil
	}
	h.ready()
	return h.start()
}

// ready says that the command will be run now, and gives away what comes with it.
func (h *helper) ready() {
	tell(Report{Ready: true}, h.descriptors...)
	for _, fd := range h.descriptors {
		unix.Close(fd)
	}
}

// A StepError is a step that failed.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{name, err}
}

// fail says why the command does not run.
func fail(err error) int {
	tell(reportOf(err))
	return ExitFailed
}

func reportOf(err error) Report {
	r := Report{Step: "helper", Reason: err.Error()}
	var s *StepError
	if errors.As(err, &s) {
		r.Step, r.Reason = s.Step, s.Err.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	if len(r.Reason) > LargestReport/2 {
		r.Reason = r.Reason[:LargestReport/2]
	}
	return r
}

// tell sends a report, and descriptors with it. Where the server is gone nobody wants it.
func tell(r Report, descriptors ...int) {
	text, err := json.Marshal(r)
	if err != nil {
		return
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	for {
		if err := unix.Sendmsg(ControlFD, text, rights, nil, unix.MSG_NOSIGNAL); err != unix.EINTR {
			return
		}
	}
}

// read waits for the plan and reads it.
func (h *helper) read() error {
	unix.CloseOnExec(ControlFD)
	f, err := given(ControlFD)
	if err != nil {
		return step("plan", err)
	}
	defer f.Close()
	return step("plan", gob.NewDecoder(bufio.NewReader(f)).Decode(&h.Plan))
}

// obey does what the server orders, and ends everything when the server is gone.
func (h *helper) obey() {
	buf := make([]byte, 16)
	for {
		n, _, _, _, err := unix.Recvmsg(ControlFD, buf, nil, 0)
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			if h.Alone {
				sweep()
			}
			os.Exit(ExitFailed) // the kernel ends the rest of a namespace
		case buf[0] == OrderTerminate:
			h.everyone(unix.SIGTERM)
		case buf[0] == OrderInterrupt:
			h.everyone(unix.SIGINT)
		}
	}
}

// everyone sends a signal to all that the command started.
func (h *helper) everyone(s unix.Signal) {
	if h.Alone {
		for _, p := range descendants() {
			_ = unix.Kill(p.pid, s)
		}
		return
	}
	_ = unix.Kill(-1, s) // of this namespace, and never the first process
}

// build makes the walls, and looks whether they stand.
func (h *helper) build() error {
	if h.own() && !h.Skips("numbers") {
		if err := h.number(); err != nil {
			return step("namespaces", err)
		}
	}
	if h.Loopback && h.own() && !h.Skips("loopback") { // bubblewrap does so itself
		if err := loopbackUp(); err != nil {
			return step("network", err)
		}
	}
	if h.Proxy {
		if err := h.listen(); err != nil {
			return step("proxy", err)
		}
	}
	if h.own() && !h.Skips("root") {
		if err := h.makeRoot(); err != nil {
			return err
		}
	}
	if len(h.Args) > 0 {
		if err := os.Chdir(h.Dir); err != nil {
			return step(StepDir, err)
		}
	}
	if h.Size != nil {
		if err := h.terminal(); err != nil {
			return step("terminal", err)
		}
	}
	if !h.Skips("limits") {
		for _, l := range h.Limits {
			if err := lower(l); err != nil {
				return step("limits", err)
			}
		}
	}
	if err := h.verify(); err != nil {
		return err
	}
	jail := h.weaken(confine.Jail{Run: h.Run, Write: h.Write, Devices: h.Devices, Alone: h.Alone, NoSetID: h.NoSetID})
	if err := jail.Enter(append([]int{ControlFD}, h.descriptors...)...); err != nil {
		return step("confinement", errors.Join(err, errors.Unwrap(err)))
	}
	if err := jail.Verify(); err != nil {
		return step("trial", errors.Join(err, errors.Unwrap(err)))
	}
	return nil
}

// lower sets a limit, or leaves a lower one.
func lower(l Limit) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(l.What, &now); err != nil {
		return err
	}
	if now.Max < l.Most {
		l.Most = now.Max
	}
	return unix.Setrlimit(l.What, &unix.Rlimit{Cur: l.Most, Max: l.Most})
}

// loopbackUp brings the loopback interface of a new network up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// listen makes the socket on which the server will be the command's proxy. A socket stays
// in the network it was made in.
func (h *helper) listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 128); err != nil {
		return err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	url := "http://127.0.0.1:" + strconv.Itoa(at.(*unix.SockaddrInet4).Port)
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		h.Env = SetEnv(h.Env, name, url)
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		h.Env = SetEnv(h.Env, name, "localhost,127.0.0.1,::1")
	}
	h.Env = SetEnv(h.Env, "NODE_USE_ENV_PROXY", "1")
	h.descriptors = append(h.descriptors, fd)
	return nil
}

// terminal makes one and puts it in the place of the standard streams.
func (h *helper) terminal() error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	if err := pty.Setsize(master, &pty.Winsize{Cols: h.Size.Columns, Rows: h.Size.Rows}); err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(slave.Fd()), fd, 0); err != nil {
			return err
		}
	}
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 5)
	if err != nil {
		return err
	}
	// The server's end comes first.
	h.descriptors = append([]int{fd}, h.descriptors...)
	return nil
}

// start runs the command in a session of its own.
func (h *helper) start() error {
	pid, err := syscall.ForkExec(h.Args[0], h.Args, &syscall.ProcAttr{
		Env: h.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: h.Size != nil},
	})
	if err != nil {
		return step(StepRun, err)
	}
	h.main = pid
	letGo()
	return nil
}

// letGo puts the standard streams down: the pipes of a command end with it and what it
// started, not with this process.
func letGo() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
	unix.Close(null)
}

// reap waits for every process that has lost its parent, until the command has ended. It does
// not see that when another goroutine is sweeping.
func (h *helper) reap() (ws unix.WaitStatus, ok bool) {
	for {
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return ws, false
		case pid == h.main:
			return ws, true
		}
	}
}
