package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

func located(t testing.TB, root string) state.Directory {
	t.Helper()
	d, err := state.Locate(root)
	must(t, err)
	return d
}

func TestProjects(t *testing.T) {
	ctx, home := t.Context(), place(t)
	s := open(t, place(t), nil)
	one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
	must(t, os.Mkdir(one, 0o700))
	first, err := s.AddProject(ctx, one, "One", located(t, one))
	must(t, err)
	if !contract.IsProjectID(first.ID) || first.Workspace != s.WorkspaceID(one) || first.Readiness() != state.Ready {
		t.Errorf("%+v %s", first, first.Readiness())
	}
	again, err := s.AddProject(ctx, one, "", located(t, one))
	if err != nil || again.ID != first.ID || again.Name != "One" {
		t.Errorf("%+v %v", again, err)
	}

	must(t, os.Rename(one, two)) // the same directory elsewhere
	if got := first.Readiness(); got != state.Missing {
		t.Error(got)
	}
	moved, err := s.AddProject(ctx, two, "", located(t, two))
	if err != nil || moved.ID != first.ID || moved.Workspace == first.Workspace || moved.Root != two {
		t.Errorf("%+v %v", moved, err)
	}
	must(t, os.Mkdir(one, 0o700)) // another directory at the old path
	if got := first.Readiness(); got != state.Replaced {
		t.Error(got)
	}
	third, err := s.AddProject(ctx, one, "New", located(t, one))
	if err != nil || third.ID == first.ID {
		t.Errorf("%+v %v", third, err)
	}
	must(t, os.Rename(two, filepath.Join(home, "x")))
	must(t, os.Mkdir(two, 0o700)) // and one in the place of a registered one
	fourth, err := s.AddProject(ctx, two, "", located(t, two))
	if err != nil || fourth.ID == first.ID {
		t.Errorf("%+v %v", fourth, err)
	}
	if old, err := s.Project(ctx, first.ID); err != nil || old.Readiness() != state.Gone {
		t.Errorf("%+v %v", old, err)
	}

	must(t, os.Remove(one))
	must(t, os.Symlink(two, one))
	if got := third.Readiness(); got != state.Symlinked {
		t.Error(got)
	}
	must(t, os.Remove(one))
	must(t, os.WriteFile(one, nil, 0o600))
	if got := third.Readiness(); got != state.Invalid {
		t.Error(got)
	}
	if _, err := s.RemoveProject(ctx, third.ID); err != nil {
		t.Error(err)
	}
	_, err = s.RemoveProject(ctx, third.ID)
	refused(t, err, contract.Conflict)
	_, err = s.RemoveProject(ctx, "prj_00000000")
	refused(t, err, contract.NotFound)
	names := func(removed bool) (ids []string) {
		list, err := s.Projects(ctx, removed)
		must(t, err)
		for _, p := range list {
			ids = append(ids, p.ID)
		}
		return ids
	}
	if d := cmp.Diff([]string{fourth.ID}, names(false)); d != "" {
		t.Error(d)
	}
	if got := names(true); len(got) != 3 {
		t.Error(got)
	}
}

func TestLocateRefuses(t *testing.T) {
	home := place(t)
	must(t, os.WriteFile(filepath.Join(home, "file"), nil, 0o600))
	must(t, os.Symlink(home, filepath.Join(home, "link")))
	for path, code := range map[string]interface{ error }{
		"none": contract.NotFound, "file": contract.PathDenied, "link": contract.PathDenied, "link/none": contract.PathDenied,
	} {
		if _, err := state.Locate(filepath.Join(home, path)); err == nil || !isCode(err, code) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
