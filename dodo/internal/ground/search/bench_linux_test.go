package search

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/ignore"
	"localmcp/dodo/internal/ground/workspace"
)

// benchTree is the tree that is searched: DODO_BENCH_TREE, or Go's own.
func benchTree(b *testing.B) *workspace.Tree {
	root := os.Getenv("DODO_BENCH_TREE")
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			b.Skip("the tree of Go is not known; set DODO_BENCH_TREE")
		}
		root = strings.TrimSpace(string(out))
	}
	return openTree(b, root)
}

// beside measures both by turns, so that what else the machine does falls on both, and
// reports medians of the time by the clock and of the time of processors.
func beside(b *testing.B, ours func(), theirs func() *exec.Cmd) {
	const rounds = 9
	var wall, cpu [2][]float64
	for range rounds {
		start, used := time.Now(), processors()
		ours()
		wall[0], cpu[0] = append(wall[0], ms(time.Since(start))), append(cpu[0], ms(processors()-used))
		cmd := theirs()
		start = time.Now()
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			b.Fatal(err)
		}
		wall[1], cpu[1] = append(wall[1], ms(time.Since(start))), append(cpu[1], ms(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(wall[0]), "ms")
	b.ReportMetric(median(wall[1]), "their-ms")
	b.ReportMetric(median(wall[0])/median(wall[1]), "ratio")
	b.ReportMetric(median(cpu[0])/median(cpu[1]), "cpu-ratio")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAsRipgrep searches some 15,000 files, beside rg -j2 on the same files.
func BenchmarkAsRipgrep(b *testing.B) {
	tree := benchTree(b)
	for i, text := range []string{
		"ErrUnexpectedEOF", "func (s *Server)", "deadlock", "nowhere-to-be-found", // literals
		`func (s \*Server)`, "ErrUnexpectedEOF", `\bfunc\s+\w+\(ctx`, `context\.With(Cancel|Timeout)\(`, "(?i)deadlock", "[a-z]+_[0-9]{4}", `(TODO|FIXME|XXX)\(\w+\)`,
		`[A-Z]{12,}`, `\w+\s+\w+ing$`, // where no needle helps
	} {
		literal := i < 4
		args := []string{"-j2", "-c", "-e", text, tree.Root()}
		if literal {
			args = append([]string{"-F"}, args...)
		}
		b.Run(fmt.Sprintf("literal=%v/%s", literal, text), func(b *testing.B) {
			want := 0
			out, err := ripgrep(b, args...).Output()
			if err != nil && len(out) > 0 {
				b.Fatal(err)
			}
			for line := range bytes.Lines(out) {
				n := 0
				fmt.Sscan(string(line[bytes.LastIndexByte(line, ':')+1:]), &n)
				want += n
			}
			lines := 0
			beside(b, func() { lines = searchAll(b, tree, text, literal, false, 50).total }, func() *exec.Cmd { return ripgrep(b, args...) })
			b.ReportMetric(float64(lines), "lines")
			if lines != want {
				b.Logf("rg finds %d lines, this %d", want, lines)
			}
		})
	}
}

// BenchmarkGlob finds names, beside fd and find.
func BenchmarkGlob(b *testing.B) {
	tree := benchTree(b)
	for _, pattern := range []string{"*_test.go", "*", "nowhere"} {
		g, err := ignore.ParseGlob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		ours := func() {
			look := globber{glob: g, most: 200}
			if err := look.walk(context.Background(), tree, true); err != nil {
				b.Fatal(err)
			}
		}
		for name, args := range map[string][]string{
			"fdfind": {"-u", "-j2", "-t", "f", "-g", pattern, tree.Root()},
			"find":   {tree.Root(), "-type", "f", "-name", pattern},
		} {
			b.Run(name+"/"+pattern, func(b *testing.B) {
				if _, err := exec.LookPath(name); err != nil {
					b.Skip(name + " is not installed")
				}
				beside(b, ours, func() *exec.Cmd { return exec.Command(name, args...) })
			})
		}
	}
}
