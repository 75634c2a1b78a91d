package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type readInput struct {
	Files     []wanted `json:"files" minItems:"1" maxItems:"10" doc:"The files, each whole or a part of it."`
	ProjectID string   `json:"projectId,omitempty" maxLength:"68" doc:"Id of another project to read from; project_overview lists them."`
}

type wanted struct {
	Path       string `json:"path" maxLength:"1024" doc:"The file, relative to the workspace's root."`
	StartLine  int64  `json:"startLine,omitempty" min:"1" doc:"The first line wanted, counted from 1."`
	EndLine    int64  `json:"endLine,omitempty" min:"1" doc:"The last line wanted."`
	TailLines  int64  `json:"tailLines,omitempty" min:"1" doc:"How many of the last lines, instead of startLine and endLine. Fast in a file of any size."`
	ByteOffset *int64 `json:"byteOffset,omitempty" min:"0" doc:"The byte to begin at, instead of a line; nextOffset of an earlier answer goes on there."`
	MaxBytes   int    `json:"maxBytes,omitempty" min:"32" doc:"How much content to give at most, in bytes."`
	Numbered   bool   `json:"numbered,omitempty" doc:"Put the number of each line before it, and a tab. An edit must not repeat them."`
	Encoding   string `json:"encoding,omitempty" enum:"utf-8|utf-16le|utf-16be|windows-1252|iso-8859-1|shift_jis|gb18030" doc:"What to read the bytes as; when absent, UTF-8, or UTF-16 with its mark."`
}

type readOutput struct {
	Files   []fileRead   `json:"files" doc:"What was read, in the order asked for."`
	Errors  []fileFailed `json:"errors" doc:"What could not be read, and why."`
	Project *Project     `json:"project,omitempty" doc:"Where this is from, when projectId was given."`
}

type fileRead struct {
	Path       string  `json:"path"`
	Content    *string `json:"content" doc:"Exactly as in the file, in UTF-8; null for a binary file."`
	StartLine  *int64  `json:"startLine" doc:"The first line of content; null when it is not known."`
	EndLine    *int64  `json:"endLine"`
	TotalLines *int64  `json:"totalLines" doc:"Lines of the file; null when it is too large to count them."`
	Partial    bool    `json:"partial" doc:"Content is not all of the file."`
	Truncated  bool    `json:"truncated" doc:"Content is not all that was asked for."`
	Hash       *string `json:"hash" doc:"Of the whole file's bytes: what an edit takes as expectedHash. Null when it is too large."`
	Size       int64   `json:"size" doc:"Of the whole file, in bytes."`
	Encoding   *string `json:"encoding" doc:"What the bytes were read as; null for a binary file."`
	Kind       string  `json:"kind" doc:"text, or what a binary file is."`
	MIMEType   string  `json:"mimeType"`
	NextOffset *int64  `json:"nextOffset" doc:"The byteOffset to go on with; null at the end of the file."`
}

type fileFailed struct {
	Path  string    `json:"path"`
	Error readError `json:"error"`
}

type readError struct {
	Code     fault.Code `json:"code"`
	Message  string     `json:"message"`
	Recovery string     `json:"recovery,omitempty"`
}

// leastShare is the smallest part of an answer that is worth giving to a file.
const leastShare = 512

func (s *Service) readFiles() contract.Op {
	return contract.Read(contract.Def{
		Name: "read_files", Title: "Read files", Gateway: "dodo_read",
		Doc: "Reads several text files, each whole or in part: by lines, the last lines, or bytes from an offset. Read what you are going to change: its hash proves, " +
			"when you write, that nobody changed it meanwhile. A large file is read in part only, from any place at once. Of a binary file the answer says what it is, without its bytes. A file that cannot be read stands in errors beside the others.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, c contract.Call, in readInput) (contract.Answer[readOutput], error) {
		none := contract.Answer[readOutput]{}
		if len(in.Files) > s.limits.ReadBatchMax {
			return none, fault.New(contract.ResourceLimit, "at most %d files are read at once here", s.limits.ReadBatchMax).WithHint("read the others in a further call")
		}
		t, project, err := s.from(ctx, c, in.ProjectID)
		if err != nil {
			return none, err
		}
		r := reader{s: s, t: t, room: s.limits.ToolContentBytes - 8<<10}
		if err := r.read(ctx, in.Files); err != nil {
			return none, err
		}
		a := contract.Answer[readOutput]{Data: readOutput{Files: []fileRead{}, Errors: []fileFailed{}, Project: project}, Warnings: r.warnings}
		for i := range r.parts {
			p := &r.parts[i]
			if p.err != nil {
				f := fault.From(p.err)
				a.Data.Errors = append(a.Data.Errors, fileFailed{p.shown, readError{f.Code, f.Error(), f.Hint}})
				continue
			}
			a.Truncated = a.Truncated || p.out.Truncated
			a.Data.Files = append(a.Data.Files, p.out)
		}
		return a, nil
	})
}

// reader reads the files of one call and shares the room of the answer among them.
type reader struct {
	s        *Service
	t        *Tree
	room     int // bytes of JSON still to give
	parts    []part
	warnings []string
}

// part is one file of a call.
type part struct {
	wanted
	number int // in the call, from 1
	shown  string
	path   Path
	need   int64 // about how much it will take
	out    fileRead
	err    error
}

// read lets the file that needs least come first: what it leaves of its share goes to the
// others.
func (r *reader) read(ctx context.Context, files []wanted) error {
	order := make([]*part, len(files))
	r.parts = make([]part, len(files))
	for i, w := range files {
		p := &r.parts[i]
		p.wanted, p.number, p.shown = w, i+1, shown(w.Path)
		order[i] = p
		if p.path, p.err = ParsePath(w.Path); p.err != nil {
			continue
		}
		p.shown = p.path.Shown()
		in, err := r.t.Stat(p.path)
		p.need, p.err = in.Size, err
		if p.MaxBytes > 0 {
			p.need = min(p.need, int64(p.MaxBytes))
		}
	}
	slices.SortStableFunc(order, func(a, b *part) int { return cmp.Compare(a.need, b.need) })
	for i, p := range order {
		r.room -= op.EncodedLen(p.shown) + 320 // the names and marks around it
		if p.err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		share := r.room / (len(order) - i)
		if share < leastShare {
			p.err = fault.New(contract.ResourceLimit, "the answer is full").WithHint("read this file in a further call")
			continue
		}
		if p.err = r.one(ctx, p, share); p.err != nil && ctx.Err() != nil {
			return p.err
		}
		if p.err == nil && p.out.Content != nil {
			r.room -= op.EncodedLen(*p.out.Content)
		}
	}
	return nil
}

// one reads a file into at most share bytes of JSON.
func (r *reader) one(ctx context.Context, p *part, share int) error {
	whole := int64(r.s.limits.ReadFileBytes)
	q := text.Query{
		Encoding: text.Encoding(p.Encoding), StartLine: p.StartLine, EndLine: p.EndLine, TailLines: p.TailLines,
		Numbered: p.Numbered, MaxBytes: share, CountBytes: whole,
	}
	if p.ByteOffset != nil {
		q.ByBytes, q.ByteOffset = true, *p.ByteOffset
	}
	if p.MaxBytes > 0 {
		q.MaxBytes = min(share, p.MaxBytes)
	}
	data, in, err := r.t.Read(p.path, whole)
	p.out = fileRead{Path: p.shown}
	var source io.ReaderAt = bytes.NewReader(data)
	switch {
	case err == nil:
		hash := contract.Hash(data)
		p.out.Hash = &hash
	case errors.Is(err, contract.FileTooLarge) || errors.Is(err, contract.FileChanged) && p.somewhere():
		f, ferr := r.t.Open(p.path)
		if ferr != nil {
			return ferr
		}
		defer f.Close()
		if known, ferr := p.bounded(f); ferr != nil {
			return r.t.lookup(p.path, ferr)
		} else if !known {
			return err
		}
		source, in = f, f.Info
	default:
		return err
	}
	p.out.Size = in.Size
	w, err := fitting(ctx, source, in.Size, q, share)
	if err != nil {
		return err
	}
	p.out.Kind, p.out.MIMEType = text.Visible(w.Kind.Name), w.Kind.MIME
	p.out.Partial, p.out.Truncated = w.Partial, w.Truncated
	if w.Kind.Binary {
		if w.Kind.Guess != "" {
			r.warnings = append(r.warnings, fmt.Sprintf("file %d looks like text in %s: ask with encoding", p.number, w.Kind.Guess))
		}
		return nil
	}
	encoding := string(w.Kind.Encoding)
	p.out.Content, p.out.Encoding = &w.Content, &encoding
	if w.TotalLines >= 0 {
		p.out.TotalLines = &w.TotalLines
	}
	if w.NextOffset >= 0 {
		p.out.NextOffset = &w.NextOffset
	}
	if w.StartLine > 0 {
		p.out.StartLine, p.out.EndLine = &w.StartLine, &w.EndLine
	}
	if w.Hidden > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("file %d has %d control or direction characters that are not seen", p.number, w.Hidden))
	}
	return nil
}

// somewhere reports whether a place in the file is asked for, which is there also while the
// file grows.
func (p *part) somewhere() bool { return p.TailLines > 0 || p.ByteOffset != nil }

// bounded reports whether it is known what part of a file is wanted that is not read whole. What
// is no text only says what it is.
func (p *part) bounded(f *File) (bool, error) {
	if p.somewhere() || p.StartLine > 0 || p.EndLine > 0 || p.MaxBytes > 0 {
		return true, nil
	}
	head := make([]byte, text.HeadBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	return p.Encoding == "" && text.Detect(head[:n], false).Binary, nil
}

// fitting reads a window that has at most share bytes as JSON, whatever its characters need
// to be written.
func fitting(ctx context.Context, source io.ReaderAt, size int64, q text.Query, share int) (text.Window, error) {
	for {
		w, err := text.Read(ctx, source, size, q)
		if err != nil {
			return w, err
		}
		n := op.EncodedLen(w.Content)
		if n <= share {
			return w, nil
		}
		// Less by as much as it is too long; some more, so that this ends soon.
		q.MaxBytes = int(int64(len(w.Content)) * int64(share) / int64(n) * 9 / 10)
	}
}
