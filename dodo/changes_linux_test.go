package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	for way, want := range map[string]string{"--forward": "return 2", "--back": "return 1", "--resolve": "mine"} {
		t.Run(way, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			c := m.speak("legacy", dir)
			id := c.fine("edit_file", `"path":"sub/b.go","edits":[{"find":"return 1","replace":"return 2"}]`).Data["changesetId"].(string)
			c.CloseInput()
			if err := c.WaitExit(2 * time.Second); err != nil {
				t.Fatal(err)
			}
			after := m.read("work/sub/b.go")
			stage := filepath.Join(dir, "sub", m.interrupt(id))
			if err := os.WriteFile(stage, []byte("what another program wrote"), 0o644); err != nil {
				t.Fatal(err)
			}
			m.Write(t, "work/sub/b.go", "mine, meanwhile") // neither as before nor as after: dodo cannot tell
			c = m.speak("legacy", dir)                     // the process that made the change is gone
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
			if way != "--resolve" {
				if r := m.dodo("recover", id, way); r.status != 1 || m.read("work/sub/b.go") != "mine, meanwhile" {
					t.Errorf("%d %s", r.status, r.stderr)
				}
				m.Write(t, "work/sub/b.go", after) // the owner settles it by hand
				if err := os.Remove(stage); err != nil {
					t.Fatal(err)
				}
			}
			m.ok(nil, "recover", id, way, "--json")
			if got := m.read("work/sub/b.go"); !strings.Contains(got, want) {
				t.Errorf("%s", got)
			}
			if r := m.dodo("recover"); r.status != 0 || !strings.Contains(r.stdout, "No change waits") {
				t.Errorf("%d %s", r.status, r.stdout)
			}
			c.fine("write_file", `"path":"x.txt","content":"x"`)
			if _, err := os.Stat(stage); err == nil {
				t.Error("the stage is still there")
			}
		})
	}
}

// interrupt makes a change one that waits for the owner, and returns the name of its stage.
func (m *machine) interrupt(changeset string) (stage string) {
	m.t.Helper()
	store, err := state.Open(context.Background(), filepath.Clean(m.Env()["DODO_CONFIG_DIR"]), state.Options{Existing: true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer store.Close()
	err = store.Write(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, err := c.Exec(ctx, "UPDATE changesets SET status = 'recovery_required', swept = 0 WHERE id = ?", changeset); err != nil {
			return err
		}
		_, err := c.Row(ctx, "SELECT stage FROM journal_steps WHERE changeset = ?", []any{changeset}, &stage)
		return err
	})
	if err != nil || stage == "" {
		m.t.Fatal(stage, err)
	}
	return stage
}
