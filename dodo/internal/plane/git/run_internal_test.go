package git

import (
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
)

// TestSpec: every run asks for walls and no network; only one that writes may change anything,
// and only then what is outside of the workspace.
func TestSpec(t *testing.T) {
	box := sandbox.New(sandbox.Options{Path: []string{"/usr/bin"}})
	s := New(Config{Place: box.Place("/w", "/c", nil)})
	r := runner{place: s.Place, mode: s.mode, program: "/usr/bin/git", overrides: fixed, repo: &repo{top: "/w", dir: "/r/w", common: "/r", read: []string{"/r"}, write: []string{"/r"}}}
	for _, write := range []bool{false, true} {
		got := r.spec(call{args: []string{"x"}, write: write})
		if got.Mode != sandbox.Require || got.Network != sandbox.NoNetwork || got.ReadOnly == write || len(got.Write) > 0 != write || !slices.Equal(got.Read, []string{"/r"}) || got.Dir != "/w" {
			t.Errorf("write %v: %+v", write, got)
		}
		for _, e := range []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ALLOW_PROTOCOL=none", "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_DIR=/r/w", "GIT_WORK_TREE=/w"} {
			if !slices.Contains(got.Env, e) {
				t.Errorf("write %v: no %s", write, e)
			}
		}
	}
	for _, e := range r.spec(call{hooks: true, write: true}).Env {
		if strings.HasPrefix(e, "GIT_CONFIG_COUNT") {
			t.Error("a hook's git is told what to do")
		}
	}
}
