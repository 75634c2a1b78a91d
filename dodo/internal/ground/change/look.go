package change

import (
	"crypto/sha256"
	"errors"
	"io"
	"math"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/safefile"
)

// hashOf reads an open file from its beginning.
func hashOf(f *workspace.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return "", err
	}
	return contract.HashSum(h.Sum(nil)), nil
}

// anySize is for files that are only moved: they may be of any size.
const anySize = math.MaxInt64

// glimpse tells what is under a name in an open directory.
func glimpse(d *workspace.Dir, name string) (seen, error) { return glimpseUpTo(d, name, anySize) }

// glimpseUpTo is glimpse where a file of more than most bytes is not read.
func glimpseUpTo(d *workspace.Dir, name string, most int64) (seen, error) {
	in, err := d.Stat(name)
	switch {
	case notThere(err):
		return seen{}, nil
	case err != nil:
		return seen{}, err
	case in.Type == safefile.Directory:
		return seen{what: directory}, nil
	case in.Type != safefile.Regular || in.Nlink != 1 || in.Size > most:
		return seen{what: other}, nil
	}
	f, err := d.Open(name)
	switch {
	case notThere(err): // it went meanwhile
		return seen{}, nil
	case errors.Is(err, contract.PathDenied) || errors.Is(err, contract.FileChanged): // it became something else meanwhile
		return seen{what: other}, nil
	case err != nil:
		return seen{}, err
	}
	defer f.Close()
	hash, err := hashOf(f)
	return seen{what: file, hash: hash}, err
}

// look finds what is there of a step.
func (s *Service) look(st step) (sight, error) {
	var v sight
	most := int64(packMax) // what a change writes or keeps is not larger
	if st.action == Move {
		most = anySize
	}
	p, err := parse(st.path)
	if err != nil {
		return v, err
	}
	d, err := s.parent(p)
	if err != nil {
		return v, err
	}
	if d != nil {
		defer d.Close()
		if v.path, err = glimpseUpTo(d, p.Base(), most); err != nil {
			return v, err
		}
		if st.stage != "" {
			if v.stage, err = glimpseUpTo(d, st.stage, most); err != nil {
				return v, err
			}
		}
	}
	if st.action != Move {
		return v, nil
	}
	dest, err := parse(st.dest)
	if err != nil {
		return v, err
	}
	dd, err := s.parent(dest)
	if err != nil || dd == nil {
		return v, err
	}
	defer dd.Close()
	v.dest, err = glimpse(dd, dest.Base())
	return v, err
}

// parent opens the directory of a path; nil when there is none.
func (s *Service) parent(p workspace.Path) (*workspace.Dir, error) {
	d, _, err := s.Tree.Parent(p, false)
	if notThere(err) {
		return nil, nil
	}
	return d, err
}

// parse reads a path that this package wrote.
func parse(path string) (workspace.Path, error) { return workspace.ParsePath(path) }
