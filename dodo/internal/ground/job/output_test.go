package job_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/text"
)

// Case 58: output has escape sequences (clipboard, title, questions to the terminal): none is in the answer.
//
// TestCleaned: what reaches a caller is text (user-pain 92, 93; case 58).
func TestCleaned(t *testing.T) {
	w := newWorld(t)
	raw := "\x1b[31mred\x1b[0m \x1b]52;c;c2VjcmV0\x07\x1b]0;title\x1b\\\x1bP$q\x1b\\\x1b[?2004hx\n" + "10%\r20%\r\x1b[K100%\n" + "\xff\xfe \u202ebidi \x00\n"
	must(t, os.WriteFile(filepath.Join(w.root, "raw"), []byte(raw), 0o644))
	d := w.sh("cat raw; cat raw >&2")
	want := "red x\n100%\n\uFFFD\uFFFD \\u{202e}bidi \\u{0}\n"
	if d.str("stdout") != want || d.str("stderr") != want || d.num("stdoutBytes") != len(raw) {
		t.Errorf("%q", d.str("stdout"))
	}
	o := w.call("job_output", obj{"jobId": d["jobId"], "stream": "stderr", "raw": true})
	if b, err := base64.StdEncoding.DecodeString(o.str("contentBase64")); err != nil || string(b) != raw || o.str("content") != "" {
		t.Errorf("%q, %v", b, err)
	}
	for max := 1; max < len(raw); max += 3 {
		if got := w.all(d.str("jobId"), "stdout", max); got != want && max > 60 || !utf8.ValidString(got) || strings.ContainsRune(got, 0x1b) {
			t.Errorf("by %d bytes: %q", max, got)
		}
	}
}

// TestMasked: keys are masked wherever a piece is cut, and in what is remembered of the
// command (user-pain 97, 98).
func TestMasked(t *testing.T) {
	w := newWorld(t)
	key := "ghp_" + strings.Repeat("a1B2", 9)
	d := w.sh("seq 100; echo token " + key + "; seq 100")
	if out := d.str("stdout"); strings.Contains(out, key) || !strings.Contains(out, "token [masked: github token]\n") {
		t.Error(out)
	}
	for max := 16; max < 400; max += 7 {
		if got := w.all(d.str("jobId"), "stdout", max); strings.Contains(got, key[:10]) || strings.Contains(got, key[20:]) {
			t.Errorf("by %d bytes: %s", max, got)
		}
	}
	if s := fmt.Sprint(w.call("job_status", obj{"jobId": d["jobId"]})); strings.Contains(s, key) {
		t.Error(s)
	}
}

// TestHeadAndTail: an answer has the beginning and the end, and says how to read the rest
// (user-pain 94, 95).
func TestHeadAndTail(t *testing.T) {
	w := newWorld(t)
	d := w.sh("seq 100000; seq 200000 300000 >&2")
	if n := len(encode(t, d)); n > contract.UsualAnswer || n < contract.UsualAnswer/2 {
		t.Errorf("%d characters", n)
	}
	for stream, ends := range map[string][2]string{"stdout": {"1\n", "\n100000\n"}, "stderr": {"200000\n", "\n300000\n"}} {
		if d[stream+"Truncated"] != true || !strings.HasPrefix(d.str(stream), ends[0]) || !strings.HasSuffix(d.str(stream+"Tail"), ends[1]) || !strings.HasSuffix(d.str(stream), "\n") {
			t.Errorf("%s: %.100q ... %.100q", stream, d.str(stream), d.str(stream+"Tail"))
		}
	}
	// The offset it names is where what it showed ends.
	_, after, _ := strings.Cut(d.str("next"), "offset ")
	offset, err := strconv.Atoi(strings.Fields(after)[0])
	must(t, err)
	if offset != len(d.str("stdout")) {
		t.Errorf("%s; %d bytes were shown", d.str("next"), len(d.str("stdout")))
	}
	var want strings.Builder
	for i := 1; i <= 100000; i++ {
		fmt.Fprintln(&want, i)
	}
	if got := w.all(d.str("jobId"), "stdout", 50000); got != want.String() {
		t.Errorf("%d of %d bytes", len(got), want.Len())
	}
	// With one stream alone the answer is used for it; a progress bar takes one line.
	if d := w.sh("seq 100000"); len(d.str("stdout")) < 3<<10 || len(d.str("stdoutTail")) < 3<<10 {
		t.Errorf("%d and %d", len(d.str("stdout")), len(d.str("stdoutTail")))
	}
	if d := w.sh(`i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '\r%d of 3000 done' $i; done; echo`); d.str("stdout") != "3000 of 3000 done\n" || d["stdoutTruncated"] != false {
		t.Errorf("%v", d)
	}
}

// TestSegments: characters that a border of files cuts are whole, the oldest output goes and
// the beginning stays.
func TestSegments(t *testing.T) {
	w := newWorld(t)
	w.lim.JobLogBytesPerJob = 64 << 10 // segments of 8 KiB
	w.reopen()
	d := w.sh("i=0; while [ $i -lt 2500 ]; do i=$((i+1)); echo \"$i a€😀ü\"; done")
	id := d.str("jobId")
	if got := w.all(id, "stdout", 1000); strings.Count(got, "\n") != 2500 || strings.ContainsRune(got, utf8.RuneError) {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
	d = w.sh("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); echo \"$i a€😀ü\"; done")
	id = d.str("jobId")
	total := d.num("stdoutBytes")
	if !strings.HasPrefix(d.str("stdout"), "1 a€😀ü\n") || !strings.HasSuffix(d.str("stdoutTail"), "\n50000 a€😀ü\n") || total < 50000*12 {
		t.Errorf("%v", d)
	}
	o := w.call("job_output", obj{"jobId": id, "offset": 20000})
	if from := o.num("truncatedBeforeOffset"); from < total-64<<10 || from > total-40<<10 || o.num("nextOffset") < from {
		t.Errorf("%v", o["truncatedBeforeOffset"])
	}
	got := w.all(id, "stdout", 3000)
	if strings.ContainsRune(got, utf8.RuneError) || !strings.HasPrefix(got, "1 a€😀ü\n2 a€😀ü\n") || !strings.HasSuffix(got, "\n49999 a€😀ü\n50000 a€😀ü\n") {
		t.Errorf("%d bytes", len(got))
	}
	size := int64(0)
	files, _ := filepath.Glob(filepath.Join(w.dir, "jobs", id, "stdout.*"))
	for _, f := range files {
		in, err := os.Stat(f)
		must(t, err)
		if size += in.Size(); in.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, in.Mode())
		}
	}
	if size > 64<<10 {
		t.Errorf("%d bytes are kept", size)
	}
}

// TestPagesProperty: however a stream is read by offsets, the pages together are what is read
// at once, as long as lines are shorter than a page.
func TestPagesProperty(t *testing.T) {
	w := newWorld(t)
	f, err := os.Create(filepath.Join(w.root, "lines"))
	must(t, err)
	for i := range 3000 {
		fmt.Fprintf(f, "%d %s\x1b[3%dm€\x1b[0m\r%d\xff\n", i, strings.Repeat("é", i%17), i%8, i)
	}
	must(t, f.Close())
	b, err := os.ReadFile(f.Name())
	must(t, err)
	want, _ := text.Screen(b, true)
	id := w.sh("cat lines").str("jobId")
	for _, max := range []int{200, 997, 4096, 1 << 20} {
		if got := w.all(id, "stdout", max); got != want {
			t.Errorf("by %d bytes: %d of %d", max, len(got), len(want))
		}
	}
	// An offset inside of a character is taken for what is behind it.
	o := w.call("job_output", obj{"jobId": id, "offset": strings.Index(string(b), "€") + 1, "maxBytes": 16})
	if !strings.HasPrefix(o.str("content"), "0") {
		t.Errorf("%q", o.str("content"))
	}
	if o := w.call("job_output", obj{"jobId": id, "offset": 1 << 40}); o.str("content") != "" || o.num("nextOffset") != len(b) || o["endOfStream"] != true {
		t.Errorf("%v", o)
	}
}

// TestLiveOutput: what a job wrote can be read while it runs, and half a sequence waits.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.background(`printf 'a\342\202'; sleep 0.3; printf '\254\033[3'; sleep 0.3; printf '1mred\n'; sleep 0.3`)
	var text strings.Builder
	for offset := any(0); ; time.Sleep(50 * time.Millisecond) {
		d := w.call("job_output", obj{"jobId": id, "offset": offset})
		text.WriteString(d.str("content"))
		offset = d["nextOffset"]
		if d["endOfStream"] == true {
			break
		}
	}
	if text.String() != "a€red\n" {
		t.Errorf("%q", text.String())
	}
}

// Case 42: a command floods its output: bounded on disk and in memory, beginning and end are kept.
//
// TestFlood: 200 MB of output take neither memory nor other calls' time (case 42): 19 of 20 are
// answered in 200 ms. What calls take in this build on this machine without a flood is allowed
// for; that is a millisecond or two, and more under the race detector and beside other tests.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MB")
	}
	w := newWorld(t)
	quiet := w.sh("true").str("jobId")
	look := func(id string) (running bool, took time.Duration) {
		begun := time.Now()
		running = w.call("job_status", obj{"jobId": id}).str("status") == "running"
		w.call("job_output", obj{"jobId": id, "offset": 0, "maxBytes": 4096})
		return running, time.Since(begun)
	}
	var idle, flooded []time.Duration
	for range 40 {
		_, took := look(quiet)
		idle = append(idle, took)
	}
	before := resident(t)
	id := w.background("yes 'a line of sixty-four bytes, which is written again and again ..' | head -c 200000000; yes err | head -c 50000000 >&2")
	peak := int64(0)
	for running := true; running; {
		var took time.Duration
		running, took = look(id)
		flooded = append(flooded, took)
		peak = max(peak, resident(t))
		time.Sleep(20 * time.Millisecond)
	}
	d := w.ended(id)
	if d.num("stdoutBytes") != 200000000 || d.num("stderrBytes") != 50000000 || d["stdoutTruncated"] != true || !strings.HasPrefix(d.str("stdout"), "a line") {
		t.Errorf("%v bytes, %v bytes", d["stdoutBytes"], d["stderrBytes"])
	}
	usual, slow := most(idle), most(flooded)
	t.Logf("%d MiB more than before, calls took %v and %v without the flood, %d calls, %v ms", (peak-before)>>20, slow, usual, len(flooded), d["durationMs"])
	if peak-before > 50<<20 {
		t.Errorf("memory grew by %d MiB", (peak-before)>>20)
	}
	if limit := 200*time.Millisecond + 4*usual; slow > limit {
		t.Errorf("calls took %v, more than %v", slow, limit)
	}
}

// most is what 19 of 20 keep to.
func most(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[(len(list)-1)*19/20]
}

// resident is the memory of this process, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	b, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	must(t, err)
	return pages * int64(os.Getpagesize())
}

// TestTrim: the output of the oldest jobs goes first, and reading says that it is gone.
func TestTrim(t *testing.T) {
	w := newWorld(t)
	w.lim.JobLogBytesTotal = 1 << 20
	w.reopen()
	var ids []string
	for range 4 {
		ids = append(ids, w.sh("yes | head -c 400000").str("jobId"))
	}
	w.soon("trimming", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "jobs", ids[1]))
		return os.IsNotExist(err)
	})
	o := w.call("job_output", obj{"jobId": ids[0]})
	if o.str("content") != "" || o.num("truncatedBeforeOffset") != 400000 || o["endOfStream"] != true {
		t.Errorf("%v", o)
	}
	if d := w.call("job_wait", obj{"jobId": ids[0]}); d["stdoutTruncated"] != true || d.num("stdoutBytes") != 400000 {
		t.Errorf("%v", d)
	}
	if got := w.all(ids[3], "stdout", 1<<20); len(got) != 400000 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestTidy: jobs are forgotten after their retention, with all they left.
func TestTidy(t *testing.T) {
	w := newWorld(t)
	old := w.sh("echo old").str("jobId")
	w.clock.Store(int64(8 * 24 * time.Hour))
	young := w.sh("echo young").str("jobId")
	must(t, w.svc.Tidy(context.Background()))
	_, err := w.try("job_output", obj{"jobId": old})
	refused(t, err, contract.JobNotFound)
	if got := w.all(young, "stdout", 100); got != "young\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "jobs", old)); !os.IsNotExist(err) {
		t.Error("its output is still there")
	}
}

// TestOutputThatCannotBeStored: the job goes on, and a note says what is missing.
func TestOutputThatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	id := w.background(untilOn + "; yes | head -c 3000000; echo > done")
	must(t, os.WriteFile(filepath.Join(w.dir, "jobs", id), nil, 0o600)) // where its directory would be
	w.on()
	d := w.ended(id)
	if d.num("exitCode") != 0 || d.num("stdoutBytes") != 0 {
		t.Errorf("%v", d)
	}
	if notes := fmt.Sprint(w.call("job_status", obj{"jobId": id})["notes"]); !strings.Contains(notes, "3000000 bytes of output could not be stored") {
		t.Error(notes)
	}
	if _, err := os.Stat(filepath.Join(w.root, "done")); err != nil {
		t.Error(err)
	}
}

// TestOwnersOutput: the owner reads what any job wrote.
func TestOwnersOutput(t *testing.T) {
	w := newWorld(t)
	id := w.sh("printf '\\033[1mx\\n'").str("jobId")
	p, err := w.svc.Output(context.Background(), id, job.Stdout, 0, 1000, false)
	must(t, err)
	if p.Content != "x\n" || !p.End {
		t.Errorf("%+v", p)
	}
	if p, err = w.svc.Output(context.Background(), id, job.Stdout, 0, 1000, true); err != nil || string(p.Raw) != "\x1b[1mx\n" {
		t.Errorf("%+v, %v", p, err)
	}
}
