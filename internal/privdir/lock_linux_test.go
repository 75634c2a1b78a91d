package privdir_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/privdir"
)

// TestMain lets the test binary play another process that holds a lock.
func TestMain(m *testing.M) {
	if path := os.Getenv("PRIVDIR_TEST_HOLD"); path != "" {
		if _, err := privdir.TryLock(path); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1)) // until killed
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(realTemp(t), "lock")
	h, err := privdir.TryLock(path)
	must(t, err)
	_, err = privdir.TryLock(path)
	refused(t, err, privdir.Busy, "another process")
	_, err = privdir.TryLockShared(path)
	refused(t, err, privdir.Busy, "another process")
	must(t, h.Unlock())

	a, err := privdir.TryLockShared(path)
	must(t, err)
	b, err := privdir.TryLockShared(path)
	must(t, err)
	_, err = privdir.TryLock(path)
	refused(t, err, privdir.Busy, "another process")
	must(t, a.Unlock())
	must(t, b.Unlock())

	st, err := os.Stat(path)
	must(t, err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("the lock file has mode %v", st.Mode())
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(realTemp(t), "lock")
	h, err := privdir.TryLock(path)
	must(t, err)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := privdir.Lock(short, path); !errors.Is(err, privdir.Busy) {
		t.Fatalf("got %v", err)
	}
	done := make(chan error)
	go func() {
		next, err := privdir.Lock(t.Context(), path)
		if err == nil {
			err = next.Unlock()
		}
		done <- err
	}()
	must(t, h.Unlock())
	must(t, <-done)
}

func TestLockOfRemovedFileIsTakenAnew(t *testing.T) {
	path := filepath.Join(realTemp(t), "lock")
	h, err := privdir.TryLock(path)
	must(t, err)
	defer h.Unlock()
	must(t, os.Remove(path))
	again, err := privdir.TryLock(path)
	must(t, err)
	must(t, again.Unlock())
}

func TestLockDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(realTemp(t), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"PRIVDIR_TEST_HOLD=" + path}
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	must(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	_, err = privdir.TryLock(path)
	refused(t, err, privdir.Busy, "another process")
	must(t, cmd.Process.Kill())
	cmd.Wait()
	h, err := privdir.TryLock(path)
	must(t, err)
	must(t, h.Unlock())
}

// A program that is just being started shares the descriptors of this process for a
// moment; a lock that was given back is free all the same.
func TestUnlockIsAtOnce(t *testing.T) {
	path := filepath.Join(realTemp(t), "lock")
	h, err := privdir.TryLock(path)
	must(t, err)
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	shared := -1
	for _, e := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == path {
			fd, err := strconv.Atoi(e.Name())
			must(t, err)
			shared, err = unix.Dup(fd)
			must(t, err)
		}
	}
	if shared < 0 {
		t.Fatal("the lock has no descriptor")
	}
	defer unix.Close(shared)
	must(t, h.Unlock())
	again, err := privdir.TryLock(path)
	must(t, err)
	must(t, again.Unlock())
}
