package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudoterminal: what a program has for one, and what a person has.
func terminal(t *testing.T) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close(); person.Close() })
	return program, person
}

// An interrupt at the question ends it at once, and nothing is forgotten.
func TestInterruptedQuestion(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	id := w.finds("at most 6 attempts").EvidenceID
	in, _ := terminal(t) // nobody types
	said, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := w.command(t.Context(), "forget", "--evidence", id)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, io.Discard, says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says.Close()
	var text bytes.Buffer
	var once sync.Once
	buf := make([]byte, 4096)
	for {
		n, err := said.Read(buf)
		text.Write(buf[:n])
		if strings.Contains(text.String(), "Type yes") {
			once.Do(func() { _ = cmd.Process.Signal(syscall.SIGINT) })
		}
		if err != nil {
			break
		}
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	late.Stop()
	if status := cmd.ProcessState.ExitCode(); status != 130 || !strings.HasSuffix(text.String(), "mooncite: interrupted\n") {
		t.Errorf("status %d: %s", status, &text)
	}
	w.must(0, "inspect", id)
	if st := w.status(); st.Forgotten != 0 {
		t.Error(st.Text())
	}
}
