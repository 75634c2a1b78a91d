package search

import (
	"context"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// longestNeedle is how much of a text files are looked through for, in bytes.
const longestNeedle = 256

// Find lists the text files that may hold a text without a line break: those that hold its
// beginning, the first max of them by path. paths narrow it to files and directories, glob
// to names; ignored takes in what the ordinary layer leaves out. Where not all files were
// looked through, it gives RESOURCE_LIMIT: the list would not be all there is.
func (s *Service) Find(ctx context.Context, literal string, paths []workspace.Path, glob string, ignored bool, max int) ([]workspace.Path, error) {
	if len(literal) > longestNeedle {
		cut := longestNeedle
		for cut > 0 && !utf8.RuneStart(literal[cut]) {
			cut--
		}
		literal = literal[:cut]
	}
	p, err := compile(literal, true, false)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = []workspace.Path{{}}
	}
	q := &query{
		pattern: p, ignored: ignored, fileMax: int64(s.c.Limits.ReadFileBytes), candidates: candidatesMax, show: max, paths: places(paths),
	}
	if glob != "" {
		if q.glob, err = ignore.ParseGlob(glob); err != nil {
			return nil, err
		}
	}
	var found []workspace.Path
	err = s.within(ctx, func(ctx context.Context) error {
		f, err := scan(ctx, s.c.Tree, q, &s.buffers)
		if err != nil {
			return err
		}
		if f.cut {
			return fault.New(contract.ResourceLimit, "there are more files than are looked through at once").
				WithHint("narrow it with paths or fileGlob")
		}
		for _, m := range f.files[:min(max, len(f.files))] {
			found = append(found, m.path)
		}
		return nil
	})
	return found, err
}
