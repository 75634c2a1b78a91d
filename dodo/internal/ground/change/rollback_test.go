package change_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
)

func (w *world) undo(who contract.Principal, id string) (string, error) {
	w.t.Helper()
	r, err := w.svc.Rollback(context.Background(), who, id)
	return r.ChangesetID, err
}

func (w *world) status(id string) string {
	w.t.Helper()
	list, err := change.Everywhere(context.Background(), w.state, id)
	must(w.t, err)
	if len(list) != 1 {
		w.t.Fatalf("%d changes have the id %s", len(list), id)
	}
	return string(list[0].Status)
}

func TestRollbackCanBeRolledBack(t *testing.T) {
	w := newWorld(t)
	ops := w.twenty()
	must(t, os.Chmod(w.path("mod/1.txt"), 0o755))
	must(t, os.Chmod(w.path("del/1.txt"), 0o600))
	before := w.tree()
	a := w.call("apply_changes", w.plan(ops)).str("changesetId")
	after := w.tree()
	r, err := w.undo(client, a)
	must(t, err)
	same(t, before, w.tree())
	w.mode("mod/1.txt", 0o755)
	w.mode("del/1.txt", 0o600)
	if w.status(a) != "rolled_back" || w.status(r) != "committed" {
		t.Errorf("%s, %s", w.status(a), w.status(r))
	}
	_, err = w.undo(client, a)
	refused(t, err, contract.Conflict)
	n, err := w.undo(client, r)
	must(t, err)
	same(t, after, w.tree())
	w.mode("mod/1.txt", 0o755)
	if w.status(a) != "committed" || w.status(r) != "rolled_back" || w.status(n) != "committed" {
		t.Errorf("%s, %s, %s", w.status(a), w.status(r), w.status(n))
	}
	_, err = w.undo(client, a)
	must(t, err)
	same(t, before, w.tree())
	w.clean()
}

// TestRollbackBeyondTheHistory: what a rollback took back is forgotten when the rollback itself
// is taken back.
func TestRollbackBeyondTheHistory(t *testing.T) {
	w := newWorld(t)
	const day = 24 * time.Hour
	id := w.call("write_file", obj{"path": "f", "content": "x"}).str("changesetId")
	w.clock.Store(int64(29 * day))
	r, err := w.undo(client, id)
	must(t, err)
	w.clock.Store(int64(31 * day))
	must(t, w.svc.Reconcile(context.Background()))
	w.call("write_file", obj{"path": "other", "content": "x"})
	must(t, w.svc.Prune(context.Background()))
	if list, err := change.Everywhere(context.Background(), w.state, id); err != nil || len(list) != 0 {
		t.Fatalf("still in the history: %v, %v", list, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.svc.Rollback(context.Background(), client, r)
		done <- err
	}()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	w.holds("f", "x")
	if w.status(r) != "rolled_back" {
		t.Errorf("status %s", w.status(r))
	}
	w.clean()
}

// TestRollbackUnderSmallerLimits: what was written under larger limits is taken back all the same.
func TestRollbackUnderSmallerLimits(t *testing.T) {
	w := newWorld(t)
	w.write("f", "old")
	id := w.call("write_file", obj{"path": "f", "content": strings.Repeat("new", 10000)}).str("changesetId")
	w.lim.ReadFileBytes = 16 << 10
	w.reopen()
	_, err := w.undo(client, id)
	must(t, err)
	w.holds("f", "old")
}

func TestRollbackOfOthers(t *testing.T) {
	w := newWorld(t)
	id := w.call("write_file", obj{"path": "f", "content": "x"}).str("changesetId")
	_, err := w.undo(another, id)
	refused(t, err, contract.Forbidden)
	w.holds("f", "x")
	_, err = w.undo(owner, id)
	must(t, err)
	w.absent("f")
	_, err = w.undo(owner, "cs_0000000000")
	refused(t, err, contract.NotFound)
	elsewhere := worldAt(t, w.dir, realTemp(t))
	_, err = elsewhere.undo(owner, id)
	refused(t, err, contract.NotFound)
}

// TestRollbackIsWholeOrNothing: one of the files was changed since, or is reached through a
// link now, or has a second name.
func TestRollbackIsWholeOrNothing(t *testing.T) {
	for name, since := range map[string]func(w *world){
		"changed":    func(w *world) { w.write("a/f", "by hand") },
		"removed":    func(w *world) { must(w.t, os.Remove(w.path("a/f"))) },
		"made again": func(w *world) { w.write("a/gone", "by hand") },
		"link above": func(w *world) {
			must(w.t, os.Rename(w.path("a"), w.path("b")))
			must(w.t, os.Symlink("b", w.path("a")))
		},
		"second name": func(w *world) { must(w.t, os.Link(w.path("a/f"), w.path("second"))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a/f", "old")
			w.write("a/gone", "old")
			w.write("other", "old")
			w.write("mine", "untouched by anyone")
			plan := w.plan([]obj{
				{"op": "replace_file", "path": "other", "content": "new"},
				{"op": "replace_file", "path": "a/f", "content": "new"}, {"op": "delete", "path": "a/gone"},
			})
			id := w.call("apply_changes", plan).str("changesetId")
			since(w)
			_, err := w.undo(client, id)
			if !isOne(err, contract.Conflict, contract.PathDenied) {
				t.Errorf("got %v", err)
			}
			w.holds("other", "new")
			if w.status(id) != "committed" {
				t.Errorf("status %s", w.status(id))
			}
		})
	}
}

// TestRollbackTouchesNothingElse: files that the change did not write stay, in its
// directories too.
func TestRollbackTouchesNothingElse(t *testing.T) {
	w := newWorld(t)
	id := w.call("write_file", obj{"path": "new/dir/f", "content": "x"}).str("changesetId")
	w.write("new/dir/mine", "1 GB of results")
	w.write("new/ignored.log", "more")
	r, err := w.svc.Rollback(context.Background(), client, id)
	must(t, err)
	w.absent("new/dir/f")
	w.holds("new/dir/mine", "1 GB of results")
	w.holds("new/ignored.log", "more")
	if len(r.Notes) == 0 {
		t.Error("nobody was told that directories were left")
	}
	w.clean()
}

// TestNoPermissionsComeBack: what nobody may open comes back as that. Only the superuser can
// have such a file deleted; a directory anybody can.
func TestNoPermissionsComeBack(t *testing.T) {
	w := newWorld(t)
	undo := func(id string) string {
		t.Helper()
		return w.call("rollback_changes", obj{"changesetId": id, "idempotencyKey": "12345678"}).str("changesetId")
	}
	made := w.call("make_directory", obj{"path": "d"}).str("changesetId")
	must(t, os.Chmod(w.path("d"), 0))
	removed := undo(made)
	w.absent("d")
	undo(removed)
	w.mode("d", 0)
	must(t, os.Chmod(w.path("d"), 0o700)) // so that it can be cleaned up
	if os.Geteuid() == 0 {
		w.write("f", "text")
		must(t, os.Chmod(w.path("f"), 0))
		undo(w.call("delete_path", obj{"path": "f"}).str("changesetId"))
		w.mode("f", 0)
	}
}

// TestRollbackSaysWhatItLeft: a directory that stays because something is in it was not restored.
func TestRollbackSaysWhatItLeft(t *testing.T) {
	w := newWorld(t)
	made := w.call("make_directory", obj{"path": "d/e"})
	w.write("d/theirs", "x")
	d, r, err := w.callAs(client, "rollback_changes", obj{"changesetId": made.str("changesetId"), "idempotencyKey": "12345678"})
	must(t, err)
	if fmt.Sprint(d["restored"]) != "[d/e]" || len(r.Warnings) != 1 {
		t.Errorf("restored %v, warnings %q", d["restored"], r.Warnings)
	}
	w.absent("d/e")
	w.holds("d/theirs", "x")
}
