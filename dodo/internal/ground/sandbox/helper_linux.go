package sandbox

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

// Helper is the first thing that main does: where the program was started as the first
// process of a sandbox it builds the walls, runs the command and exits with its status;
// else it returns at once.
func Helper() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case helperName, inside:
		os.Exit(help())
	case becomingName:
		os.Exit(become())
	}
}

// helper is the first process of a sandbox.
type helper struct {
	plan
	descriptors []int // to be given to the server: the terminal's other end, the proxy's listener
	main        int   // pid of the command
}

func help() int {
	// Of Go's handlers a signal from inside would end the first process. What has a handler
	// is set back for the programs it starts; what is ignored would stay so.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	var h helper
	if err := h.read(); err != nil {
		return fail(err)
	}
	go h.obey()
	enter := h.enter
	if h.Level == Reduced {
		enter = h.enterAlone
	}
	if err := enter(); err != nil {
		return fail(err)
	}
	if len(h.Args) == 0 {
		tell(report{Started: true})
		tell(report{Ended: true})
		return 0
	}
	tell(report{Started: true})
	ws, ok := h.reap()
	if h.Level == Reduced {
		sweep()
	}
	if !ok {
		return exitFailed
	}
	if ws.Signaled() {
		tell(report{Ended: true, Signal: int(ws.Signal())})
		return 128 + int(ws.Signal())
	}
	tell(report{Ended: true, Exit: ws.ExitStatus()})
	return ws.ExitStatus()
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
	tell(report{Ready: true}, h.descriptors...)
	for _, fd := range h.descriptors {
		unix.Close(fd)
	}
}

// stepError is a step that failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

// fail says why the command does not run.
func fail(err error) int {
	tell(reportOf(err))
	return exitFailed
}

func reportOf(err error) report {
	r := report{Step: "helper", Reason: err.Error()}
	var s *stepError
	if errors.As(err, &s) {
		r.Step, r.Reason = s.step, s.err.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	if len(r.Reason) > largestReport/2 {
		r.Reason = r.Reason[:largestReport/2]
	}
	return r
}

// tell sends a report, and descriptors with it. Where the server is gone nobody wants it.
func tell(r report, descriptors ...int) {
	text, err := json.Marshal(r)
	if err != nil {
		return
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	for {
		if err := unix.Sendmsg(controlFD, text, rights, nil, unix.MSG_NOSIGNAL); err != unix.EINTR {
			return
		}
	}
}

// read reads the plan.
func (h *helper) read() error {
	for _, fd := range []int{controlFD, planFD} {
		unix.CloseOnExec(fd)
	}
	f := os.NewFile(planFD, "plan")
	defer f.Close()
	return step("plan", gob.NewDecoder(bufio.NewReader(f)).Decode(&h.plan))
}

// obey does what the server orders, and ends everything when the server is gone.
func (h *helper) obey() {
	buf := make([]byte, 16)
	for {
		n, _, _, _, err := unix.Recvmsg(controlFD, buf, nil, 0)
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			if h.Level == Reduced {
				sweep()
			}
			os.Exit(exitFailed) // the kernel ends the rest of a namespace
		case buf[0] == orderTerminate:
			h.everyone(unix.SIGTERM)
		case buf[0] == orderInterrupt:
			h.everyone(unix.SIGINT)
		}
	}
}

// everyone sends a signal to all that the command started.
func (h *helper) everyone(s unix.Signal) {
	if h.Level == Reduced {
		for _, p := range descendants() {
			_ = unix.Kill(p.pid, s)
		}
		return
	}
	_ = unix.Kill(-1, s) // of this namespace, and never the first process
}

// build makes the walls, and looks whether they stand.
func (h *helper) build() error {
	if h.Loopback && h.Level == Full && !h.skips("loopback") { // bubblewrap does so itself
		if err := loopbackUp(); err != nil {
			return step("network", err)
		}
	}
	if h.Proxy {
		if err := h.listen(); err != nil {
			return step("proxy", err)
		}
	}
	if h.Level == Full && !h.skips("root") {
		if err := h.makeRoot(); err != nil {
			return err
		}
	}
	if len(h.Args) > 0 {
		if err := os.Chdir(h.Dir); err != nil {
			return step(stepDir, err)
		}
	}
	if h.Size != nil {
		if err := h.terminal(); err != nil {
			return step("terminal", err)
		}
	}
	if !h.skips("limits") {
		for _, l := range h.Limits {
			if err := lower(l); err != nil {
				return step("limits", err)
			}
		}
	}
	if err := h.verify(); err != nil {
		return err
	}
	jail := h.weaken(confine.Jail{Run: h.Run, Write: h.Write, Devices: h.Devices, Alone: h.Level == Reduced, NoSetID: h.NoSetID})
	if err := jail.Enter(append([]int{controlFD}, h.descriptors...)...); err != nil {
		return step("confinement", errors.Join(err, errors.Unwrap(err)))
	}
	if err := jail.Verify(); err != nil {
		return step("trial", errors.Join(err, errors.Unwrap(err)))
	}
	return nil
}

// lower sets a limit, or leaves a lower one.
func lower(l limit) error {
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
		h.Env = setenv(h.Env, name, url)
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		h.Env = setenv(h.Env, name, "localhost,127.0.0.1,::1")
	}
	h.Env = setenv(h.Env, "NODE_USE_ENV_PROXY", "1")
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
		return step(stepRun, err)
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

// setenv sets a variable in an environment.
func setenv(env []string, name, value string) []string {
	out := env[:0:0]
	for _, kv := range env {
		if len(kv) <= len(name) || kv[:len(name)] != name || kv[len(name)] != '=' {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}
