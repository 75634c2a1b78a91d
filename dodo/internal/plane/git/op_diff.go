package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type diffIn struct {
	Paths        []string `json:"paths,omitempty" maxItems:"20" maxLength:"1024" doc:"Files and directories to keep to, relative to the workspace's root; everything when absent."`
	Staged       bool     `json:"staged" default:"false" doc:"What the next commit would change, instead of what is not staged."`
	ContextLines int      `json:"contextLines" min:"0" max:"20" default:"3"`
}

type diffOut struct {
	IsRepo bool   `json:"isRepo"`
	Diff   string `json:"diff" doc:"A unified diff, as git writes it."`
}

func (s *Service) diff() contract.Op {
	return contract.Read(reading("git_diff", "Git diff",
		"Shows what was changed and not staged, or with staged what the next commit would change, as a unified diff. Files that git does "+
			"not track yet are not in it; git_status lists them. Secret files are left out."),
		func(ctx context.Context, _ contract.Call, in diffIn) (a contract.Answer[diffOut], err error) {
			paths, err := s.wanted(in.Paths)
			if err != nil {
				return a, err
			}
			g, err := s.open(ctx)
			if err != nil || g == nil {
				return a, err
			}
			a.Data.IsRepo = true
			if err := g.matched(ctx, paths); err != nil {
				return a, err
			}
			changes, err := g.changes(ctx, in.Staged, paths)
			if err != nil {
				return a, err
			}
			patch, cut, late, err := g.patch(ctx, in, paths, changes)
			if err != nil {
				return a, err
			}
			if n := len(changes.hidden) + late; n > 0 {
				a.Warnings = append(a.Warnings, fmt.Sprintf("%d files were left out because their paths are secret or protected", n))
			}
			if plain := strings.ReplaceAll(patch, "\r\n", "\n"); text.Visible(plain) != plain {
				a.Warnings = append(a.Warnings, "the diff has control or direction characters that are not seen")
			}
			a.Data.Diff, a.Truncated = fit(patch, s.Limits.Room())
			a.Truncated = a.Truncated || cut
			return a, nil
		})
}

// diffArgs are the arguments that a difference of either form is asked with.
func (g *session) diffArgs(staged bool) []string {
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"}
	if staged {
		args = append(args, "--cached", "--diff-filter=ACDMRTXB") // of a conflict git only writes the bare name
	}
	if g.repo.prefix == "" {
		return append(args, "--no-relative")
	}
	return append(args, "--relative="+g.repo.prefix)
}

// mostHidden bounds the arguments that leave files out.
const mostHidden = 2000

// changed are the files of a difference, by their paths in the workspace as git writes them.
type changed struct {
	hidden   []string        // are not shown
	unmerged map[string]bool // have conflicts
}

// changes looks at what is changed before it is shown. Git is then told to leave out what is
// hidden, so that no other file is shown as one of those renamed.
func (g *session) changes(ctx context.Context, staged bool, paths []workspace.Path) (c changed, err error) {
	args := append(g.diffArgs(staged), "--raw", "-z", "--no-renames", "--no-abbrev")
	out, err := g.runner.run(ctx, call{args: append(args, g.scope(paths)...)})
	if err != nil {
		return c, err
	}
	all, ok := parseRaw(out.bytes)
	if !ok {
		return c, unreadable()
	}
	c.unmerged = map[string]bool{}
	seen := map[string]bool{}
	for _, d := range all {
		if d.status == 'U' {
			c.unmerged[d.path] = true
		}
		if _, where := g.locate(g.repo.prefix + d.path); where != shown && !seen[d.path] { // a conflict has several records
			seen[d.path] = true
			c.hidden = append(c.hidden, d.path)
		}
	}
	if len(c.hidden) > mostHidden {
		return c, fault.New(contract.ResourceLimit, "more than %d changed files are secret or protected", mostHidden).WithHint("name the paths you need")
	}
	return c, nil
}

// patch is the difference without what is hidden. late counts what became hidden meanwhile.
func (g *session) patch(ctx context.Context, in diffIn, paths []workspace.Path, c changed) (patch string, cut bool, late int, err error) {
	args := append(g.diffArgs(in.Staged), "--patch", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/",
		"--unified="+strconv.Itoa(in.ContextLines), "--inter-hunk-context=0", "--")
	ask := call{args: append(args, g.scope(paths)[1:]...), cut: true}
	if len(c.hidden) > 0 {
		ask = call{args: append(args, g.without(paths, c.hidden)...), env: []string{"GIT_LITERAL_PATHSPECS=0"}, cut: true}
	}
	out, err := g.runner.run(ctx, ask)
	if err != nil {
		return "", false, 0, err
	}
	var b strings.Builder
	for _, s := range split(out.bytes) {
		s, ok := g.showable(s, c)
		if !ok {
			late++
			continue
		}
		for line := range strings.Lines(string(s)) {
			if !utf8.ValidString(line) {
				line = text.Visible(line)
			}
			b.WriteString(line)
		}
	}
	return b.String(), out.cut, late, nil
}

// without are pathspecs for paths but not what is hidden. All of them have the words that make
// git take the rest literally.
func (g *session) without(paths []workspace.Path, hidden []string) (specs []string) {
	for _, p := range g.scope(paths)[1:] {
		specs = append(specs, ":(top,literal)"+p)
	}
	for _, h := range hidden {
		specs = append(specs, ":(top,literal,exclude)"+g.repo.prefix+h)
	}
	return specs
}

// showable gives a section as it may be shown; not ok when one of its names is hidden.
func (g *session) showable(s section, c changed) (section, bool) {
	names, ok := s.names()
	if ok && s.combined() && g.repo.prefix != "" {
		// Of a conflict, git gives the path in the repository where it is asked for that in the
		// workspace. Which of them it is, what it said before tells; when it could be both, both
		// must be ones that are shown.
		var real []string
		if c.unmerged[names[0]] {
			real = append(real, names[0])
		}
		if rel, is := strings.CutPrefix(names[0], g.repo.prefix); is && c.unmerged[rel] {
			real = append(real, rel)
			s = s.below(g.repo.prefix)
		}
		names, ok = real, len(real) > 0
	}
	for _, n := range names {
		if _, where := g.locate(g.repo.prefix + n); where != shown {
			return nil, false
		}
	}
	return s, ok
}

// fit gives as many whole lines as take at most room bytes in JSON.
func fit(patch string, room int) (string, bool) {
	if op.EncodedLen(patch) <= room {
		return patch, false
	}
	end := 0
	for line := range strings.Lines(patch) {
		if room -= op.EncodedLen(line); room < 0 {
			break
		}
		end += len(line)
	}
	return patch[:end], true
}
