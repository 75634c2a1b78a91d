package git

import (
	"context"
	"fmt"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/op"
)

// mostEntries are how many entries a status shows at most (spec dodo-behaviour 6).
const mostEntries = 500

type statusIn struct{}

type statusOut struct {
	IsRepo              bool          `json:"isRepo" doc:"False when the workspace is in no repository."`
	Branch              *string       `json:"branch,omitempty" doc:"Absent when no branch is checked out."`
	Upstream            *string       `json:"upstream,omitempty"`
	Ahead               *int          `json:"ahead,omitempty" doc:"Commits that the upstream has not."`
	Behind              *int          `json:"behind,omitempty" doc:"Commits of the upstream that the branch has not."`
	Entries             []statusEntry `json:"entries"`
	Truncated           bool          `json:"truncated" doc:"There are more entries than are shown."`
	FilteredSecretPaths int           `json:"filteredSecretPaths" doc:"Entries left out because their paths are secret or protected."`
}

type statusEntry struct {
	Path     string `json:"path"`
	Status   string `json:"status" doc:"Two letters, of the index and of the work tree, such as M. or .M; ?? is untracked, u:XY is a conflict."`
	OrigPath string `json:"origPath,omitempty" doc:"Where a renamed or copied file was."`
}

func (s *Service) status() contract.Op {
	return contract.Read(reading("git_status", "Git status",
		"Shows the branch and what differs between the last commit, the index and the files. Inside of submodules nothing is looked at."),
		func(ctx context.Context, _ contract.Call, _ statusIn) (a contract.Answer[statusOut], err error) {
			a.Data.Entries = []statusEntry{}
			g, err := s.open(ctx)
			if err != nil || g == nil {
				return a, err
			}
			a.Data.IsRepo = true
			st, cut, err := g.state(ctx, asking{cut: true})
			if err != nil {
				return a, err
			}
			a.Data.describe(st)
			room := s.Limits.Room() - op.EncodedLen(st.branch) - op.EncodedLen(st.upstream) - 512
			for _, e := range st.entries {
				one, is, hidden := g.present(e)
				a.Data.FilteredSecretPaths += hidden
				if !is {
					continue
				}
				room -= op.EncodedLen(one.Path) + op.EncodedLen(one.OrigPath) + 48 // the names and marks around them
				if len(a.Data.Entries) == mostEntries || room < 0 {
					cut = true
					continue
				}
				a.Data.Entries = append(a.Data.Entries, one)
			}
			a.Data.Truncated, a.Truncated = cut, cut
			a.Warnings, err = g.stagedOutside(ctx)
			return a, err
		})
}

// asking is what of the state is asked for.
type asking struct {
	paths     []workspace.Path // keep to them
	tracked   bool             // leave out what git does not track
	noRenames bool
	cut       bool // keep the beginning of an answer that is too long, which is refused otherwise
}

// state asks git for the state of the workspace's part of the repository; cut says that there
// is more.
func (g *session) state(ctx context.Context, a asking) (st state, cut bool, err error) {
	args := []string{"status", "--porcelain=v2", "-z", "--branch", "--ahead-behind", "--ignored=no", "--ignore-submodules=dirty"}
	pick := func(is bool, yes, no string) {
		if is {
			no = yes
		}
		args = append(args, no)
	}
	pick(a.tracked, "--untracked-files=no", "--untracked-files=all")
	pick(a.noRenames, "--no-renames", "--find-renames")
	out, err := g.runner.run(ctx, call{args: append(args, g.scope(a.paths)...), cut: a.cut})
	if err != nil {
		return state{}, false, err
	}
	return parseState(out.bytes), out.cut, nil
}

// describe says where the work tree is.
func (o *statusOut) describe(st state) {
	name := func(s string) *string {
		if s == "" {
			return nil
		}
		s = text.Visible(s)
		return &s
	}
	o.Branch, o.Upstream = name(st.branch), name(st.upstream)
	if st.compared {
		o.Ahead, o.Behind = &st.ahead, &st.behind
	}
}

// present is an entry as callers may see it, and how many of its paths they may not.
func (g *session) present(e entry) (one statusEntry, is bool, hidden int) {
	p, where := g.locate(e.path)
	was, before := p, where
	if e.kind == '2' {
		was, before = g.locate(e.orig)
	}
	for _, w := range []place{where, before} {
		if w == kept && (e.kind == '2' || hidden == 0) {
			hidden++
		}
	}
	one = statusEntry{Path: p.Shown(), Status: e.xy}
	switch {
	case e.kind == 'u':
		one.Status = "u:" + e.xy
	case e.kind == '?' && strings.HasSuffix(e.path, "/"):
		one.Path += "/" // another repository
	case e.kind == '2' && where == shown && before == shown:
		one.OrigPath = was.Shown()
	case e.kind == '2' && where == shown: // all that can be said of it is that it is new
		one.Status = strings.NewReplacer("R", "A", "C", "A").Replace(e.xy)
	case e.kind == '2' && before == shown && strings.Contains(e.xy, "R"): // and here, that it went
		return statusEntry{Path: was.Shown(), Status: strings.Replace(e.xy, "R", "D", 1)}, true, hidden
	}
	return one, where == shown, hidden
}

// stagedOutside warns of what git_commit would refuse, where the repository is larger than the
// workspace.
func (g *session) stagedOutside(ctx context.Context) ([]string, error) {
	if g.repo.prefix == "" {
		return nil, nil
	}
	list, err := g.staged(ctx, "")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, d := range list {
		if _, where := g.locate(d.path); where == outside {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("%d staged changes are outside of the workspace and are not shown; git_commit refuses while they are staged", n)}, nil
}
