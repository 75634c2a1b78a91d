package search

import (
	"cmp"
	"context"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

var globFiles = contract.Def{
	Name: "glob_files", Title: "Find files by name",
	Doc: "Find files by a pattern for their names or paths, such as *.proto or cmd/**/main.go. Use it when you know what a file is called; " +
		"search_code looks into files, list_files shows a directory.",
	Scope: contract.ScopeRead, Class: contract.ClassRead, Gateway: "dodo_read",
	ReadOnly: true, Idempotent: true,
}

type globIn struct {
	Pattern        string `json:"pattern" minLength:"1" maxLength:"512" doc:"*, ?, [a-z], {a,b} and ** for any directories. Without / it is about names, anywhere below path; with / about paths from there."`
	Path           string `json:"path" maxLength:"1024" default:"." doc:"The directory to look in."`
	IncludeIgnored bool   `json:"includeIgnored" default:"false" doc:"Also what ignore files leave out, such as node_modules."`
	MaxResults     int    `json:"maxResults" min:"1" max:"1000" default:"200"`
	SortBy         string `json:"sortBy" enum:"path|mtime" default:"path" doc:"mtime: the last changed first."`
}

type globOut struct {
	Files []globFile `json:"files"`
	Count int        `json:"count" doc:"Files that match; files shows the first of them."`
}

type globFile struct {
	Path    string `json:"path"`
	Size    int64  `json:"size" doc:"Bytes."`
	MtimeMs int64  `json:"mtimeMs" doc:"Last change, in milliseconds since 1970 UTC."`
}

// globHit is a file that matches.
type globHit struct {
	path workspace.Path
	info workspace.Info // known at once only when the order needs it
}

func (s *Service) globFiles(ctx context.Context, _ contract.Call, in globIn) (contract.Answer[globOut], error) {
	var none contract.Answer[globOut]
	g, err := ignore.ParseGlob(in.Pattern)
	if err != nil {
		return none, err
	}
	start, err := workspace.ParsePath(in.Path)
	if err != nil {
		return none, err
	}
	at, err := s.c.Tree.Stat(start)
	if err != nil {
		return none, err
	}
	if at.Type != safefile.Directory {
		return none, fault.New(contract.PathDenied, "this is not a directory").WithHint("give the directory to look in as path").With("path", start.Shown())
	}
	var hits []globHit
	var cut bool
	err = s.within(ctx, func(ctx context.Context) error {
		hits, cut, err = glob(ctx, s.c.Tree, g, start, in.IncludeIgnored, in.SortBy == "mtime")
		return err
	})
	if err != nil {
		return none, err
	}
	a := contract.Answer[globOut]{Data: globOut{Files: []globFile{}, Count: len(hits)}, Truncated: cut}
	if cut {
		a.Warnings = []string{"the tree is larger than is walked at once; name a directory as path"}
	}
	space := s.room()
	for _, h := range hits {
		if h.info.Type == 0 {
			if h.info, err = s.c.Tree.Stat(h.path); err != nil {
				continue // it went away
			}
		}
		f := globFile{h.path.Shown(), h.info.Size, h.info.MtimeNS / 1e6}
		if len(a.Data.Files) == in.MaxResults || !space.takes(f) {
			a.Truncated = true
			break
		}
		a.Data.Files = append(a.Data.Files, f)
	}
	return a, nil
}

// glob walks and returns the files that match, in order: by path, or the last changed first.
func glob(ctx context.Context, t *workspace.Tree, g *ignore.Glob, start workspace.Path, ignored, byTime bool) (hits []globHit, cut bool, err error) {
	skip := 0
	if !start.IsRoot() {
		skip = len(start.String()) + 1
	}
	var mu sync.Mutex
	o := workspace.WalkOptions{Start: start, Ignored: ignored, Workers: min(runtime.GOMAXPROCS(0), workersMax)}
	err = t.Walk(ctx, o, func(v workspace.Visit) error {
		rel := v.Path.String()[skip:]
		if v.Type == safefile.Directory {
			if !onTheWay(rel, g.Dir()) {
				return fs.SkipDir
			}
			return nil
		}
		if !g.Match(rel) {
			return nil
		}
		h := globHit{path: v.Path}
		if byTime {
			in, err := v.Stat()
			if err != nil {
				return nil // it went away
			}
			h.info = in
		}
		mu.Lock()
		hits = append(hits, h)
		mu.Unlock()
		return nil
	})
	if cut = err == workspace.ErrCut; cut {
		err = nil
	}
	slices.SortFunc(hits, func(a, b globHit) int {
		return cmp.Or(cmp.Compare(b.info.MtimeNS, a.info.MtimeNS), pathOrder(a.path.String(), b.path.String()))
	})
	return hits, cut, err
}
