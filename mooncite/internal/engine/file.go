package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
	"localmcp/mooncite/internal/transcript"
)

// errBeyondEnd says that a byte range lies behind the end of its file.
var errBeyondEnd = errors.New("range is beyond the end of the file")

// sourceFile is a source open for inspection.
type sourceFile struct {
	tree  *source.Tree
	file  *source.File
	shape transcript.Shape
}

// openSource opens the present file of a source. The error is fs.ErrNotExist when it
// or its root is gone.
func (e *Engine) openSource(f *freshness, src *index.Source) (sourceFile, error) {
	for i := range f.set.Roots {
		r := &f.set.Roots[i]
		if r.Origin != src.Origin || r.Digest != src.Root {
			continue
		}
		switch r.State {
		case source.Missing, source.Covered:
			return sourceFile{}, fs.ErrNotExist
		case source.Usable:
		default:
			if r.Problem != nil {
				return sourceFile{}, r.Problem
			}
			return sourceFile{}, fault.New(evidence.CodeSource, "the source's root is read under its real path")
		}
		tree, err := f.set.Open(i, source.Rules{})
		if err != nil {
			return sourceFile{}, err
		}
		file, err := tree.OpenFile(src.Rel)
		if err != nil {
			tree.Close()
			return sourceFile{}, err
		}
		return sourceFile{tree, file, transcript.ShapeOf(src.File())}, nil
	}
	return sourceFile{}, fs.ErrNotExist
}

// Close closes the file.
func (s *sourceFile) Close() error { return errors.Join(s.file.Close(), s.tree.Close()) }

// Verify reports an error when what was read may not be one state of the file.
func (s *sourceFile) Verify() error {
	_, err := s.file.Verify()
	return err
}

// Range reads a byte range of the file's text.
func (s *sourceFile) Range(start, end int64) ([]byte, error) {
	if start < 0 || end < start || end-start > evidence.MaxConversation {
		return nil, errBeyondEnd
	}
	if s.shape == transcript.Packed {
		return s.unpackedRange(start, end)
	}
	if end > s.file.ID.Size {
		return nil, errBeyondEnd
	}
	b := make([]byte, end-start)
	_, err := s.file.ReadAt(b, start)
	if errors.Is(err, io.EOF) && end == s.file.ID.Size {
		err = nil
	}
	return b, err
}

func (s *sourceFile) unpackedRange(start, end int64) ([]byte, error) {
	in, err := transcript.Unpack(io.NewSectionReader(s.file, 0, s.file.ID.Size))
	if err != nil {
		return nil, errBeyondEnd
	}
	defer in.Close()
	if _, err := io.CopyN(io.Discard, in, start); err != nil {
		return nil, errBeyondEnd
	}
	b := make([]byte, end-start)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, errBeyondEnd
	}
	return b, nil
}

// Each parses the whole file.
func (s *sourceFile) Each(ctx context.Context, f transcript.File, emit func(*transcript.Record, *transcript.Entry) error) error {
	p, err := transcript.New(f, nil)
	if err != nil {
		return err
	}
	var in io.ReadCloser = io.NopCloser(io.NewSectionReader(s.file, 0, s.file.ID.Size))
	if s.shape == transcript.Packed {
		if in, err = transcript.Unpack(in); err != nil {
			return err
		}
	}
	defer in.Close()
	each := func(r *transcript.Record, en *transcript.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return emit(r, en)
	}
	if _, err := transcript.Scan(in, f, transcript.Position{}, p, each); err != nil {
		return err
	}
	_, err = p.Finish(each)
	return err
}
