// Command dodo-bench measures the built program from outside: the time from its start to
// the answer of tools/list, and the memory it keeps when nothing happens. What can be
// measured within the process are Go benchmarks; `make bench-dodo` runs both.
//
// What it deliberately does not do: it judges nothing. A figure from a busy machine says
// little; the load is printed first.
//
// usage: dodo-bench -bin PATH-OF-DODO [-n STARTS]
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	bin := flag.String("bin", "bin/dodo", "the program")
	n := flag.Int("n", 25, "how many starts for each surface")
	flag.Parse()
	if err := run(*bin, *n); err != nil {
		fmt.Fprintln(os.Stderr, "dodo-bench:", err)
		os.Exit(1)
	}
}

func run(bin string, n int) (err error) {
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dodo-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root := filepath.Join(dir, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	fmt.Printf("load %s", load)
	for _, surface := range []string{"full", "hybrid", "compact"} {
		var took []time.Duration
		var rss int
		for range n {
			d, kib, err := start(bin, dir, root, surface)
			if err != nil {
				return err
			}
			took, rss = append(took, d), max(rss, kib)
		}
		slices.Sort(took)
		fmt.Printf("%-8s start to tools/list: p50 %.1f ms, p95 %.1f ms (goal for full: 30); idle memory %.1f MiB (goal: 40)\n",
			surface, ms(took[len(took)/2]), ms(took[len(took)*95/100]), float64(rss)/1024)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// session opens a session and lists the tools, as a client does at once.
const session = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dodo-bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// start starts a server, waits for its list of tools, and looks at its memory (in KiB) when
// it has been idle for a moment.
func start(bin, home, root, surface string) (took time.Duration, rss int, err error) {
	c := exec.Command(bin, "stdio", "--root", root, "--tools", surface)
	c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err := c.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, in.Close(), c.Wait()) }()
	if _, err := in.Write([]byte(session)); err != nil {
		return 0, 0, err
	}
	lines := bufio.NewReader(out)
	for listed := false; !listed; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0, 0, err
		}
		listed = strings.Contains(line, `"tools":[`)
	}
	took = time.Since(begun)
	time.Sleep(100 * time.Millisecond)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	rss, err = strconv.Atoi(strings.Fields(after)[0])
	return took, rss, err
}
