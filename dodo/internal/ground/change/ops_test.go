package change_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

func TestOpsCanBeShownWithoutAService(t *testing.T) {
	var none *change.Service
	names := []string{}
	for _, o := range none.Ops() {
		names = append(names, o.Name)
		if len(o.InputSchema()) == 0 || len(o.OutputSchema()) == 0 {
			t.Errorf("%s has no schema", o.Name)
		}
		if want := map[bool]string{true: "dodo_read", false: "dodo_write"}[o.Name == "change_history"]; o.Gateway != want {
			t.Errorf("%s is reached through %s", o.Name, o.Gateway)
		}
	}
	want := "write_file edit_file apply_patch replace_in_files delete_path move_path make_directory preview_changes apply_changes rollback_changes change_history"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the operations are %s", got)
	}
}

func TestWriteFile(t *testing.T) {
	w := newWorld(t)
	d := w.call("write_file", obj{"path": "a/b/new.txt", "content": "one\n"})
	w.holds("a/b/new.txt", "one\n")
	w.mode("a/b/new.txt", 0o644)
	if d["created"] != true || d["beforeHash"] != nil || d.str("hash") != contract.Hash([]byte("one\n")) || d["bytes"] != 4.0 || d.str("changesetId") == "" {
		t.Errorf("answered %v", d)
	}
	must(t, os.Chmod(w.path("a/b/new.txt"), 0o751))
	d = w.call("write_file", obj{"path": "a/b/new.txt", "content": "two\r\n", "expectedHash": d.str("hash")})
	w.holds("a/b/new.txt", "two\r\n")
	w.mode("a/b/new.txt", 0o751)
	if d["created"] != false || d.str("beforeHash") != contract.Hash([]byte("one\n")) {
		t.Errorf("answered %v", d)
	}
	d = w.call("write_file", obj{"path": "a/b/new.txt", "content": "two\r\n"})
	if d["changesetId"] != nil {
		t.Errorf("the same content made a changeset: %v", d)
	}
	_, err := w.try("write_file", obj{"path": "x/y", "content": "", "createParents": false})
	refused(t, err, contract.NotFound)
	_, err = w.try("write_file", obj{"path": "gone", "content": "", "expectedHash": contract.Hash(nil)})
	refused(t, err, contract.FileChanged)
	_, err = w.try("write_file", obj{"path": "a/b", "content": ""})
	refused(t, err, contract.PathDenied)
	for _, path := range []string{".env", ".git/config", "../x", "", "/etc/x", "a\\b"} {
		_, err := w.try("write_file", obj{"path": path, "content": "x"})
		if !isOne(err, contract.PathDenied, contract.SecretPathDenied) {
			t.Errorf("%q: %v", path, err)
		}
	}
	w.clean()
}

func isOne(err error, codes ...fault.Code) bool {
	for _, c := range codes {
		if fault.From(err) != nil && fault.From(err).Code == c {
			return true
		}
	}
	return false
}

func TestFormOfTheFileIsKept(t *testing.T) {
	w := newWorld(t)
	bom := "\xef\xbb\xbf"
	for name, c := range map[string]struct{ before, edit, written string }{
		"bom.txt":   {bom + "old\r\nx", bom + "new\r\nx", bom + "whole"},
		"utf16.txt": {"\xff\xfeo\x00l\x00d\x00", "\xff\xfen\x00e\x00w\x00", "\xff\xfew\x00h\x00o\x00l\x00e\x00"},
		"be.txt":    {"\xfe\xff\x00o\x00l\x00d", "\xfe\xff\x00n\x00e\x00w", "\xfe\xff\x00w\x00h\x00o\x00l\x00e"},
		"crlf.txt":  {"a\r\nold\r\nb\n", "a\r\nnew\r\nb\n", "whole"},
	} {
		w.write(name, c.before)
		w.call("edit_file", obj{"path": name, "edits": []obj{{"find": "old", "replace": "new"}}})
		w.holds(name, c.edit)
		w.call("write_file", obj{"path": name, "content": "whole"})
		w.holds(name, c.written)
	}
	w.write("latin", "caf\xe9")
	for _, call := range []obj{{"path": "latin", "content": "x"}} {
		_, err := w.try("write_file", call)
		refused(t, err, contract.UnsupportedEncoding)
	}
	_, err := w.try("edit_file", obj{"path": "latin", "edits": []obj{{"find": "caf", "replace": "x"}}})
	refused(t, err, contract.UnsupportedEncoding)
	w.holds("latin", "caf\xe9")
}

func TestEditFile(t *testing.T) {
	w := newWorld(t)
	before := w.write("f.go", "a\r\nb\r\na\r\n")
	_, err := w.try("edit_file", obj{"path": "f.go", "edits": []obj{{"find": "a", "replace": "c"}}})
	f := refused(t, err, contract.AmbiguousEdit)
	if f.Detail["path"] != "f.go" || f.Detail["found"] != 2 || f.Detail["editIndex"] != 0 {
		t.Errorf("detail %v", f.Detail)
	}
	_, err = w.try("edit_file", obj{"path": "f.go", "edits": []obj{{"find": "b", "replace": "c"}, {"find": "zz", "replace": "c"}}})
	refused(t, err, contract.AmbiguousEdit)
	w.holds("f.go", "a\r\nb\r\na\r\n")
	d := w.call("edit_file", obj{"path": "f.go", "edits": []obj{{"find": "a\nb\n", "replace": "a\nB\nC\n"}}, "expectedHash": before})
	w.holds("f.go", "a\r\nB\r\nC\r\na\r\n")
	if d.str("beforeHash") != before || d["editsApplied"] != 1.0 || !strings.Contains(d.str("diff"), "+B") {
		t.Errorf("answered %v", d)
	}
	_, err = w.try("edit_file", obj{"path": "f.go", "edits": []obj{{"find": "a", "replace": "c", "replaceAll": true}}, "expectedHash": before})
	f = refused(t, err, contract.FileChanged)
	if f.Detail["expectedHash"] != before || f.Detail["actualHash"] != d.str("hash") || !strings.Contains(f.Detail["diff"].(string), "+B") {
		t.Errorf("detail %v", f.Detail)
	}
	_, err = w.try("edit_file", obj{"path": "f.go", "edits": []obj{{"find": "a", "replace": "c", "replaceAll": true, "expectedCount": 2}}})
	refused(t, err, contract.InvalidInput)
	_, err = w.try("edit_file", obj{"path": "none", "edits": []obj{{"find": "a", "replace": "c"}}})
	refused(t, err, contract.NotFound)
	other := w.write("other", "what is there now")
	_, err = w.try("edit_file", obj{"path": "other", "edits": []obj{{"find": "a", "replace": "c"}}, "expectedHash": before})
	f = refused(t, err, contract.FileChanged)
	if f.Detail["content"] == "what is there now" || f.Detail["actualHash"] != other {
		// The backups know the expected bytes, so the difference is shown instead.
		t.Errorf("detail %v", f.Detail)
	}
	_, err = w.try("edit_file", obj{"path": "other", "edits": []obj{{"find": "a", "replace": "c"}}, "expectedHash": contract.Hash([]byte("?"))})
	if f = refused(t, err, contract.FileChanged); f.Detail["content"] != "what is there now" {
		t.Errorf("detail %v", f.Detail)
	}
}

func TestDryRunIsAppliedLater(t *testing.T) {
	w := newWorld(t)
	w.write("f", "one\n")
	d := w.call("edit_file", obj{"path": "f", "edits": []obj{{"find": "one", "replace": "two"}}, "dryRun": true})
	w.holds("f", "one\n")
	if d["dryRun"] != true || d["hash"] != nil {
		t.Errorf("answered %v", d)
	}
	w.call("apply_changes", obj{"planId": d.str("planId"), "planHash": d.str("planHash"), "idempotencyKey": "12345678"})
	w.holds("f", "two\n")
}

func TestApplyPatch(t *testing.T) {
	w := newWorld(t)
	w.write("m.txt", "a\nb\nc\n")
	w.write("gone.txt", "x\n")
	patch := "--- a/m.txt\n+++ b/m.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n" +
		"--- /dev/null\n+++ b/dir/new.txt\n@@ -0,0 +1 @@\n+hello\n" +
		"--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
	d := w.call("apply_patch", obj{"patch": patch, "dryRun": true})
	if d["changesetId"] != nil || d["dryRun"] != true || len(d["files"].([]any)) != 3 {
		t.Errorf("answered %v", d)
	}
	w.holds("m.txt", "a\nb\nc\n")
	d = w.call("apply_patch", obj{"patch": patch})
	w.holds("m.txt", "a\nB\nc\n")
	w.holds("dir/new.txt", "hello\n")
	w.absent("gone.txt")
	if d.str("planHash") == "" || d.str("changesetId") == "" {
		t.Errorf("answered %v", d)
	}
	w.write("gone.txt", "x\n")
	_, err := w.try("apply_patch", obj{"patch": strings.Replace(patch, "dir/new", "dir/new2", 1)})
	refused(t, err, contract.Conflict) // m.txt has B now
	w.absent("dir/new2.txt")
	w.holds("gone.txt", "x\n")
	_, err = w.try("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	refused(t, err, contract.Conflict)
	must(t, os.Remove(w.path("gone.txt")))
	w.call("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	w.holds("m.txt", "a\nb\nc\n")
	w.holds("gone.txt", "x\n")
	w.absent("dir")
}

func TestDeleteMoveMakeDirectory(t *testing.T) {
	w := newWorld(t)
	h := w.write("d/f", "bytes")
	must(t, os.Chmod(w.path("d/f"), 0o640))
	_, err := w.try("move_path", obj{"path": "d/f", "destPath": "none/f"})
	refused(t, err, contract.NotFound)
	w.write("taken", "")
	_, err = w.try("move_path", obj{"path": "d/f", "destPath": "taken"})
	refused(t, err, contract.Conflict)
	d := w.call("move_path", obj{"path": "d/f", "destPath": "d/g"})
	if d.str("hash") != h {
		t.Errorf("answered %v", d)
	}
	w.absent("d/f")
	w.mode("d/g", 0o640)
	_, err = w.try("delete_path", obj{"path": "d/g", "expectedHash": contract.Hash(nil)})
	refused(t, err, contract.FileChanged)
	d = w.call("delete_path", obj{"path": "d/g", "expectedHash": h})
	w.absent("d/g")
	w.call("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	w.holds("d/g", "bytes")
	w.mode("d/g", 0o640)

	_, err = w.try("delete_path", obj{"path": "d"})
	refused(t, err, contract.PathDenied)
	d = w.call("make_directory", obj{"path": "x/y/z"})
	if d["created"] != true || len(d["createdParents"].([]any)) != 2 {
		t.Errorf("answered %v", d)
	}
	if again := w.call("make_directory", obj{"path": "x/y/z"}); again["created"] != false {
		t.Errorf("answered %v", again)
	}
	_, err = w.try("make_directory", obj{"path": "taken"})
	refused(t, err, contract.Conflict)
	w.write("x/mine", "stays")
	w.call("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	w.absent("x/y")
	w.holds("x/mine", "stays")
	w.clean()
}

// A finder for tests answers what it is told.
type found struct {
	asked string
	paths []string
}

func (f *found) Find(_ context.Context, literal string, _ []workspace.Path, _ string, _ bool, max int) ([]workspace.Path, error) {
	f.asked = literal
	var list []workspace.Path
	for _, p := range f.paths[:min(max, len(f.paths))] {
		path, err := workspace.ParsePath(p)
		if err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	return list, nil
}

// named finds entries of the root by the names that they have.
type named []string

func (n named) Find(context.Context, string, []workspace.Path, string, bool, int) (list []workspace.Path, err error) {
	for _, name := range n {
		list = append(list, workspace.Path{}.Join(name))
	}
	return list, nil
}

// TestReplaceLeavesWhatCannotBeNamed: a file whose name no tool takes neither fails the call nor
// is left in silence.
func TestReplaceLeavesWhatCannotBeNamed(t *testing.T) {
	for _, files := range []named{{"a", "b\xff", `c\d`, "~e"}, {"b\xff"}} {
		w := newWorld(t)
		w.find = files
		w.reopen()
		for _, name := range files {
			w.write(name, "old")
		}
		for _, dry := range []bool{true, false} {
			_, r, err := w.callAs(client, "replace_in_files", obj{"find": "old", "replace": "new", "dryRun": dry})
			must(t, err)
			if n := max(1, len(files)-1); !strings.HasSuffix(strings.Join(r.Warnings, ""), fmt.Sprintf("takes their names: %d", n)) {
				t.Errorf("%q: warnings %q", files, r.Warnings)
			}
		}
		w.holds("b\xff", "old")
	}
}

func TestReplaceInFiles(t *testing.T) {
	w := newWorld(t)
	_, err := w.try("replace_in_files", obj{"find": "x", "replace": "y"})
	refused(t, err, contract.NotSupported)
	f := &found{paths: []string{"a", "b", "c", "latin", "not"}}
	w.find = f
	w.reopen()
	w.write("a", "old old\n")
	w.write("b", "x\r\nold\r\n")
	w.write("c", "nothing\n")
	w.write("latin", "old \xe9")
	w.write("not", "old")
	must(t, os.Remove(w.path("not")))
	d := w.call("replace_in_files", obj{"find": "old", "replace": "new"})
	if d["dryRun"] != true || d["totalReplacements"] != 3.0 || d["changesetId"] != nil || d.str("planId") == "" {
		t.Errorf("answered %v", d)
	}
	w.holds("a", "old old\n")
	d = w.call("replace_in_files", obj{"find": "old", "replace": "new", "dryRun": false})
	if d["dryRun"] != false || d["totalReplacements"] != 3.0 || d.str("changesetId") == "" {
		t.Errorf("answered %v", d)
	}
	w.holds("a", "new new\n")
	w.holds("b", "x\r\nnew\r\n")
	w.holds("latin", "old \xe9")
	d = w.call("replace_in_files", obj{"find": "old", "replace": "new", "dryRun": false})
	if d.str("note") == "" || d["totalReplacements"] != 0.0 || d["changesetId"] != nil {
		t.Errorf("answered %v", d)
	}
	_, err = w.try("replace_in_files", obj{"find": "new", "replace": "old", "maxFiles": 1, "dryRun": false})
	if f := refused(t, err, contract.ResourceLimit); f.Detail["files"] == nil {
		t.Errorf("detail %v", f.Detail)
	}
	w.holds("a", "new new\n")
	w.call("replace_in_files", obj{"find": "x\nnew\n", "replace": "y\n", "dryRun": false})
	if f.asked != "new" {
		t.Errorf("searched for %q", f.asked)
	}
	w.holds("b", "y\r\n")
	_, err = w.try("replace_in_files", obj{"find": "\n\n", "replace": "\n"})
	refused(t, err, contract.InvalidInput)
}

func TestPreviewAndApply(t *testing.T) {
	w := newWorld(t)
	w.write("mod", "one\n")
	w.write("exact", "a b a\n")
	w.write("del", "bye")
	w.write("from", "moved")
	must(t, os.Mkdir(w.path("sub"), 0o755))
	ops := []obj{
		{"op": "create", "path": "new/deep/file", "content": "fresh", "createParents": true},
		{"op": "replace_file", "path": "mod", "content": "two\n"},
		{"op": "replace_exact", "path": "exact", "find": "a", "replace": "c", "expectedCount": 2},
		{"op": "delete", "path": "del"},
		{"op": "move", "path": "from", "destPath": "sub/to"},
	}
	before := w.tree()
	d := w.call("preview_changes", obj{"operations": ops})
	if d.str("risk") != "high" || len(d["files"].([]any)) != 5 || d["requiresApproval"] != false {
		t.Errorf("answered %v", d)
	}
	for name, text := range w.tree() {
		if before[name] != text || len(w.tree()) != len(before) {
			t.Errorf("the preview touched %s", name)
		}
	}
	apply := obj{"planId": d.str("planId"), "planHash": d.str("planHash"), "idempotencyKey": "12345678"}
	_, _, err := w.callAs(another, "apply_changes", apply)
	refused(t, err, contract.Forbidden)
	_, err = w.try("apply_changes", obj{"planId": d.str("planId"), "planHash": contract.Hash(nil), "idempotencyKey": "12345678"})
	refused(t, err, contract.PlanHashMismatch)
	_, err = w.try("apply_changes", obj{"planId": "plan_0000000000", "planHash": contract.Hash(nil), "idempotencyKey": "12345678"})
	refused(t, err, contract.NotFound)
	a := w.call("apply_changes", apply)
	w.holds("new/deep/file", "fresh")
	w.holds("mod", "two\n")
	w.holds("exact", "c b c\n")
	w.absent("del")
	w.absent("from")
	w.holds("sub/to", "moved")
	w.clean()
	if a["rollbackAvailable"] != true || a["replayed"] != false || len(a["files"].([]any)) != 5 {
		t.Errorf("answered %v", a)
	}
	_, err = w.try("apply_changes", apply)
	refused(t, err, contract.PlanExpired)
	w.call("rollback_changes", obj{"changesetId": a.str("changesetId"), "idempotencyKey": "12345678"})
	same(t, before, w.tree())
}

func same(t testing.TB, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if now, there := got[name]; !there || now != text {
			t.Errorf("%s holds %.60q (%v), want %.60q", name, now, there, text)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s is new", name)
		}
	}
}

func TestPlansEnd(t *testing.T) {
	w := newWorld(t)
	preview := func() obj {
		d := w.call("preview_changes", obj{"operations": []obj{{"op": "create", "path": "f", "content": strings.Repeat("text ", 1000)}}})
		return obj{"planId": d.str("planId"), "planHash": d.str("planHash"), "idempotencyKey": "12345678"}
	}
	plan := preview()
	w.clock.Add(int64(16 * time.Minute))
	_, err := w.try("apply_changes", plan)
	refused(t, err, contract.PlanExpired)
	plan = preview()
	list, err := os.ReadDir(w.dir + "/plans")
	must(t, err)
	if len(list) != 1 {
		t.Errorf("%d files of plans are kept", len(list))
	}
	if in, err := list[0].Info(); err != nil || in.Size() > 1000 || in.Mode().Perm() != 0o600 {
		t.Errorf("a plan takes %d bytes, mode %v (%v)", in.Size(), in.Mode(), err)
	}
	w.reopen()
	_, err = w.try("apply_changes", plan)
	refused(t, err, contract.PlanExpired) // another epoch
	plan = preview()
	must(t, os.WriteFile(w.dir+"/plans/"+plan["planId"].(string)+".zst", []byte("damaged"), 0o600))
	_, err = w.try("apply_changes", plan)
	refused(t, err, contract.PlanExpired)
	w.clock.Add(int64(48 * time.Hour))
	plan2 := preview()
	_, err = w.try("apply_changes", plan)
	refused(t, err, contract.NotFound)
	w.call("apply_changes", plan2)
}

// TestPlanOfOtherBytesIsRefused: contents of a plan that unpack cleanly, to other bytes than the
// owner and the caller were shown, are not applied.
func TestPlanOfOtherBytesIsRefused(t *testing.T) {
	w := newWorld(t)
	var plans []obj
	for _, text := range []string{"shown ", "other "} {
		d := w.call("preview_changes", obj{"operations": []obj{{"op": "create", "path": "f", "content": strings.Repeat(text, 1000)}}})
		plans = append(plans, obj{"planId": d.str("planId"), "planHash": d.str("planHash"), "idempotencyKey": "12345678"})
	}
	file := func(i int) string { return w.dir + "/plans/" + plans[i]["planId"].(string) + ".zst" }
	mine, err := os.ReadFile(file(0))
	must(t, err)
	other, err := os.ReadFile(file(1))
	must(t, err)
	if len(mine) != len(other) || bytes.Equal(mine, other) {
		t.Fatalf("%d and %d bytes: the one does not unpack in the place of the other", len(mine), len(other))
	}
	must(t, os.WriteFile(file(0), other, 0o600))
	_, err = w.try("apply_changes", plans[0])
	refused(t, err, contract.PlanExpired)
	w.absent("f")
	w.call("apply_changes", plans[1]) // the same bytes are good where they belong
	w.holds("f", strings.Repeat("other ", 1000))
}

func TestPreviewRefuses(t *testing.T) {
	w := newWorld(t)
	w.lim.ReadFileBytes, w.lim.PreviewAggregateBytes, w.lim.PreviewFilesMax = 100, 250, 3
	w.reopen()
	w.write("f", "text")
	big := strings.Repeat("x", 101)
	hundred := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		ops  []obj
		code fault.Code
	}{
		"twice":      {[]obj{{"op": "delete", "path": "f"}, {"op": "move", "path": "f", "destPath": "g"}}, contract.Conflict},
		"twice made": {[]obj{{"op": "create", "path": "n", "content": ""}, {"op": "create", "path": "./n", "content": ""}}, contract.Conflict},
		"taken":      {[]obj{{"op": "create", "path": "f", "content": ""}}, contract.Conflict},
		"no parent":  {[]obj{{"op": "create", "path": "d/f", "content": ""}}, contract.NotFound},
		"missing":    {[]obj{{"op": "delete", "path": "none"}}, contract.NotFound},
		"hash":       {[]obj{{"op": "delete", "path": "f", "expectedHash": contract.Hash(nil)}}, contract.FileChanged},
		"no hash":    {[]obj{{"op": "delete", "path": "f", "expectedHash": "abc"}}, contract.InvalidInput},
		"count":      {[]obj{{"op": "replace_exact", "path": "f", "find": "t", "replace": "x"}}, contract.AmbiguousEdit},
		"large":      {[]obj{{"op": "create", "path": "n", "content": big}}, contract.FileTooLarge},
		"together": {[]obj{{"op": "create", "path": "n", "content": hundred}, {"op": "create", "path": "m", "content": hundred},
			{"op": "create", "path": "o", "content": hundred}}, contract.ResourceLimit},
		"many": {[]obj{{"op": "create", "path": "n", "content": ""}, {"op": "create", "path": "m", "content": ""},
			{"op": "create", "path": "o", "content": ""}, {"op": "create", "path": "p", "content": ""}}, contract.ResourceLimit},
		"grows":               {[]obj{{"op": "replace_exact", "path": "f", "find": "e", "replace": big}}, contract.FileTooLarge},
		"a file in a file":    {[]obj{{"op": "create", "path": "k", "content": ""}, {"op": "create", "path": "k/x", "content": "", "createParents": true}}, contract.Conflict},
		"a file in a file, 2": {[]obj{{"op": "create", "path": "k/x/y", "content": "", "createParents": true}, {"op": "create", "path": "k", "content": ""}}, contract.Conflict},
		"moved into its way":  {[]obj{{"op": "create", "path": "k/x", "content": "", "createParents": true}, {"op": "move", "path": "f", "destPath": "k"}}, contract.Conflict},
		"grows, together": {[]obj{{"op": "create", "path": "n", "content": hundred}, {"op": "create", "path": "m", "content": hundred},
			{"op": "replace_exact", "path": "f", "find": "e", "replace": hundred[:90]}}, contract.ResourceLimit},
		"not its own": {[]obj{{"op": "delete", "path": "f", "content": "x"}}, contract.InvalidInput},
		"missing arg": {[]obj{{"op": "create", "path": "n"}}, contract.InvalidInput},
		"secret":      {[]obj{{"op": "move", "path": "f", "destPath": ".env"}}, contract.SecretPathDenied},
	} {
		_, err := w.try("preview_changes", obj{"operations": c.ops})
		if fault.From(err) == nil || fault.From(err).Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

func TestAnswersStayBounded(t *testing.T) {
	w := newWorld(t)
	var ops []obj
	for i := range 50 {
		ops = append(ops, obj{"op": "create", "path": "f" + string(rune('0'+i/10)) + string(rune('0'+i%10)), "content": strings.Repeat("line \"quoted\" \t text\n", 2000)})
	}
	d, r, err := w.callAs(client, "preview_changes", obj{"operations": ops})
	must(t, err)
	total := 0
	for _, f := range d["files"].([]any) {
		total += len(f.(map[string]any)["diff"].(string))
	}
	if total == 0 || total > 48<<10 || !r.Truncated || len(d["files"].([]any)) != 50 {
		t.Errorf("%d bytes of differences, truncated %v", total, r.Truncated)
	}
}

// TestLargeInputs: a file of several MiB is written, edited and taken back (contract 023);
// its difference is not shown.
func TestLargeInputs(t *testing.T) {
	w := newWorld(t)
	text := lines(3<<20, 1)
	w.write("f", text)
	d := w.call("edit_file", obj{"path": "f", "edits": []obj{{"find": text[:60], "replace": "// new first line\n"}}})
	if d.str("diff") != "" {
		t.Errorf("a difference of %d bytes is shown", len(d.str("diff")))
	}
	w.holds("f", "// new first line\n"+text[60:])
	w.call("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	w.holds("f", text)
	d = w.call("delete_path", obj{"path": "f"})
	w.call("rollback_changes", obj{"changesetId": d.str("changesetId"), "idempotencyKey": "12345678"})
	w.holds("f", text)
	w.clean()
}

func TestApprovalSeesTheSameTwice(t *testing.T) {
	w := newWorld(t)
	w.asks = true
	w.write("f", "one")
	args := obj{"path": "f", "edits": []obj{{"find": "one", "replace": "two"}}}
	a, err := w.prepare(client, "edit_file", args)
	must(t, err)
	b, err := w.prepare(client, "edit_file", args)
	must(t, err)
	da, err := contract.Digest(a.Preview)
	must(t, err)
	db, err := contract.Digest(b.Preview)
	must(t, err)
	if da != db || a.Preview == nil || a.Summary != b.Summary {
		t.Errorf("%v and %v", a, b)
	}
	w.write("f", "one!")
	_, err = b.Run(context.Background())
	refused(t, err, contract.FileChanged) // the owner saw another file
	w.holds("f", "one!")
	w.asks = false
	c, err := w.prepare(client, "edit_file", args)
	must(t, err)
	w.write("f", "one?")
	_, err = c.Run(context.Background())
	must(t, err)
	w.holds("f", "two?")
}

// TestApprovalShowsTheDifference: what the owner is asked about shows what goes and what comes,
// also of a stored plan and of a rollback.
func TestApprovalShowsTheDifference(t *testing.T) {
	w := newWorld(t)
	w.asks = true
	w.write("f", "one\nsame\n")
	plan := w.plan([]obj{{"op": "replace_file", "path": "f", "content": "two\nsame\n"}})
	shows := func(name string, args obj, parts ...string) contract.Prepared {
		t.Helper()
		p, err := w.prepare(client, name, args)
		must(t, err)
		text := fmt.Sprintf("%+v", p.Preview)
		for _, part := range append(parts, " same\n") {
			if !strings.Contains(text, part) {
				t.Errorf("the owner of %s is shown %s, without %q", name, text, part)
			}
		}
		return p
	}
	p := shows("apply_changes", plan, "-one\n", "+two\n")
	_, err := p.Run(context.Background())
	must(t, err)
	list, err := w.svc.History(context.Background(), "", 1)
	must(t, err)
	shows("rollback_changes", obj{"changesetId": list[0].ID, "idempotencyKey": "12345678"}, "-two\n", "+one\n")
	made := w.call("write_file", obj{"path": "new", "content": "made\n same\n"})
	shows("rollback_changes", obj{"changesetId": made.str("changesetId"), "idempotencyKey": "12345678"}, "-made\n", "+++ /dev/null")
	shows("apply_changes", w.plan([]obj{{"op": "delete", "path": "new"}}), "-made\n", "+++ /dev/null")
}

// TestApprovalOfALongChange: the owner sees all of what a model is shown the beginning of, and is
// told where even that is not all.
func TestApprovalOfALongChange(t *testing.T) {
	w := newWorld(t)
	w.asks = true
	type shown struct {
		Diff                    string
		DiffTruncated           bool
		BytesBefore, BytesAfter int64
	}
	preview := func(content string) (list []shown) {
		t.Helper()
		p, err := w.prepare(client, "write_file", obj{"path": "f", "content": content})
		must(t, err)
		raw, err := json.Marshal(p.Preview)
		must(t, err)
		must(t, json.Unmarshal(raw, &list))
		return list
	}
	long := strings.Repeat("a line\n", 9000)
	if l := preview(long + "the last\n"); len(l) != 1 || !strings.HasSuffix(l[0].Diff, "+the last\n") || l[0].DiffTruncated || l[0].BytesAfter != int64(len(long)+9) {
		t.Errorf("%d bytes of difference end in %q, %v", len(l[0].Diff), l[0].Diff[max(0, len(l[0].Diff)-30):], l[0].DiffTruncated)
	}
	for _, n := range []int{10, 100} { // above what is shown, above what is compared
		if l := preview(strings.Repeat(long, n)); len(l) != 1 || !l[0].DiffTruncated || len(l[0].Diff) > 256<<10 || l[0].BytesAfter != int64(n*len(long)) {
			t.Errorf("%d bytes, %v", len(l[0].Diff), l[0].DiffTruncated)
		}
	}
}

// TestAnOrderlyEndLeavesNothingToDo: the next start writes nothing.
func TestAnOrderlyEndLeavesNothingToDo(t *testing.T) {
	w := newWorld(t)
	w.call("write_file", obj{"path": "f", "content": "a"})
	w.call("write_file", obj{"path": "f", "content": "b"})
	w.reopen()
	must(t, w.state.Read(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
		loose, err := c.Row(ctx, "SELECT 1 FROM changesets WHERE swept = 0", nil, new(int))
		if loose {
			t.Error("a change waits to be swept")
		}
		return err
	}))
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"a", "b", "c"} {
		w.call("write_file", obj{"path": "f", "content": text})
	}
	list := w.call("change_history", obj{"limit": 2})["changesets"].([]any)
	if len(list) != 2 {
		t.Fatalf("%v", list)
	}
	last := data(list[0].(map[string]any))
	if last.str("status") != "committed" || last.str("kind") != "apply" || last.str("summary") != "write_file: modify 1 file" || last.str("committedAt") == "" {
		t.Errorf("%v", last)
	}
	var ids []string
	for cursor := ""; ; {
		d, r, err := w.callAs(client, "change_history", obj{"limit": 2, "cursor": cursor})
		must(t, err)
		for _, c := range d["changesets"].([]any) {
			ids = append(ids, data(c.(map[string]any)).str("changesetId"))
		}
		if r.Truncated != (r.NextCursor != "") {
			t.Errorf("truncated %v, cursor %q", r.Truncated, r.NextCursor)
		}
		if cursor = r.NextCursor; cursor == "" {
			break
		}
		w.call("write_file", obj{"path": "f", "content": "d"}) // newer ones come in no later page
	}
	if len(ids) != 3 || ids[0] != last.str("changesetId") || ids[1] == ids[2] {
		t.Errorf("%v", ids)
	}
	_, err := w.try("change_history", obj{"cursor": "cs_0"})
	refused(t, err, contract.NotFound)
}
