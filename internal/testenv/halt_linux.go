package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Halt stops a process with SIGSTOP until the test ends, and returns when all its threads
// stand: the signal is only on its way when kill returns, and meanwhile a server may answer.
func Halt(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	for end := time.Now().Add(30 * time.Second); !stands(t, p.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d does not stop", p.Pid)
		}
	}
}

// stands reports whether every thread of a process is stopped (proc_pid_stat(5), state T).
func stands(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if err == nil && !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T ")) {
			return false
		}
	}
	return true
}
