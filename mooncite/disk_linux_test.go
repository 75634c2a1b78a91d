package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// tinyDisk gives the world's state a disk of its own with so many KiB, in a mount
// namespace that ends with the test. It returns what a command's line has to begin
// with to be in there.
func (w *world) tinyDisk(kib int) []string {
	w.t.Helper()
	if os.Geteuid() != 0 {
		w.t.Skip("only root can mount a small disk")
	}
	for _, name := range []string{"unshare", "nsenter", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			w.t.Skipf("there is no %s here", name)
		}
	}
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	c := exec.CommandContext(w.t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o mode=700,size=`+strconv.Itoa(kib)+`k tmpfs "$0" && echo "$$" && cat`, w.state())
	in, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == io.EOF {
		w.t.Skip("no disk can be mounted here")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{"nsenter", "--mount", "--target", strings.TrimSpace(line), "--"}
}

// in runs the program behind a prefix.
func (w *world) in(prefix []string, args ...string) ran {
	w.t.Helper()
	line := append(append(append([]string{}, prefix...), w.path), args...)
	c := exec.CommandContext(w.t.Context(), line[0], line[1:]...)
	c.Env, c.Dir = w.Environ(), w.Dir
	return finish(w.t, c)
}

// grow adds many conversations to a world.
func (w *world) grow(bytes int64) {
	w.t.Helper()
	if _, err := corpus.Write(w.t.Context(), corpus.Config{Home: w.Dir, Bytes: bytes, Only: evidence.Claude}); err != nil {
		w.t.Fatal(err)
	}
}

// A full disk is said to be one. What was indexed still answers, the histories are
// not touched, and with space again all is as before.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	disk := w.tinyDisk(6 << 10)
	if r := w.in(disk, "rebuild"); r.status != 0 {
		t.Fatalf("a small index: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	// Now far more than fits.
	w.grow(24 << 20)
	histories := testenv.Fingerprint(t, w.Path(".claude"))
	check := func(r ran, what string) {
		t.Helper()
		if said := r.stdout + r.stderr; !strings.Contains(said, "full") && !strings.Contains(said, "space") {
			t.Errorf("%s does not say that the disk is full: status %d\n%s", what, r.status, said)
		}
	}
	r := w.in(disk, "recall", "--json", "ECONNRESET in parseManifestChunk")
	out := decode[engine.RecallOut](t, r.stdout)
	if _, ok := holding(out, "ECONNRESET in parseManifestChunk"); r.status != exitInconclusive || !ok || out.Conclusive {
		t.Errorf("recall: status %d\n%s%s", r.status, out.Text(), r.stderr)
	}
	check(r, "recall")
	r = w.in(disk, "status")
	if r.status != exitDegraded {
		t.Errorf("status: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	check(r, "status")
	r = w.in(disk, "rebuild")
	if r.status != 1 || r.stdout != "" {
		t.Errorf("rebuild: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	check(r, "rebuild")
	// A server goes on, too.
	p := &client{mcptest.Start(t, w.Environ(), append(disk, w.path, "serve")...), t}
	p.Call("initialize", initialize)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	found := p.finds("ECONNRESET in parseManifestChunk")
	if in := p.inspect(found.EvidenceID); in.Outcome != engine.Verified {
		t.Errorf("%s", in.Text())
	}
	if out := p.recall("zzyzx-nowhere"); out.Conclusive || out.Outcome == engine.NoMatch {
		t.Errorf("%s", out.Text())
	}
	if st := p.status(); st.Outcome != engine.Degraded || !st.SearchUsable {
		t.Errorf("%s", st.Text())
	}
	if diff := cmp.Diff(histories, testenv.Fingerprint(t, w.Path(".claude"))); diff != "" {
		t.Errorf("the histories changed: %s", diff)
	}
	// Space again.
	more := exec.CommandContext(t.Context(), disk[0], append(disk[1:], "mount", "-o", "remount,size=200m", w.state())...)
	if r := finish(t, more); r.status != 0 {
		t.Fatalf("no larger disk: %s", r.stderr)
	}
	p.settles("ECONNRESET", func(o engine.RecallOut) bool { return o.Conclusive })
	if r := w.in(disk, "rebuild"); r.status != 0 {
		t.Errorf("with space again: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if r := w.in(disk, "recall", "ECONNRESET"); r.status != 0 {
		t.Errorf("with space again: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	if st := p.status(); st.Outcome != engine.Ready {
		t.Errorf("with space again: %s", st.Text())
	}
}

// A first index that does not fit says so as well.
func TestNoSpaceAtAll(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	disk := w.tinyDisk(32)
	for _, args := range [][]string{{"recall", "ECONNRESET"}, {"status"}, {"rebuild"}} {
		r := w.in(disk, args...)
		said := r.stdout + r.stderr
		if r.status == 0 || !strings.Contains(said, "full") && !strings.Contains(said, "space") {
			t.Errorf("%v: status %d\n%s", args, r.status, said)
		}
	}
}

// A limit on the size of a file is a full disk by another name.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.must(0, "rebuild")
	w.grow(12 << 20)
	limited := []string{"sh", "-c", `ulimit -f 4000; exec "$@"`, "sh"} // 512-byte blocks
	r := w.in(limited, "rebuild")
	if r.status != 1 || r.stderr == "" || strings.Contains(r.stderr, "goroutine") {
		t.Errorf("rebuild: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	r = w.in(limited, "recall", "--json", "ECONNRESET in parseManifestChunk")
	out := decode[engine.RecallOut](t, r.stdout)
	if _, ok := holding(out, "ECONNRESET in parseManifestChunk"); r.status != exitInconclusive || !ok {
		t.Errorf("recall: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	w.must(0, "rebuild")
	w.clean()
	w.must(0, "recall", "ECONNRESET in parseManifestChunk")
}

// An answer that cannot be written is a failure, not a success without words.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	for _, args := range [][]string{{"recall", "ECONNRESET"}, {"recall", "--json", "ECONNRESET"}, {"status"}, {"source", "list", "--json"}, {"version", "--json"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("no full device here: %v", err)
		}
		var said strings.Builder
		c := w.command(t.Context(), args...)
		c.Stdout, c.Stderr = full, &said
		_ = c.Run()
		full.Close()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "cannot be written") {
			t.Errorf("%v: status %d, %s", args, c.ProcessState.ExitCode(), said.String())
		}
	}
}
