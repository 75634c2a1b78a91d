package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/sqlitedb"
)

// TestOwnerTakesBack: the owner sees what a client changed, takes it back from another
// directory, and takes that back, too.
func TestOwnerTakesBack(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	c := m.speak("legacy", dir)
	edited := c.fine("edit_file", `"path":"sub/b.go","edits":[{"find":"return 1","replace":"return 2"}]`).Data["changesetId"].(string)
	made := c.fine("write_file", `"path":"new/n.txt","content":"n"`).Data["changesetId"].(string)

	var list changesOut
	m.ok(&list, "changes", "--root", dir, "--json")
	if len(list.Changes) != 2 || list.Changes[0].ID != made || list.Changes[1].ID != edited || list.Changes[1].Files[0].Path != "sub/b.go" {
		t.Fatalf("%+v", list)
	}
	if r := m.dodo("changes", "--root", dir); !strings.Contains(r.stdout, edited) || !strings.Contains(r.stdout, "sub/b.go") {
		t.Errorf("%s", r.stdout)
	}
	var back rollbackOut
	m.ok(&back, "rollback", edited, "--json")
	if got := m.read("work/sub/b.go"); !strings.Contains(got, "return 1") || back.Undoes != edited {
		t.Fatalf("%s %+v", got, back)
	}
	if r := m.dodo("rollback", edited); r.status != 1 || !strings.Contains(r.stderr, "dodo: ") {
		t.Errorf("a second time: %d %s", r.status, r.stderr)
	}
	m.ok(nil, "rollback", back.ID)
	if got := m.read("work/sub/b.go"); !strings.Contains(got, "return 2") {
		t.Fatalf("%s", got)
	}
	// What was changed since is not touched.
	m.Write(t, "work/new/n.txt", "mine")
	if r := m.dodo("rollback", made); r.status != 1 || m.read("work/new/n.txt") != "mine" {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if r := m.dodo("rollback", "cs_nothing"); r.status != 1 {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if r := m.dodo("audit"); !strings.Contains(r.stdout, made) {
		t.Errorf("the audit does not say what came of a call: %s", r.stdout)
	}
	if r := m.dodo("audit"); strings.Count(r.stdout, "owner.rollback") != 4 || strings.Count(r.stdout, "CONFLICT") != 2 {
		t.Errorf("%s", r.stdout)
	}
}

func (m *machine) read(rel string) string {
	m.t.Helper()
	b, err := os.ReadFile(m.Path(rel))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

// TestOwnerRecovers: an interrupted change that dodo cannot end by itself stops changes in
// its workspace until the owner says how it ends.
func TestOwnerRecovers(t *testing.T) {
	for way, want := range map[string]string{"--forward": "return 2", "--back": "return 1", "--resolve": "return 2"} {
		t.Run(way, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			c := m.speak("legacy", dir)
			plan := c.fine("preview_changes", `"operations":[{"op":"replace_exact","path":"sub/b.go","find":"return 1","replace":"return 2"},`+
				`{"op":"create","path":"half.txt","content":"new"}]`).Data
			id := c.fine("apply_changes", fmt.Sprintf(`"planId":%q,"planHash":%q,"idempotencyKey":"12345678"`, plan["planId"], plan["planHash"])).Data["changesetId"].(string)
			if err := os.Remove(m.Path("work/half.txt")); err != nil { // half of it is done: nothing to do would end by itself
				t.Fatal(err)
			}
			m.interrupt(id)
			if e := c.call("write_file", `"path":"x.txt","content":"x"`); e.OK || e.Error.Code != "RECOVERY_REQUIRED" || !strings.Contains(e.Error.Recovery, "dodo recover") {
				t.Fatalf("%+v", e)
			}
			c.fine("read_files", `"files":[{"path":"a.txt"}]`) // reading goes on
			var list changesOut
			m.ok(&list, "recover", "--json")
			if len(list.Changes) != 1 || list.Changes[0].ID != id || list.Changes[0].Root != dir {
				t.Fatalf("%+v", list)
			}
			for _, wrong := range [][]string{{"recover", id}, {"recover", "--back"}, {"recover", id, "--back", "--forward"}, {"recover", "cs_nothing", "--back"}} {
				if r := m.dodo(wrong...); r.status != 1 {
					t.Errorf("%v: %d %s", wrong, r.status, r.stdout)
				}
			}
			m.ok(nil, "recover", id, way, "--json")
			if got := m.read("work/sub/b.go"); !strings.Contains(got, want) {
				t.Errorf("%s", got)
			}
			if _, err := os.Stat(m.Path("work/half.txt")); (err == nil) != (way == "--forward") {
				t.Errorf("the other half: %v", err)
			}
			if r := m.dodo("recover"); r.status != 0 || !strings.Contains(r.stdout, "No change waits") {
				t.Errorf("%d %s", r.status, r.stdout)
			}
			c.fine("write_file", `"path":"x.txt","content":"x"`)
		})
	}
}

// interrupt makes a change one that waits for the owner.
func (m *machine) interrupt(changeset string) {
	m.t.Helper()
	store, err := state.Open(context.Background(), filepath.Clean(m.Env()["DODO_CONFIG_DIR"]), state.Options{Existing: true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer store.Close()
	err = store.Write(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "UPDATE changesets SET status = 'recovery_required' WHERE id = ?", changeset)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
}
