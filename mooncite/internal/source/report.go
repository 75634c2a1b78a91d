package source

import (
	"cmp"
	"slices"

	"localmcp/internal/fault"
)

// Why says why a name was passed over.
type Why uint8

// The reasons.
const (
	Link    Why = iota // a symbolic link, never followed
	Special            // a FIFO, socket or device
	BadName            // not UTF-8: it cannot be stored
)

// A Skip is a name that would matter if it were a plain file or directory.
type Skip struct {
	Why Why
	Rel string // path below the root; not UTF-8 when Why is BadName
}

// A Failure is a directory or file that could not be looked at.
type Failure struct {
	Rel   string       // path below the root, "." for the root itself
	Fault *fault.Error // [Discovery], [Limit], [Metadata] or [RootUnavailable]
}

// Report is what the last look found, sorted by path.
type Report struct {
	Files, Directories int
	Skips              []Skip
	Failures           []Failure
}

// Report describes the root as [Watch.Changes] saw it last.
func (w *Watch) Report() Report {
	r := Report{Directories: len(w.dirs)}
	for _, n := range w.dirs {
		r.Files += len(n.files)
		r.Skips = append(r.Skips, n.skips...)
		if n.fail != nil {
			r.Failures = append(r.Failures, *n.fail)
		}
	}
	slices.SortFunc(r.Skips, func(a, b Skip) int { return cmp.Compare(a.Rel, b.Rel) })
	slices.SortFunc(r.Failures, func(a, b Failure) int { return cmp.Compare(a.Rel, b.Rel) })
	return r
}

// unread gives the directories whose names could not be read.
func (w *Watch) unread() []string {
	var list []string
	for _, n := range w.dirs {
		if n.fail != nil && n.fail.Fault.Code != Limit {
			list = append(list, n.fail.Rel)
		}
	}
	return list
}
