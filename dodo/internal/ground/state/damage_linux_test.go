package state_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/testenv"
)

// tamper changes the database as somebody with a SQLite shell would.
func tamper(t testing.TB, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, state.FileName))
	must(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	must(t, err)
}

func TestVerifyNamesTheFirstBrokenRow(t *testing.T) {
	const free = "DROP TRIGGER audit_fixed; "
	for _, c := range []struct {
		name, statement string
		id              int64 // 0: the chain holds
	}{
		{"nothing", "SELECT 1", 0},
		{"a changed result", free + "UPDATE audit SET result = 'ok' WHERE id = 17", 17},
		{"a changed time", free + "UPDATE audit SET at = at + 1 WHERE id = 5", 5},
		{"a changed hash", free + "UPDATE audit SET hash = x'00' WHERE id = 30", 30},
		{"a lost row", "DELETE FROM audit WHERE id = 12", 12},
		{"a lost first row", "DELETE FROM audit WHERE id = 1", 1},
		{"lost last rows", "DELETE FROM audit WHERE id >= 39", 39},
		{"all lost", "DELETE FROM audit", 1},
		{"an added row", "INSERT INTO audit SELECT 41, at, request, principal, workspace, tool, input, ref, micros, result, hash FROM audit WHERE id = 40", 41},
		{"swapped rows", free + "UPDATE audit SET id = -1 WHERE id = 7; UPDATE audit SET id = 7 WHERE id = 8; UPDATE audit SET id = 8 WHERE id = -1", 7},
		{"a moved end", `UPDATE audit_ends SET id = 50 WHERE "end" = 'head'`, 41},
	} {
		dir := place(t)
		s := open(t, dir, nil)
		for i := range 40 {
			must(t, s.Audit(t.Context(), state.Event{Request: fmt.Sprint(i), Tool: "t", Result: "CONFLICT"}))
		}
		must(t, s.Close())
		tamper(t, dir, c.statement)
		v, err := open(t, dir, nil).Verify(t.Context())
		must(t, err)
		got := int64(0)
		if v.Broken != nil {
			got = v.Broken.ID
		}
		if got != c.id {
			t.Errorf("%s: broken at %d (%+v), want %d", c.name, got, v.Broken, c.id)
		}
	}
}

// What cannot be read grants nothing.
func TestUnknownWordsGrantNothing(t *testing.T) {
	ctx, dir := t.Context(), place(t)
	s := open(t, dir, nil)
	id := workspace(t, s, "/w", "boot_1")
	all := contract.NewScopes(contract.AllScopes...)
	must(t, s.GrantClient(ctx, id, "cl", all))
	must(t, s.SetAccessMode(ctx, contract.AccessPersonal))
	if _, err := s.SetTrust(ctx, id, contract.TrustTrusted); err != nil {
		t.Fatal(err)
	}
	a, err := s.Authority(ctx, id, "cl")
	must(t, err)
	if d := cmp.Diff(state.Authority{Trust: contract.TrustTrusted, PolicyVersion: 1, AccessMode: contract.AccessPersonal, ClientScopes: all}, a); d != "" {
		t.Error(d)
	}
	least := state.Authority{Trust: contract.TrustInspect, PolicyVersion: 1, AccessMode: contract.AccessManaged}
	for _, scopes := range []string{`["dodo:read","dodo:root"]`, `dodo:read dodo:write`, `{"a":1}`, `["dodo:read"`, ``, `[]`, `null`} {
		tamper(t, dir, "UPDATE workspaces SET trust = 'TRUSTED'; UPDATE meta SET value = 'everything' WHERE key = 'owner-access-mode'; UPDATE workspace_clients SET scopes = '"+scopes+"'")
		a, err := s.Authority(ctx, id, "cl")
		must(t, err)
		if d := cmp.Diff(least, a); d != "" {
			t.Errorf("%s: %s", scopes, d)
		}
	}
}

// A file that cannot be used is refused, kept byte for byte, and the way out is named.
func TestUnusableFiles(t *testing.T) {
	whole := func(t *testing.T) string {
		dir := place(t)
		must(t, open(t, dir, nil).Close())
		return dir
	}
	for _, c := range []struct {
		name     string
		spoil    func(t *testing.T, path string)
		code     fault.Code
		sentence string
		hint     string
	}{
		{"damaged head", func(t *testing.T, path string) { overwrite(t, path, 0, "garbage, garbage") }, contract.InternalError, "damaged", "move state.db"},
		{"damaged page", func(t *testing.T, path string) { overwrite(t, path, 4096, strings.Repeat("x", 8192)) }, contract.InternalError, "damaged", "move state.db"},
		{"cut short", func(t *testing.T, path string) { must(t, os.Truncate(path, 9000)) }, contract.InternalError, "damaged", "move state.db"},
		{"newer", func(t *testing.T, path string) { tamper(t, filepath.Dir(path), "PRAGMA user_version = 99") }, contract.MigrationReviewRequired, "newer version", "use the newer version"},
		{"foreign", func(t *testing.T, path string) { tamper(t, filepath.Dir(path), "PRAGMA application_id = 5") }, contract.Conflict, "another program", "move the file away"},
		{"no secret", func(t *testing.T, path string) {
			tamper(t, filepath.Dir(path), "UPDATE meta SET value = 'x' WHERE key = 'install-secret'")
		}, contract.InternalError, "damaged", "move state.db"},
		{"open to others", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o644)) }, contract.Forbidden, "open to other users", "chmod 600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := whole(t)
			path := filepath.Join(dir, state.FileName)
			c.spoil(t, path)
			before := testenv.Fingerprint(t, path)
			_, err := state.Open(t.Context(), dir, state.Options{})
			f := fault.From(err)
			if err == nil || f.Code != c.code || !strings.Contains(f.Msg, c.sentence) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("%v: %s (%s)", err, f.Code, f.Hint)
			}
			if strings.Contains(f.Msg+f.Hint, dir) {
				t.Error("a path is shown")
			}
			if d := cmp.Diff(before, testenv.Fingerprint(t, path)); d != "" {
				t.Error(d)
			}
		})
	}
	_, err := state.Open(t.Context(), place(t), state.Options{Existing: true})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// An empty file is what a crash leaves that came while the file was made: it counts as none,
// and what begins anew is trusted with nothing.
func TestEmptyFileIsNone(t *testing.T) {
	dir := place(t)
	s := open(t, dir, nil)
	id := workspace(t, s, "/w", "boot_1")
	_, err := s.SetTrust(t.Context(), id, contract.TrustTrusted)
	must(t, err)
	must(t, s.Close())
	must(t, os.Truncate(filepath.Join(dir, state.FileName), 0))
	s = open(t, dir, nil)
	a, err := s.Authority(t.Context(), id, "cl")
	must(t, err)
	if a.Trust != contract.TrustInspect || a.AccessMode != contract.AccessManaged || s.WorkspaceID("/w") == id {
		t.Errorf("%+v", a)
	}
}

// A table that somebody dropped is damage, and named so wherever it is met.
func TestDroppedTable(t *testing.T) {
	dir := place(t)
	s := open(t, dir, nil)
	tamper(t, dir, "DROP TABLE audit")
	_, verified := s.Verify(t.Context())
	for _, err := range []error{verified, s.Audit(t.Context(), state.Event{Tool: "t", Result: "ok"})} {
		if f := fault.From(err); err == nil || f.Code != contract.InternalError || !strings.Contains(f.Msg, "damaged") || !strings.Contains(f.Hint, "move state.db") {
			t.Errorf("%v", err)
		}
	}
}

// When the directory is moved away, nothing is read or written beside it; nothing is lost
// when it comes back.
func TestStateThatIsGone(t *testing.T) {
	ctx, dir := t.Context(), place(t)
	s := open(t, dir, nil)
	must(t, s.Audit(ctx, state.Event{Tool: "a", Result: "ok"}))
	for name, spoil := range map[string]func(){
		"moved": func() { must(t, os.Rename(dir, dir+"-away")) },
		"another": func() {
			must(t, os.Rename(dir, dir+"-away"))
			must(t, os.Mkdir(dir, 0o700))
			must(t, open(t, dir, nil).Close())
		},
	} {
		spoil()
		_, read := s.Events(ctx, "", 1)
		for _, err := range []error{read, s.Audit(ctx, state.Event{Tool: "b", Result: "ok"}), s.SetAccessMode(ctx, contract.AccessManaged)} {
			if f := fault.From(err); err == nil || f.Code != contract.InternalError || !strings.Contains(f.Msg, "moved, removed or replaced") || f.Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, os.RemoveAll(dir))
		must(t, os.Rename(dir+"-away", dir))
		if list, err := s.Events(ctx, "", 10); err != nil || len(list) != 1 {
			t.Errorf("%s, and back: %v %v", name, list, err)
		}
	}
}

func overwrite(t testing.TB, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(text), at)
	must(t, errors.Join(err, f.Close()))
}
