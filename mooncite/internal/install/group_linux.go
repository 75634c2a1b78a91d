package install

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the head of a process group, all of which ends when it is
// stopped.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
