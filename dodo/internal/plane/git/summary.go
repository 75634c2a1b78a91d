package git

import "context"

// A Summary is the state of a workspace in short.
type Summary struct {
	IsRepo    bool
	Branch    string // as it is; empty when none is checked out
	Dirty     int    // files that git tracks and that differ from the last commit
	Untracked int
	More      bool // there are more than were counted
}

// Summary counts what git_status would list.
func (s *Service) Summary(ctx context.Context) (out Summary, err error) {
	g, err := s.open(ctx)
	if err != nil || g == nil {
		return out, err
	}
	st, cut, err := g.state(ctx, asking{cut: true})
	out = Summary{IsRepo: true, Branch: st.branch, More: cut}
	for _, e := range st.entries {
		switch _, is, _ := g.present(e); {
		case !is:
		case e.kind == '?':
			out.Untracked++
		default:
			out.Dirty++
		}
	}
	return out, err
}

// Outside are the places outside of the workspace that git gets to see because its repository
// is there: for the owner.
func (s *Service) Outside(ctx context.Context) ([]string, error) {
	r, err := s.find(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	return r.read, nil
}
