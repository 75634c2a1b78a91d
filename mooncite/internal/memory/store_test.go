package memory_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/sqlitedb"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
)

// direct changes the database behind the program's back.
func (w *world) direct(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.database()+"?_pragma=foreign_keys(0)&_pragma=ignore_check_constraints(1)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			w.t.Fatalf("%s: %v", s, err)
		}
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		w.t.Fatal(err)
	}
}

// Everything is there again in another process.
func TestReopen(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("Trim wicks.", "trimmed to four")
	child := w.derived("Keep a gauge.", "supports", m)
	w.archive(child, 1)
	query := fmt.Sprintf(`{"query":%q,"related_limit":8,"include_archived":true}`, m.MemoryID)
	before := w.recall(query)
	w.restart()
	after := w.recall(query)
	if diff := cmp.Diff(encoded(t, before), encoded(t, after)); diff != "" || len(before.Candidates[0].Related) != 1 {
		t.Errorf("%s\n%s", diff, before.Text())
	}
	for _, name := range []string{"", "-wal", "-shm"} {
		if st, err := os.Stat(w.database() + name); err != nil || st.Mode() != 0o600 {
			t.Errorf("learned-memory.sqlite%s: %v, %v", name, st, err)
		}
	}
}

// Nothing is made before something is kept or looked for.
func TestNothingIsMadeForStatus(t *testing.T) {
	w := newWorld(t)
	want := memory.Status{Kind: "derived_memory_status", Enabled: true, Outcome: "ready", Database: "learned-memory.sqlite"}
	if diff := cmp.Diff(want, w.store.Status(t.Context())); diff != "" {
		t.Error(diff)
	}
	if ids, err := w.store.RestingOn(t.Context(), "x", "y"); ids != nil || err != nil {
		t.Errorf("%v, %v", ids, err)
	}
	if err := memory.Purge(w.places().StateDir); err != nil {
		t.Error(err)
	}
	if names, err := filepath.Glob(filepath.Join(w.places().StateDir, "learned*")); len(names) != 0 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
}

// A database that is not ours, newer, damaged or open to others is refused as it is,
// every tool says so with a code and a way out, and evidence works all the same.
func TestUnusableDatabase(t *testing.T) {
	type unusable struct {
		spoil     func(w *world)
		code      fault.Code
		errorCode string
	}
	cases := map[string]unusable{
		"newer":           {func(w *world) { w.direct("PRAGMA user_version = 99") }, sqlitedb.Newer, "unsupported_schema"},
		"another program": {func(w *world) { w.direct("PRAGMA application_id = 1") }, sqlitedb.Foreign, "unsupported_schema"},
		"an extra table":  {func(w *world) { w.direct("CREATE TABLE extra (x)") }, sqlitedb.Foreign, "unsupported_schema"},
		"an extra trigger": {func(w *world) {
			w.direct("CREATE TRIGGER extra AFTER INSERT ON memories BEGIN DELETE FROM facts; END")
		}, sqlitedb.Foreign, "unsupported_schema"},
		"a missing trigger": {func(w *world) { w.direct("DROP TRIGGER revisions_fixed") }, sqlitedb.Foreign, "unsupported_schema"},
		"text":              {func(w *world) { w.overwrite([]byte(strings.Repeat("no database at all\n", 600))) }, sqlitedb.Damaged, "unavailable"},
		"cut":               {func(w *world) { w.cut(0.5) }, sqlitedb.Damaged, "unavailable"},
		"zeros inside":      {func(w *world) { w.zero() }, sqlitedb.Damaged, "unavailable"},
		"open to others":    {func(w *world) { w.chmod(0o644) }, privdir.Unsafe, "unsafe_storage"},
		"two names": {func(w *world) {
			if err := os.Link(w.database(), w.Path("second")); err != nil {
				w.t.Fatal(err)
			}
		}, privdir.Unsafe, "unsafe_storage"},
		"a link": {func(w *world) {
			if err := os.Rename(w.database(), w.Path("real")); err != nil {
				w.t.Fatal(err)
			}
			if err := os.Symlink(w.Path("real"), w.database()); err != nil {
				w.t.Fatal(err)
			}
		}, privdir.Unsafe, "unsafe_storage"},
	}
	for rule, statements := range map[string][]string{
		"a revision without its memory":            {"DELETE FROM memories WHERE doc = 2"},
		"a memory without words":                   {"DELETE FROM words WHERE rowid = 2"},
		"words without a memory":                   {"INSERT INTO words (rowid, tokens) VALUES (77, 'x')"},
		"a head behind the newest revision":        {"UPDATE memories SET head = 1 WHERE doc = 1"},
		"a head that does not exist":               {"UPDATE memories SET head = 3 WHERE doc = 1"},
		"a revision missing in between":            {"DELETE FROM relations", "DELETE FROM revisions WHERE revision = 1 AND memory = (SELECT id FROM memories WHERE doc = 1)"},
		"verified without evidence":                {"DELETE FROM anchors"},
		"derived without parents":                  {"DELETE FROM relations"},
		"unanchored with evidence":                 {"INSERT INTO anchors SELECT id, 1, 0, 'e', 'u', 'pi', 'r', '', 's', 'r', 's', 'c', 'user', 'k', '', 'current', 'none' FROM memories WHERE doc = 2"},
		"anchors that do not begin at 0":           {"DROP TRIGGER anchors_fixed", "UPDATE anchors SET position = 4", anchorsTrigger},
		"relations that do not begin at 0":         {"DROP TRIGGER relations_fixed", "UPDATE relations SET position = 4", relationsTrigger},
		"a relation to nowhere":                    {"DROP TRIGGER relations_fixed", "UPDATE relations SET parent_revision = 9", relationsTrigger},
		"a candidate without sources":              {"DELETE FROM candidate_sources"},
		"a project that rests on another":          {"DROP TRIGGER anchors_fixed", "UPDATE anchors SET project = 'project:x-0123456789abcdef'", anchorsTrigger},
		"a project that is derived from another":   {"DROP TRIGGER revisions_fixed", "UPDATE revisions SET project = 'project:x-0123456789abcdef' WHERE kind = 'derived'", revisionsTrigger},
		"a note that is missing":                   {"DROP TRIGGER revisions_fixed", "UPDATE revisions SET note = NULL WHERE kind = 'unanchored'", revisionsTrigger},
		"an unknown kind":                          {"DROP TRIGGER revisions_fixed", "UPDATE revisions SET kind = 'guessed' WHERE kind = 'unanchored'", revisionsTrigger},
		"a salience outside its bounds":            {"UPDATE memories SET salience = 900"},
		"a review without a time":                  {"UPDATE candidates SET state = 'approved'"},
		"a remembered invalidity of a lost anchor": {"INSERT INTO observed VALUES ('mooncite-memory:x', 1, 0, 'content_mismatch', 0)"},
	} {
		cases[rule] = unusable{func(w *world) { w.direct(statements...) }, sqlitedb.Damaged, "unavailable"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.anchored("Trim wicks.", "trimmed to four")
			w.unanchored("Trim sails.")
			w.derived("Trim all.", "supports", m)
			w.write(fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":1,"interpretation":"Trim, anew.","provenance":{"kind":"derived","parents":[%s]},"scope":{"kind":"global"}}`, m.MemoryID, parentsOf("supersedes", m)))
			w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"a","description":"b","instructions":"c"}}`, m.MemoryID))
			if err := w.stop(); err != nil {
				t.Fatal(err)
			}
			c.spoil(w)
			before := testenv.Fingerprint(t, w.database())
			w.start()
			for tool, args := range map[string]string{
				memory.ToolRecall: `{"query":"trim"}`, memory.ToolInspect: fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID), memory.ToolDelete: deletion(m, 1, 1),
				memory.ToolWrite: `{"operation":"create","interpretation":"x","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"y"}}`,
			} {
				w.refused(c.code, "", tool, args)
			}
			st := w.store.Status(t.Context())
			if st.Outcome != "unavailable" || st.ErrorCode != c.errorCode || st.Message == "" || st.Memories != 0 || st.SchemaVersion != nil || strings.Contains(st.Message, w.Dir) {
				t.Errorf("%s", st.Text())
			}
			if out, err := w.engine.Recall(t.Context(), engine.RecallIn{Query: "ferry"}); err != nil || out.Outcome != engine.Matches {
				t.Errorf("evidence: %v, %s", err, out.Text())
			}
			if err := w.stop(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, testenv.Fingerprint(t, w.database())); diff != "" {
				t.Errorf("it was changed: %s", diff)
			}
		})
	}
}

const (
	revisionsTrigger = "CREATE TRIGGER revisions_fixed BEFORE UPDATE ON revisions BEGIN SELECT RAISE(ABORT, 'a revision never changes'); END"
	anchorsTrigger   = "CREATE TRIGGER anchors_fixed BEFORE UPDATE ON anchors BEGIN SELECT RAISE(ABORT, 'an anchor never changes'); END"
	relationsTrigger = "CREATE TRIGGER relations_fixed BEFORE UPDATE ON relations BEGIN SELECT RAISE(ABORT, 'a relation never changes'); END"
)

func (w *world) overwrite(data []byte) {
	w.t.Helper()
	if err := os.WriteFile(w.database(), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cut(share float64) {
	w.t.Helper()
	data, err := os.ReadFile(w.database())
	if err != nil {
		w.t.Fatal(err)
	}
	w.overwrite(data[:int(float64(len(data))*share)])
}

// zero writes zeros over every page but the first two.
func (w *world) zero() {
	w.t.Helper()
	data, err := os.ReadFile(w.database())
	if err != nil {
		w.t.Fatal(err)
	}
	clear(data[8192:])
	w.overwrite(data)
}

func (w *world) chmod(mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(w.database(), mode); err != nil {
		w.t.Fatal(err)
	}
}

// A fault ends with its cause: the next call works, without a new process.
func TestMended(t *testing.T) {
	w := newWorld(t)
	m := w.unanchored("Trim wicks.")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	w.chmod(0o640)
	w.start()
	w.refused(privdir.Unsafe, "open to other users", memory.ToolRecall, `{"query":"trim"}`)
	w.chmod(0o600)
	if out := w.recall(`{"query":"trim"}`); len(out.Candidates) != 1 || out.Candidates[0].MemoryID != m.MemoryID {
		t.Errorf("%s", out.Text())
	}
}

// SQLite itself refuses what would change a revision.
func TestRevisionsCannotBeChanged(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("Trim wicks.", "trimmed to four")
	w.derived("Trim all.", "supports", m)
	w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"a","description":"b","instructions":"c"}}`, m.MemoryID))
	db, err := sql.Open("sqlite", w.database())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{"UPDATE revisions SET interpretation = 'x'", "UPDATE anchors SET span = 'x'", "UPDATE relations SET reason = 'x'", "UPDATE candidate_sources SET revision = 2", "UPDATE candidates SET instructions = 'x'"} {
		if _, err := db.Exec(s); err == nil || !strings.Contains(err.Error(), "never change") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// Words of another version are made anew.
func TestOtherWords(t *testing.T) {
	w := newWorld(t)
	m := w.unanchored("Trim the wicks.")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	w.direct("UPDATE facts SET value = '0' WHERE key = 'tokens'", "INSERT INTO words (words) VALUES ('delete-all')", "INSERT INTO words (rowid, tokens) VALUES (1, 'something else')")
	w.start()
	if out := w.recall(`{"query":"wick"}`); len(out.Candidates) != 1 || out.Candidates[0].MemoryID != m.MemoryID {
		t.Errorf("%s", out.Text())
	}
	if out := w.recall(`{"query":"something"}`); out.Outcome != "no_match" {
		t.Errorf("%s", out.Text())
	}
}

// Purge takes everything, also what cannot be opened, but not under a running client.
func TestPurge(t *testing.T) {
	w := newWorld(t)
	w.unanchored("Trim the wicks.")
	dir := w.places().StateDir
	if err := memory.Purge(dir); fault.From(err).Code != privdir.Busy {
		t.Errorf("under a running client: %v", err)
	}
	if out := w.recall(`{"query":"wick"}`); len(out.Candidates) != 1 {
		t.Errorf("%s", out.Text())
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", w.database()+"-journal"); err != nil {
		t.Fatal(err)
	}
	if err := memory.Purge(dir); fault.From(err).Code != privdir.Unsafe {
		t.Errorf("a link: %v", err)
	}
	if _, err := os.Stat(w.database()); err != nil {
		t.Errorf("a refused purge took the database: %v", err)
	}
	if err := os.Remove(w.database() + "-journal"); err != nil {
		t.Fatal(err)
	}
	w.overwrite([]byte("no database"))
	if err := memory.Purge(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := memory.Present(dir); len(left) != 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
	w.start()
	if out := w.recall(`{"query":"wick"}`); out.Outcome != "no_match" {
		t.Errorf("%s", out.Text())
	}
	w.unanchored("Anew.")
}

// A full disk is said to be one and loses nothing.
func TestFullDatabase(t *testing.T) {
	w := newWorld(t)
	m := w.unanchored("Trim the wicks.")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.store.Limit(t, 60)
	long := strings.Repeat("The keeper writes a long line of words. ", 200)
	var code fault.Code
	kept := 1
	for range 40 {
		_, err := w.call(memory.ToolWrite, `{"operation":"create","interpretation":`+quoted(long)+`,"scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`)
		if err != nil {
			code = fault.From(err).Code
			break
		}
		kept++
	}
	if code != sqlitedb.Full {
		t.Fatalf("code %q after %d memories", code, kept)
	}
	if st := w.store.Status(t.Context()); st.Memories != int64(kept) || st.Outcome != "ready" {
		t.Errorf("%d kept: %s", kept, st.Text())
	}
	if out := w.recall(`{"query":"wick"}`); len(out.Candidates) != 1 || out.Candidates[0].MemoryID != m.MemoryID {
		t.Errorf("%s", out.Text())
	}
	w.store.Limit(t, 1<<20)
	w.unanchored("Room again.")
	w.restart() // the invariants hold
	if st := w.store.Status(t.Context()); st.Memories != int64(kept+1) {
		t.Errorf("%s", st.Text())
	}
}

// A call that is taken back changes nothing and harms no later one.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.store.Recall(ctx, memory.RecallIn{Query: "x"}); err == nil {
		t.Error("no error")
	}
	if _, err := w.store.Write(ctx, memory.WriteIn{Operation: "create", Interpretation: "x", Scope: &memory.ScopeIn{Kind: "global"}, Provenance: &memory.ProvenanceIn{Kind: "unanchored", BasisNote: "y"}}); err == nil {
		t.Error("no error")
	}
	if st := w.store.Status(t.Context()); st.Memories != 0 {
		t.Errorf("%s", st.Text())
	}
	w.unanchored("Later.")
}
