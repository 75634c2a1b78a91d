package walls

import (
	"encoding/json"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where there are no namespaces the helper stays outside of the walls, so that the command
// can neither signal it nor look into it. A process of its own builds them around itself and
// becomes the command: were that a thread of the helper, a signal to it could end the helper.

const becomingName = "dodo-sandbox-becoming" // argv[0] of that process

// enterAlone starts it, and takes the descriptors that come from it.
func (h *helper) enterAlone() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return step("subreaper", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return step("helper", err)
	}
	plan, err := h.File()
	if err != nil {
		return step("plan", err)
	}
	defer plan.Close()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("helper", err)
	}
	defer unix.Close(ends[0])
	pid, err := syscall.ForkExec("/proc/self/exe", []string{becomingName}, &syscall.ProcAttr{
		Env: Environment(), Files: []uintptr{0, 1, 2, uintptr(ends[1])}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	unix.Close(ends[1])
	if err != nil {
		return step("helper", err)
	}
	h.main = pid
	if err := unix.Sendmsg(ends[0], []byte{OrderBuild}, unix.UnixRights(int(plan.Fd())), nil, unix.MSG_NOSIGNAL); err != nil {
		return step("plan", err)
	}
	letGo()
	buf, rights := make([]byte, LargestReport), make([]byte, unix.CmsgSpace(4))
	begun := false
	for {
		n, rn, _, _, err := unix.Recvmsg(ends[0], buf, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			if !begun {
				return step("helper", errMissing)
			}
			return nil // its end was closed when it became the command
		}
		var r Report
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			return step("helper", err)
		}
		if !r.Started {
			return step(r.Step, &Refusal{syscall.Errno(r.Errno), r.Reason})
		}
		fds, err := Descriptors(rights[:rn])
		if err != nil {
			return step("helper", err)
		}
		h.descriptors, begun = fds, true
		if len(h.Args) > 0 {
			h.ready()
		}
	}
}

// become builds the walls and runs the command in its own place.
func become() int {
	runtime.LockOSThread() // the walls are this thread's alone, and what it becomes
	var h helper
	err := h.read()
	if err == nil {
		err = h.build()
	}
	if err == nil && h.Size != nil {
		err = step("terminal", unix.IoctlSetInt(0, unix.TIOCSCTTY, 0))
	}
	if err != nil {
		return fail(err)
	}
	tell(Report{Started: true}, h.descriptors...)
	if len(h.Args) == 0 {
		return 0
	}
	return fail(step(StepRun, syscall.Exec(h.Args[0], h.Args, h.Env)))
}
