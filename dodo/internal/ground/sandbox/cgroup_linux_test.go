package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
)

// TestGroup: where a part of the cgroup tree is delegated a command is in a group of its own,
// with bounds, that is gone afterwards. Elsewhere the probe says why there is none.
func TestGroup(t *testing.T) {
	w := newWorld(t)
	r := w.box.Probe(t.Context())
	if r.Ungrouped != "" {
		if sandbox.GroupsOf(w.box) != "" {
			t.Errorf("groups in spite of: %s", r.Ungrouped)
		}
		t.Skipf("no groups here: %s", r.Ungrouped)
	}
	got := w.sh("cat /proc/self/cgroup")
	if !strings.Contains(got.out, "/dodo-") {
		t.Error(got.out)
	}
	left, err := os.ReadDir(sandbox.GroupsOf(w.box))
	must(t, err)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "dodo-") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
