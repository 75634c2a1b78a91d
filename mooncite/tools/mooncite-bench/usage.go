package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what a finished process took.
type usage struct {
	wall, cpu time.Duration
	peak      int64 // bytes of the largest process of its tree at its largest
}

// measured runs a command to its end and returns its standard output and usage.
func measured(ctx context.Context, p place, bin string, args ...string) ([]byte, usage, error) {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env, cmd.Dir = p.env(), p.home()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, usage{}, err
	}
	done := make(chan struct{})
	peak := make(chan int64)
	go func() { peak <- watchPeak(cmd.Process.Pid, done) }()
	err := cmd.Wait()
	u := usage{wall: time.Since(begin)}
	close(done)
	u.peak = <-peak
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	// The kernel starts a child's own maximum at its parent's, so wait4's figure
	// says something only when it is above this process's, or when the child was
	// gone before it could be looked at: then it is an upper bound.
	if m := maxRSS(cmd.ProcessState); m > peakOf(os.Getpid()) || u.peak == 0 {
		u.peak = max(u.peak, m)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, lastLines(errs.String()))
	}
	return out.Bytes(), u, err
}

// watchPeak polls the largest VmHWM in a process tree until done.
func watchPeak(pid int, done <-chan struct{}) (peak int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, p := range tree(pid) {
			peak = max(peak, peakOf(p))
		}
		select {
		case <-done:
			return peak
		case <-tick.C:
		}
	}
}

// tree lists a process and its descendants.
func tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all) && i < 64; i++ {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		if err != nil {
			continue
		}
		for _, f := range tasks {
			b, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			for _, s := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(s); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	return all
}

// peakOf returns a process's peak resident size in bytes, 0 when it is gone.
func peakOf(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kb, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}

// lastLines is the end of a program's messages, on one line.
func lastLines(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		s = "…" + strings.ToValidUTF8(s[len(s)-300:], "")
	}
	return strings.Join(strings.Fields(s), " ")
}
