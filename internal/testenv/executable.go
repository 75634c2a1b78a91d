package testenv

import (
	"os"
	"syscall"
	"testing"
)

// Executable writes a program or script that is to be run at once. No other test starts a
// program meanwhile: its child would hold the file open for writing for a moment, and Linux
// runs no such file (ETXTBSY).
func Executable(t testing.TB, path string, data []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, data, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
