package search

import (
	"context"
	"fmt"
	"slices"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

var searchCode = contract.Def{
	Name: "search_code", Title: "Search text in files",
	Doc: "Finds the lines of files that contain a text or match a regular expression. Use it first when you look for code or words and do not know the file; " +
		"read_files then shows what is around. A line counts once, however often it matches. Ignored files are searched only with includeIgnored; binary and very large files never are, and the answer counts them.",
	Scope: contract.ScopeRead, Class: contract.ClassRead, Gateway: "dodo_read",
	ReadOnly: true, Idempotent: true,
}

// modeContent is the mode of an answer that shows lines.
const modeContent = "content"

type searchIn struct {
	ProjectID      string   `json:"projectId,omitempty" maxLength:"68" doc:"Id of another project to search; project_overview lists them."`
	ProjectIDs     []string `json:"projectIds,omitempty" minItems:"1" maxItems:"8" maxLength:"68" doc:"Ids of several projects to search; not together with projectId."`
	Query          string   `json:"query" minLength:"1" maxLength:"512" doc:"What to look for, on one line."`
	Mode           string   `json:"mode" enum:"literal|regex" default:"literal" doc:"literal: the query as it stands. regex: RE2 syntax as in Go, line by line (LF or CRLF ends a line and is no part of it); no lookaround, no references."`
	CaseSensitive  bool     `json:"caseSensitive" default:"true"`
	Paths          []string `json:"paths,omitempty" maxItems:"20" maxLength:"1024" doc:"Only in these files and directories."`
	FileGlob       string   `json:"fileGlob,omitempty" minLength:"1" maxLength:"256" doc:"Only files whose name (pattern without /) or path matches, such as *.go or src/**/*.{ts,tsx}."`
	IncludeIgnored bool     `json:"includeIgnored" default:"false" doc:"Also what ignore files and the usual build folders leave out, such as node_modules."`
	MaxResults     int      `json:"maxResults" min:"1" max:"100" default:"50" doc:"Lines, or files, in one answer."`
	ContextLines   int      `json:"contextLines" min:"0" max:"10" default:"0" doc:"Lines shown before and after each match."`
	ContextBefore  *int     `json:"contextBefore,omitempty" min:"0" max:"10" doc:"Lines before, instead of contextLines."`
	ContextAfter   *int     `json:"contextAfter,omitempty" min:"0" max:"10" doc:"Lines after, instead of contextLines."`
	OutputMode     string   `json:"outputMode" enum:"content|files|count" default:"content" doc:"content: the lines. files: only which files. count: files with their number of lines."`
	Cursor         string   `json:"cursor,omitempty" maxLength:"256" doc:"nextCursor of the answer before, with the same query."`
}

type searchOut struct {
	foundOut
	Projects     []foundOut   `json:"projects,omitzero" doc:"Of several projects, what was found in each."`
	Failures     []failureOut `json:"failures,omitzero" doc:"Projects that could not be searched."`
	ProjectCount int          `json:"projectCount,omitzero"`
}

type foundOut struct {
	Matches      []matchOut         `json:"matches,omitzero" doc:"The lines, by path and line; only with outputMode content."`
	Files        []countOut         `json:"files,omitzero" doc:"The files of the lines shown; with other modes, files that match, by path."`
	TotalMatches int                `json:"totalMatches" doc:"Lines that match in all files that were searched."`
	TotalFiles   int                `json:"totalFiles,omitzero" doc:"Files that have one."`
	Backend      string             `json:"backend,omitzero"`
	FilesScanned int                `json:"filesScanned,omitzero" doc:"Files that were searched."`
	Skipped      *skippedOut        `json:"skipped,omitempty" doc:"Files that were not searched."`
	Project      *workspace.Project `json:"project,omitempty"`
	Sources      []sourceOut        `json:"sources,omitzero" doc:"Hashes of the files shown: evidence, not for editing."`
}

type matchOut struct {
	Path           string   `json:"path"`
	Line           int      `json:"line" doc:"From 1."`
	Column         int      `json:"column" doc:"Where the first match on the line begins: from 1, in units of UTF-16."`
	LineText       string   `json:"lineText" doc:"The line; of a long one, 500 characters around the match."`
	LineTextColumn int      `json:"lineTextColumn,omitempty" doc:"The column at which lineText begins, when it is not 1."`
	Before         []string `json:"before,omitempty"`
	After          []string `json:"after,omitempty"`
}

type countOut struct {
	Path    string `json:"path"`
	Matches int    `json:"matches" doc:"Lines that match."`
}

type skippedOut struct {
	Large      int `json:"large,omitempty" doc:"Larger than the owner lets a file be read."`
	Binary     int `json:"binary,omitempty" doc:"Not text."`
	Unreadable int `json:"unreadable,omitempty" doc:"Could not be opened."`
}

type sourceOut struct {
	Path string `json:"path"`
	Hash string `json:"hash"`
}

type failureOut struct {
	ProjectID string `json:"projectId"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

func (s *Service) searchCode(ctx context.Context, c contract.Call, in searchIn) (contract.Answer[searchOut], error) {
	var none contract.Answer[searchOut]
	q, err := s.query(&in)
	if err != nil {
		return none, err
	}
	space := s.room()
	if in.MaxResults <= 50 && q.before+q.after == 0 {
		space.left = min(space.left, contract.UsualAnswer)
	}
	if len(in.ProjectIDs) > 0 {
		return s.searchMany(ctx, c, in, q, space)
	}
	tree, epoch, project := s.c.Tree, s.c.Workspace+" "+s.c.Epoch, (*workspace.Project)(nil)
	if in.ProjectID != "" {
		if tree, project, err = workspace.Elsewhere(ctx, s.c.Projects, c, in.ProjectID); err != nil {
			return none, err
		}
		epoch = project.WorkspaceID + " " + project.WorkspaceEpoch
	}
	here, err := cursorOf(c, in, epoch)
	if err != nil {
		return none, err
	}
	var taken cursor
	if in.Cursor != "" {
		if taken, err = s.cursors.take(s.c.Now(), in.Cursor, here); err != nil {
			return none, err
		}
		q.from = taken.from
	}
	var part part
	err = s.within(ctx, func(ctx context.Context) error {
		part, err = s.searchOne(ctx, tree, project, q, space)
		return err
	})
	if err != nil {
		if in.Cursor != "" {
			s.cursors.keep(s.c.Now(), in.Cursor, taken) // the same call may work later
		}
		return none, err
	}
	a := contract.Answer[searchOut]{Data: searchOut{foundOut: part.out}, Warnings: part.warnings, Truncated: part.more || part.cut}
	if part.more && q.texts {
		here.from = part.last
		a.NextCursor = s.cursors.give(s.c.Now(), here)
	}
	return a, nil
}

// query makes the arguments ready, but for where to go on.
func (s *Service) query(in *searchIn) (*query, error) {
	if in.ProjectID != "" && len(in.ProjectIDs) > 0 {
		return nil, fault.New(contract.InvalidInput, "projectId and projectIds exclude each other").WithHint("give one of the two")
	}
	if in.Cursor != "" && (len(in.ProjectIDs) > 0 || in.OutputMode != modeContent) {
		return nil, fault.New(contract.InvalidInput, "a cursor goes on with the lines of one workspace only").
			WithHint("leave cursor out, or use outputMode content without projectIds")
	}
	for i, id := range in.ProjectIDs {
		if slices.Contains(in.ProjectIDs[:i], id) {
			return nil, fault.New(contract.InvalidInput, "projectIds has an id twice").WithHint("name each project once")
		}
	}
	p, err := compile(in.Query, in.Mode == "literal", !in.CaseSensitive)
	if err != nil {
		return nil, err
	}
	q := &query{
		pattern: p, ignored: in.IncludeIgnored, fileMax: int64(s.c.Limits.ReadFileBytes), candidates: candidatesMax,
		texts: in.OutputMode == modeContent, show: min(in.MaxResults, s.c.Limits.SearchResultsMax), before: in.ContextLines, after: in.ContextLines,
	}
	if in.ContextBefore != nil {
		q.before = *in.ContextBefore
	}
	if in.ContextAfter != nil {
		q.after = *in.ContextAfter
	}
	if in.FileGlob != "" {
		if q.glob, err = ignore.ParseGlob(in.FileGlob); err != nil {
			return nil, err
		}
	}
	for _, text := range in.Paths {
		path, err := workspace.ParsePath(text)
		if err != nil {
			return nil, err
		}
		q.paths = append(q.paths, path)
	}
	if len(q.paths) == 0 {
		q.paths = []workspace.Path{{}}
	}
	q.paths = places(q.paths)
	return q, nil
}

// cursorOf is what a cursor of this call is bound to.
func cursorOf(c contract.Call, in searchIn, epoch string) (cursor, error) {
	in.Cursor, in.MaxResults, in.ContextLines, in.ContextBefore, in.ContextAfter = "", 0, 0, nil, nil
	digest, err := contract.Digest(in)
	if err != nil {
		return cursor{}, err
	}
	return cursor{grant: c.Principal.GrantID, epoch: epoch, query: digest}, nil
}

// searchMany searches several projects; each has its share of the answer.
func (s *Service) searchMany(ctx context.Context, c contract.Call, in searchIn, q *query, space room) (contract.Answer[searchOut], error) {
	a := contract.Answer[searchOut]{Data: searchOut{Projects: []foundOut{}, Failures: []failureOut{}, ProjectCount: len(in.ProjectIDs)}}
	q.show = max(q.show/len(in.ProjectIDs), 1)
	space.left /= len(in.ProjectIDs)
	one := func(ctx context.Context, id string) (part, error) {
		tree, project, err := workspace.Elsewhere(ctx, s.c.Projects, c, id)
		if err != nil {
			return part{}, err
		}
		return s.searchOne(ctx, tree, project, q, space)
	}
	err := s.within(ctx, func(limited context.Context) error {
		for i, id := range in.ProjectIDs {
			c.Report(float64(i), float64(len(in.ProjectIDs)), "projects searched")
			var found part
			err := s.within(limited, func(ctx context.Context) (err error) {
				found, err = one(ctx, id)
				return err
			})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if limited.Err() != nil {
				err = fault.New(contract.Timeout, "the time of the search was over before this project was done").Retry()
			}
			if err != nil {
				f := fault.From(err)
				code := f.Code
				if code == fault.Internal {
					code = contract.InternalError
				}
				a.Data.Failures = append(a.Data.Failures, failureOut{id, string(code), f.Error(), f.Retryable})
				continue
			}
			a.Data.Projects = append(a.Data.Projects, found.out)
			a.Data.TotalMatches += found.out.TotalMatches
			a.Truncated = a.Truncated || found.more || found.cut
			for _, w := range found.warnings {
				a.Warnings = append(a.Warnings, id+": "+w)
			}
		}
		return nil
	})
	return a, err
}

// A part is the answer of one workspace.
type part struct {
	out      foundOut
	warnings []string
	more     bool  // there is more than is shown
	cut      bool  // there are files that were not looked at
	last     place // the last line that is shown
}

// searchOne searches a workspace: this one, or the project's.
func (s *Service) searchOne(ctx context.Context, t *workspace.Tree, p *workspace.Project, q *query, space room) (part, error) {
	q.hashes = p != nil
	f, err := scan(ctx, t, q, &s.buffers)
	if err != nil {
		return part{}, err
	}
	a := part{cut: f.cut, out: foundOut{TotalMatches: f.total, TotalFiles: f.with, Backend: Backend, FilesScanned: f.scanned, Files: []countOut{}, Project: p}}
	if p != nil {
		a.out.Sources = []sourceOut{}
	}
	if f.large+f.binary+f.closed > 0 {
		a.out.Skipped = &skippedOut{f.large, f.binary, f.closed}
	}
	if q.texts {
		a.out.Matches = []matchOut{}
		a.lines(f, q, space)
	} else {
		a.files(f, q, space)
	}
	a.warn(f, q)
	return a, nil
}

// lines shows the lines, as many as are wanted and fit.
func (a *part) lines(f *finding, q *query, space room) {
	for i := range f.files {
		file := &f.files[i]
		path := file.path.Shown()
		for j, m := range file.matches {
			out := matchOut{Path: path, Line: m.line, Column: m.column, LineText: m.text, Before: m.before, After: m.after}
			if m.shift > 0 {
				out.LineTextColumn = m.shift + 1
			}
			needs := []any{out}
			if j == 0 {
				needs = append(needs, countOut{path, file.count}, sourceOut{path, file.hash})
			}
			if len(a.out.Matches) == q.show || !space.takes(needs...) {
				if len(a.out.Matches) > 0 {
					a.more = true
					return
				}
				out.Before, out.After = nil, nil // the first is shown in any case
			}
			if j == 0 {
				a.file(file, q)
			}
			a.out.Matches = append(a.out.Matches, out)
			a.last = place{file.path.String(), m.line}
		}
	}
}

// files shows the files, as many as are wanted and fit.
func (a *part) files(f *finding, q *query, space room) {
	for i := range f.files {
		path := f.files[i].path.Shown()
		if i == q.show || !space.takes(countOut{path, f.files[i].count}, sourceOut{path, f.files[i].hash}) {
			break
		}
		a.file(&f.files[i], q)
	}
	a.more = f.with > len(a.out.Files)
}

func (a *part) file(f *fileMatch, q *query) {
	path := f.path.Shown()
	a.out.Files = append(a.out.Files, countOut{path, f.count})
	if q.hashes {
		a.out.Sources = append(a.out.Sources, sourceOut{path, f.hash})
	}
}

func (a *part) warn(f *finding, q *query) {
	add := func(format string, args ...any) { a.warnings = append(a.warnings, fmt.Sprintf(format, args...)) }
	if f.cut {
		add("there are more files than are searched at once; narrow the search with paths or fileGlob")
	}
	if f.large > 0 {
		add("files of more than %d bytes were not searched: %d", q.fileMax, f.large)
	}
	if f.closed > 0 {
		add("files or directories that could not be read: %d", f.closed)
	}
	unnamed := 0
	for i := range f.files {
		if !f.files[i].path.Nameable() {
			unnamed++
		}
	}
	if unnamed > 0 {
		add("files with matches whose names no tool takes, so that they cannot be opened: %d", unnamed)
	}
}
