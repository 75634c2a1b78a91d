package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestFourStdioProcesses: four servers on one directory, each with a client that writes files
// of its own and counts up one file that all share, guarded by its hash. No count is lost, no
// call ends with an error of a lock, and the audit of all of them is whole.
func TestFourStdioProcesses(t *testing.T) {
	writes, guarded := 200, 50
	if testing.Short() {
		writes, guarded = 30, 10
	}
	const processes = 4
	m := newMachine(t)
	dir := m.workspace()
	m.Write(t, "work/count", "0")
	clients := make([]*client, processes)
	for i := range clients {
		clients[i] = m.speak("legacy", dir)
		clients[i].fine("project_overview", "")
	}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := range max(writes, guarded) {
				if n < writes {
					if e := c.call("write_file", fmt.Sprintf(`"path":"p%d/%d.txt","content":"%d of %d"`, i, n, n, i)); !e.OK {
						t.Errorf("write %d of %d: %+v", n, i, e.Error)
						return
					}
				}
				if n < guarded && !countUp(t, c) {
					return
				}
			}
		})
	}
	wg.Wait()
	if got := m.read("work/count"); got != strconv.Itoa(processes*guarded) {
		t.Errorf("counted to %s, not %d", got, processes*guarded)
	}
	for i := range processes {
		for n := range writes {
			if got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("p%d/%d.txt", i, n))); err != nil || string(got) != fmt.Sprintf("%d of %d", n, i) {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	for _, c := range clients {
		c.CloseInput()
	}
	if r := m.dodo("audit", "verify"); r.status != 0 {
		t.Errorf("audit: %s%s", r.stdout, r.stderr)
	}
}

// countUp adds one to the shared file, however often others are first.
func countUp(t *testing.T, c *client) bool {
	for {
		read := c.call("read_files", `"files":[{"path":"count"}]`)
		if !read.OK {
			t.Errorf("read: %+v", read.Error)
			return false
		}
		files := read.Data["files"].([]any)
		if len(files) == 0 {
			continue // it was being replaced; the answer says so
		}
		file := files[0].(map[string]any)
		now, err := strconv.Atoi(file["content"].(string))
		if err != nil {
			t.Error(err)
			return false
		}
		hash, _ := file["hash"].(string)
		if hash == "" {
			continue // it did not hold still while it was read
		}
		e := c.call("write_file", fmt.Sprintf(`"path":"count","content":"%d","expectedHash":%q`, now+1, hash))
		if e.OK {
			return true
		}
		if e.Error.Code != "FILE_CHANGED" && !(e.Error.Retryable && strings.Contains("CONFLICT TIMEOUT", e.Error.Code)) {
			t.Errorf("count: %+v", e.Error)
			return false
		}
	}
}
