package change_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"localmcp/dodo/internal/contract"
)

// writer makes n writes to a file of its own, and m guarded ones to a file of all.
func (w *world) writer(name, n, m string) {
	times, guarded := number(w.t, n), number(w.t, m)
	for i := range max(times, guarded) {
		if i < times {
			w.call("write_file", obj{"path": fmt.Sprintf("own/%s/%d.txt", name, i%10), "content": fmt.Sprintf("%s %d\n", name, i)})
		}
		if i < guarded {
			w.count("shared/counter.txt", name)
		}
	}
}

// count adds a line to a file, guarded by the hash of what it read, until it was first.
func (w *world) count(path, name string) {
	for {
		data, err := os.ReadFile(w.path(path))
		must(w.t, err)
		_, err = w.try("write_file", obj{"path": path, "content": string(data) + name + "\n", "expectedHash": contract.Hash(data)})
		if errors.Is(err, contract.FileChanged) {
			continue
		}
		must(w.t, err)
		return
	}
}

func number(t testing.TB, s string) int {
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}

// TestFourProcesses: four processes write to one workspace. Smaller with -short and under the
// race detector.
func TestFourProcesses(t *testing.T) {
	n, m := 200, 50
	if testing.Short() || raceEnabled {
		n, m = 20, 10
	}
	w := newWorld(t)
	w.write("shared/counter.txt", "")
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			if err := spawn(t, w, "write", fmt.Sprint("p", p), strconv.Itoa(n), strconv.Itoa(m)).Run(); err != nil {
				t.Errorf("process %d: %v", p, err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(w.path("shared/counter.txt"))
	must(t, err)
	for p := range 4 {
		if got := strings.Count(string(data), fmt.Sprintf("p%d\n", p)); got != m {
			t.Errorf("process %d: %d of %d guarded writes are there", p, got, m)
		}
		w.holds(fmt.Sprintf("own/p%d/9.txt", p), fmt.Sprintf("p%d %d\n", p, n-1))
	}
	list, err := w.svc.History(context.Background(), "", 5*4*n)
	must(t, err)
	committed := 0
	for _, c := range list {
		if c.Status == "committed" {
			committed++
		}
	}
	if committed != 4*(n+m) {
		t.Errorf("%d changes are in the history, want %d", committed, 4*(n+m))
	}
	w.clean0(t)
}
