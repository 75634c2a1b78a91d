package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measure runs the bench on a small history against a fake program; corpora are
// shared between tests in dir.
func measure(t *testing.T, dir, mode string, more ...string) (code int, out, errs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), mode)
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append([]string{"-mb", "1", "-bin", bin, "-dir", dir}, more...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// line finds the row of the table that tells of what.
func line(t *testing.T, out, what string) string {
	t.Helper()
	for l := range strings.Lines(out) {
		if strings.Contains(l, what) {
			return strings.TrimSpace(l)
		}
	}
	t.Errorf("no row %q in:\n%s", what, out)
	return ""
}

func TestAgainstFakes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		mode string
		args []string
		code int
		rows map[string]string // what is measured -> how its row ends
	}{
		{"good", []string{"-soft", "-v"}, 0, map[string]string{
			"cold rebuild to bare FTS5":      `<= 1.3 +not measured$`,
			"cold rebuild, source bytes":     `MB/s +>= 25 MB/s +\w+$`,
			"cold rebuild, peak memory":      `\d+ MiB +<= 128 MiB +ok$`,
			"index size to source bytes":     `0\.10 \(0\.1 MB\) +<= 0\.6 +ok$`,
			"process start to initialize":    `<= 35ms +\w+$`,
			"recall p50 of 200 queries":      `<= 1ms +\w+$`,
			"recall p95":                     `<= 5ms +\w+$`,
			"  miss p50":                     `no_match 20$`,
			"needles in the first five":      `20 of 20 +all +ok$`,
			"planted phrases in the first":   `10 of 10 +all +ok$`,
			"inspect p50 of":                 `<= 1ms +\w+$`,
			"inspect outcomes":               `verified \d+ +all verified +ok$`,
			"status, nothing changed":        `<= 10ms +\w+$`,
			"server's peak memory":           `\d+ MiB$`,
			"record appended to claude-code": `<= 30ms +\w+$`,
			"record appended to codex":       `<= 30ms +\w+$`,
			"record appended to pi":          `<= 30ms +\w+$`,
			"record appended to omp":         `<= 30ms +\w+$`,
			"pings during the first index":   `<= 20ms +\w+$`,
			"first index in the background":  `ready after \d{3} ms$`,
			"1 MB export":                    `conversation added, median .* <= 1.5s +ok$`,
		}},
		{"poor", nil, 1, map[string]string{
			"planted phrases in the first": `0 of 10 +all +over$`,
			"inspect outcomes":             `stale \d+, verified \d+ +all verified +over$`,
			"pings during the first index": `<= 20ms +over$`,
		}},
		{"crashing", nil, 1, map[string]string{
			"recall and inspect": `cannot go on +failed$`,
			"1 MB export":        `cannot go on +<= 1.5s +failed$`,
		}},
		{"broken", nil, 1, map[string]string{"cold rebuild": `exit status 4: the disk is full +failed$`}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			code, out, errs := measure(t, dir, c.mode, c.args...)
			if code != c.code {
				t.Errorf("exit status %d: %s\n%s", code, errs, out)
			}
			for what, end := range c.rows {
				if l := line(t, out, what); !regexp.MustCompile(end).MatchString(l) {
					t.Errorf("row %q does not end with %s", l, end)
				}
			}
		})
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"corpus-v1-1mb-20240817", "corpus-v1-1mb-20240817-chatgpt"}, names); diff != "" {
		t.Errorf("kept between runs:\n%s", diff)
	}
}

// The same program twice: the rows are there, and say little.
func TestCost(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "good")
	if err := os.Symlink(self, plain); err != nil {
		t.Fatal(err)
	}
	code, out, errs := measure(t, t.TempDir(), "good", "-soft", "-plain", plain)
	if code != 0 {
		t.Errorf("exit status %d: %s\n%s", code, errs, out)
	}
	for what, end := range map[string]string{
		"confined rebuild, CPU":                     `without .* <= 5 % +(ok|over)$`,
		"confined serve and 200 recalls, CPU":       `without .* <= 5 % +(ok|over)$`,
		"confined recall, on the command line, CPU": `without .* <= 5 % +(ok|over)$`,
		"start to initialize, confined and not":     `ms, without .* ms$`,
	} {
		if l := line(t, out, what); !regexp.MustCompile(end).MatchString(l) {
			t.Errorf("row %q does not end with %s", l, end)
		}
	}
}

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{
		{"-mb", "0"}, {"-mb", "100,10"}, {"-mb", "x"}, {"-bin", "does/not/exist"}, {"-bin", ".", "surplus"}, {"-unknown"},
		{"gen"}, {"gen", "-only", "nobody", "home"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit status %d, %q", args, code, errs.String())
		}
	}
}

func TestGen(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"gen", "-mb", "1", home}, &out, &errs); code != 0 || !strings.Contains(out.String(), " files, ") {
		t.Errorf("exit status %d: %s%s", code, out.String(), errs.String())
	}
	if _, err := os.Stat(filepath.Join(home, ".omp")); err != nil {
		t.Error(err)
	}
}

func TestTimes(t *testing.T) {
	var all times
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	for q, want := range map[float64]int{.5: 100, .95: 190, .99: 198, 1: 200, 0: 1} {
		if got := all.at(q); got != time.Duration(want)*time.Millisecond {
			t.Errorf("at(%v) = %v", q, got)
		}
	}
	if got := (times{7, 9, 8}).median(); got != 8 {
		t.Errorf("median of three = %v", got)
	}
	if got := (times{}).median(); got != 0 {
		t.Errorf("median of none = %v", got)
	}
	if all[0] != 200*time.Millisecond {
		t.Error("the measured order was changed")
	}
}

func TestGoals(t *testing.T) {
	for mb, want := range map[int]time.Duration{1: 1e6, 10: 1e6, 11: 2e6, 100: 2e6, 1000: 3e6, 1001: 0} {
		if got := goalAt(mb).p50; got != want {
			t.Errorf("recall p50 at %d MB: %v, want %v", mb, got, want)
		}
	}
	for _, c := range []struct {
		value, goal time.Duration
		want        verdict
	}{{5, 5, kept}, {6, 5, over}, {6, 0, info}} {
		if got := judge(c.value, c.goal); got != c.want {
			t.Errorf("judge(%d, %d) = %q", c.value, c.goal, got)
		}
	}
	if judge(-24.9, -25.) != over || judge(-25., -25.) != kept {
		t.Error("a rate must be at least its goal")
	}
}

func TestTable(t *testing.T) {
	var tb table
	tb.add(row{"10 MB", "a thing", "1.00 ms", "<= 1ms", kept})
	tb.add(row{"10 MB", "another", "", "<= 2", unmeasured})
	if tb.missed() {
		t.Error("a row that could not be measured is no miss")
	}
	tb.add(row{"100 MB", "third", "3 s", "<= 1s", over})
	if !tb.missed() {
		t.Error("a goal was missed")
	}
	var out bytes.Buffer
	if err := tb.print(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"history  what     measured  goal    ",
		"10 MB    a thing  1.00 ms   <= 1ms  ok",
		"10 MB    another            <= 2    not measured",
		"100 MB   third    3 s       <= 1s   over",
		"",
	}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestShow(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond: "1.23 ms", 45678 * time.Microsecond: "45.7 ms", 456 * time.Millisecond: "456 ms", 1234 * time.Millisecond: "1.2 s",
	} {
		if got := show(d); got != want {
			t.Errorf("show(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestFirstFive(t *testing.T) {
	var f found
	for _, text := range []string{"a", "b", "c", "d", "One\n  two", "late"} {
		f.Candidates = append(f.Candidates, struct {
			EvidenceID string `json:"evidenceId"`
			Excerpt    string `json:"excerpt"`
		}{Excerpt: text})
	}
	if !f.holds("one two") || f.holds("late") {
		t.Error("only the first five count, and white space does not")
	}
}

func TestEnvironmentIsIsolated(t *testing.T) {
	t.Setenv("MOONCITE_STATE_DIR", "elsewhere")
	env := place{"dir"}.env()
	if slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "MOONCITE_") }) || !slices.Contains(env, "HOME="+filepath.Join("dir", "home")) {
		t.Errorf("environment: %q", env)
	}
}

func TestWordsAreNew(t *testing.T) {
	s := &subject{}
	seen := map[string]bool{}
	for range 500 {
		w := s.word()
		if seen[w] {
			t.Fatalf("%s twice", w)
		}
		seen[w] = true
	}
}
