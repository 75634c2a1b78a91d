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
	Doc: "Finds files by a pattern for their names or paths, such as *.proto or cmd/**/main.go. Use it when you know what a file is " +
		"called; search_code finds text, list_files shows a directory.",
	Scope: contract.ScopeRead, Class: contract.ClassRead, Gateway: "dodo_read",
	ReadOnly: true, Idempotent: true,
}

type globIn struct {
	Pattern        string `json:"pattern" minLength:"1" maxLength:"512" doc:"*, ?, [a-z], {a,b} and ** for any directories. Without / it is about names, anywhere below path; with / about paths from there."`
	Path           string `json:"path" maxLength:"1024" default:"." doc:"The directory to look in, relative to the workspace's root."`
	IncludeIgnored bool   `json:"includeIgnored" default:"false" doc:"Also what ignore files and the usual build folders leave out, such as node_modules."`
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
	look := globber{glob: g, start: start, byTime: in.SortBy == "mtime", most: in.MaxResults}
	err = s.within(ctx, func(ctx context.Context) error { return look.walk(ctx, s.c.Tree, in.IncludeIgnored) })
	if err != nil {
		return none, err
	}
	a := contract.Answer[globOut]{Data: globOut{Files: []globFile{}, Count: look.count}, Truncated: look.cut || look.count > len(look.hits)}
	if look.cut {
		a.Warnings = []string{"the tree is larger than is walked at once; name a directory as path"}
	}
	space := s.room()
	for _, h := range look.hits {
		info, err := s.c.Tree.Stat(h.path)
		if err != nil {
			continue // it went away
		}
		f := globFile{h.path.Shown(), info.Size, info.MtimeNS / 1e6}
		if !space.takes(f) {
			a.Truncated = true
			break
		}
		a.Data.Files = append(a.Data.Files, f)
	}
	return a, nil
}

// A globber walks and keeps the first of the files that match: by path, or the last changed.
type globber struct {
	glob   *ignore.Glob
	start  workspace.Path
	byTime bool
	most   int // how many are kept

	mu    sync.Mutex // over what follows
	hits  []globHit
	full  bool // hits were more than are kept: a file after the last of them is only counted
	count int
	cut   bool // the walk did not come to all files
}

// globHit is a file that matches.
type globHit struct {
	path    workspace.Path
	mtimeNS int64 // 0 when the order does not need it
}

func (l *globber) walk(ctx context.Context, t *workspace.Tree, ignored bool) error {
	skip := 0
	if !l.start.IsRoot() {
		skip = len(l.start.String()) + 1
	}
	o := workspace.WalkOptions{Start: l.start, Ignored: ignored, Workers: min(runtime.GOMAXPROCS(0), workersMax)}
	err := t.Walk(ctx, o, func(v workspace.Visit) error {
		rel := v.Path.String()[skip:]
		if v.Type == safefile.Directory {
			if !onTheWay(rel, l.glob.Dir()) {
				return fs.SkipDir
			}
			return nil
		}
		if !l.glob.Match(rel) {
			return nil
		}
		h := globHit{path: v.Path}
		if l.byTime {
			info, err := v.Stat()
			if err != nil {
				return nil // it went away
			}
			h.mtimeNS = info.MtimeNS
		}
		l.add(h)
		return nil
	})
	if l.cut = err == workspace.ErrCut; l.cut {
		err = nil
	}
	l.trim()
	return err
}

func (l *globber) add(h globHit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if l.full && globOrder(h, l.hits[l.most-1]) > 0 {
		return
	}
	if l.hits = append(l.hits, h); len(l.hits) > 4*l.most+100 {
		l.trim()
	}
}

func (l *globber) trim() {
	slices.SortFunc(l.hits, globOrder)
	if len(l.hits) > l.most {
		l.hits, l.full = l.hits[:l.most], true
	}
}

// globOrder puts what was changed last first; without times it is the order of paths.
func globOrder(a, b globHit) int {
	return cmp.Or(cmp.Compare(b.mtimeNS, a.mtimeNS), pathOrder(a.path.String(), b.path.String()))
}
