package testenv_test

import (
	"io"
	"os/exec"
	"testing"
	"time"

	"localmcp/internal/testenv"
)

// TestHalt: what is written to a process that stands is not answered before it goes on.
func TestHalt(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	t.Run("stands", func(t *testing.T) {
		testenv.Halt(t, cmd.Process)
		if _, err := in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.ReadFull(out, make([]byte, 1))
			close(answered)
		}()
		select {
		case <-answered:
			t.Error("it answers")
		case <-time.After(50 * time.Millisecond):
		}
	})
	<-answered
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
