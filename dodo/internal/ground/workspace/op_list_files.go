package workspace

import (
	"context"
	"fmt"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/op"
	"localmcp/internal/safefile"
)

type listInput struct {
	Path           string `json:"path" default:"." maxLength:"1024" doc:"The directory, relative to the workspace's root."`
	Depth          int    `json:"depth,omitempty" min:"1" max:"10" doc:"How many levels to show; when absent, as many as the owner set (2)."`
	IncludeIgnored bool   `json:"includeIgnored" default:"false" doc:"Also what ignore files and the usual build folders leave out, such as node_modules."`
	MaxEntries     int    `json:"maxEntries,omitempty" min:"1" max:"2000" doc:"How many entries to show at most; the owner's own limit counts when it is lower."`
	ProjectID      string `json:"projectId,omitempty" maxLength:"68" doc:"Id of another project to look at; project_overview lists them."`
}

type listOutput struct {
	Tree       *listed  `json:"tree" type:"object" doc:"The directory: path, type (file or dir), size of a file in bytes, children of a directory that was looked into, truncated where some are left out."`
	EntryCount int      `json:"entryCount" doc:"Entries shown, without the directory itself."`
	Project    *Project `json:"project,omitempty" doc:"Where this is from, when projectId was given."`
}

type listed struct {
	Path      string    `json:"path"`
	Type      string    `json:"type"`
	Size      *int64    `json:"size,omitempty"`
	Children  []*listed `json:"children,omitzero"`
	Truncated bool      `json:"truncated,omitempty"`

	at Path
}

func (s *Service) listFiles() contract.Op {
	return contract.Read(contract.Def{
		Name: "list_files", Title: "List files", Gateway: "dodo_read",
		Doc: "Shows a directory as a tree, a few levels deep. Use it to learn how a project is laid out; glob_files finds files by name, " +
			"search_code finds text. Links and secret files are never shown, ignored ones only with includeIgnored. When the answer is " +
			"truncated, list a directory below.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, c contract.Call, in listInput) (contract.Answer[listOutput], error) {
		t, project, err := s.from(ctx, c, in.ProjectID)
		if err != nil {
			return contract.Answer[listOutput]{}, err
		}
		p, err := ParsePath(in.Path)
		if err != nil {
			return contract.Answer[listOutput]{}, err
		}
		l := lister{t: t, ignored: in.IncludeIgnored, entries: s.limits.TreeEntriesMax, bytes: s.limits.Room()}
		if in.MaxEntries > 0 {
			l.entries = min(l.entries, in.MaxEntries)
		} else if in.Depth == 0 {
			l.bytes = min(l.bytes, contract.UsualAnswer)
		}
		depth := in.Depth
		if depth == 0 {
			depth = s.limits.TreeDepthDefault
		}
		out := listOutput{Tree: &listed{Path: p.Shown(), Type: "dir", at: p}, Project: project}
		if err := l.list(ctx, out.Tree, depth); err != nil {
			return contract.Answer[listOutput]{}, err
		}
		out.EntryCount = l.shown
		a := contract.Answer[listOutput]{Data: out, Truncated: l.cut}
		if l.unread > 0 {
			a.Warnings = []string{fmt.Sprintf("%d directories could not be read", l.unread)}
		}
		return a, nil
	})
}

// lister makes a tree level by level, so that what does not fit is what is deepest.
type lister struct {
	t              *Tree
	ignored        bool
	entries, bytes int // still to give

	shown, unread int
	cut           bool
}

func (l *lister) list(ctx context.Context, start *listed, depth int) error {
	if err := l.look(start); err != nil {
		return err
	}
	level := []*listed{start}
	for range depth - 1 {
		var next []*listed
		for _, parent := range level {
			for _, dir := range parent.Children {
				if dir.Type != "dir" {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if l.full() {
					dir.Truncated, l.cut = true, true
				} else if err := l.look(dir); err != nil {
					dir.Truncated = true
					l.unread++
				}
				next = append(next, dir)
			}
		}
		level = next
	}
	return nil
}

func (l *lister) full() bool { return l.entries <= 0 || l.bytes <= 0 }

// look gives a directory its children.
func (l *lister) look(dir *listed) error {
	d, err := l.t.openDir(dir.at)
	if err != nil {
		return err
	}
	defer d.Close()
	items, err := l.t.items(d, dir.at, l.ignored)
	if err != nil {
		return err
	}
	dir.Children = []*listed{}
	for _, i := range items {
		child := &listed{Path: i.path.Shown(), Type: "dir", at: i.path}
		if !i.dir {
			in, err := d.Stat(i.name)
			if err != nil || in.Type != safefile.Regular {
				continue // it went away, or became something else
			}
			child.Type, child.Size = "file", &in.Size
		}
		if l.full() {
			dir.Truncated, l.cut = true, true
			return nil
		}
		l.entries--
		l.bytes -= op.EncodedLen(child.Path) + 48 // the names and marks around it
		l.shown++
		dir.Children = append(dir.Children, child)
	}
	return nil
}
