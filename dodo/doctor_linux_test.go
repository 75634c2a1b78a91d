package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/testenv"
)

// noise is text that does not pack.
func noise(n int) string {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[rnd.IntN(64)]
	}
	return string(b)
}

// TestDoctorSaysWhatWaits: a change that waits for the owner, and a backup that is lost, are
// problems; project_overview warns of the first.
func TestDoctorSaysWhatWaits(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.Write(t, "work/large.txt", noise(400_000))
	c := m.speak("legacy", dir)
	large := c.fine("write_file", `"path":"large.txt","content":"small"`).Data["changesetId"].(string)
	if r := m.dodo("doctor"); r.status != 0 || !strings.Contains(r.stdout, "ok       disk") || !strings.Contains(r.stdout, "ok       changes") {
		t.Fatalf("%d %s", r.status, r.stdout)
	}

	backups := filepath.Join(m.Env()["DODO_CONFIG_DIR"], "backups")
	list, err := os.ReadDir(backups)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	backup := filepath.Join(backups, list[0].Name())
	whole, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"cut":  func() error { return os.Truncate(backup, 1000) },
		"lost": func() error { return os.Remove(backup) },
		"all":  func() error { return os.RemoveAll(backups) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if r := m.dodo("doctor"); r.status != 1 || !strings.Contains(r.stdout, "problem  backups        1 of the backups") {
			t.Errorf("%s: %d %s", name, r.status, r.stdout)
		}
		if r := m.dodo("rollback", large); r.status != 1 || !strings.Contains(r.stderr, "not kept any more, or was lost") ||
			!strings.Contains(r.stderr, "large.txt: what was there before") || strings.Contains(r.stderr, "somebody changed") {
			t.Errorf("%s: %+v", name, r)
		}
		if err := os.MkdirAll(backups, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(backup, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	id := c.fine("edit_file", `"path":"sub/b.go","edits":[{"find":"return 1","replace":"return 2"}]`).Data["changesetId"].(string)
	if w := c.fine("project_overview", "").Warnings; len(w) != 0 {
		t.Errorf("%v", w)
	}
	m.interrupt(id)
	if r := m.dodo("doctor"); r.status != 1 || !strings.Contains(r.stdout, "problem  change         "+id) || !strings.Contains(r.stdout, "dodo recover") {
		t.Errorf("%d %s", r.status, r.stdout)
	}
	if w := c.fine("project_overview", "").Warnings; len(w) != 1 || !strings.Contains(w[0], id) || !strings.Contains(w[0], "dodo recover") {
		t.Errorf("%v", w)
	}
}

// TestRefusalsSayWhatHelps: the owner learns which file and why, by the owner's own commands.
func TestRefusalsSayWhatHelps(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	c := m.speak("legacy", dir)
	id := c.fine("write_file", `"path":"a.txt","content":"x"`).Data["changesetId"].(string)
	m.Write(t, "work/a.txt", "mine")
	if r := m.dodo("rollback", id); r.status != 1 || !strings.Contains(r.stderr, "    a.txt: its content is not") {
		t.Errorf("%+v", r)
	}
	m.Write(t, "work/a.txt", "x")
	m.ok(nil, "rollback", id, "--json")
	if r := m.dodo("rollback", id); r.status != 1 || !strings.Contains(r.stderr, "`dodo changes`") || strings.Contains(r.stderr, "change_history") {
		t.Errorf("%+v", r)
	}
	if r := m.dodo("project", "add", "/"); r.status != 1 || !strings.Contains(r.stderr, "dodo stdio --allow-unsafe-root") {
		t.Errorf("%+v", r)
	}
}

// TestStopOfAServerThatHangs does not say that there is none.
func TestStopOfAServerThatHangs(t *testing.T) {
	m := newMachine(t)
	s := m.serve(m.dir("a"))
	testenv.Halt(t, s.cmd.Process)
	if r := m.dodo("stop"); r.status != exitNotReady || !strings.Contains(r.stderr, "no server answered") || strings.Contains(r.stderr, "no server is running") {
		t.Errorf("%+v", r)
	}
}

// TestInstallationThatIsGone: a server whose installation was moved away does and shows
// nothing more, and says why; when it is back, so is the server.
func TestInstallationThatIsGone(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	c := m.speak("legacy", dir)
	c.fine("read_files", `"files":[{"path":"a.txt"}]`)
	place := m.Env()["DODO_CONFIG_DIR"]
	if err := os.Rename(place, place+"-away"); err != nil {
		t.Fatal(err)
	}
	for op, args := range map[string]string{"read_files": `"files":[{"path":"a.txt"}]`, "write_file": `"path":"new.txt","content":"x"`} {
		if e := c.call(op, args); e.OK || e.Error.Code != "INTERNAL_ERROR" || !strings.Contains(e.Error.Message, "was moved, removed or replaced") ||
			strings.Contains(e.Error.Recovery, "may have happened") {
			t.Errorf("%s: %+v", op, e.Error)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("it was written")
	}
	if err := os.Rename(place+"-away", place); err != nil {
		t.Fatal(err)
	}
	c.fine("write_file", `"path":"new.txt","content":"x"`)
}

// TestDoctorSaysWhatCommandsDoNotRead: entries of sandboxReadPaths without an effect are named, and
// those that no command could be run with cannot be set.
func TestDoctorSaysWhatCommandsDoNotRead(t *testing.T) {
	m := newMachine(t)
	for _, path := range []string{"/proc", "/proc/self", "/run", "/tmp"} {
		if r := m.dodo("config", "set", "sandboxReadPaths", path); r.status == 0 || !strings.Contains(r.stderr, path) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	above, sdk, missing := filepath.Dir(filepath.Clean(m.Env()["DODO_CONFIG_DIR"])), m.dir("sdk"), m.Path("missing")
	m.ok(nil, "config", "set", "sandboxReadPaths", sdk, missing)
	r := m.dodo("doctor")
	if strings.Contains(r.stdout, "not confined") || strings.Contains(r.stdout, "a filter alone") {
		t.Skip("there are no full walls here")
	}
	if !strings.Contains(r.stdout, missing+" cannot be seen") || strings.Contains(r.stdout, sdk) {
		t.Errorf("%+v", r)
	}
	if r := m.dodo("config", "set", "sandboxReadPaths", above); r.status == 0 {
		if r := m.dodo("doctor"); !strings.Contains(r.stdout, above+" has to do with dodo's own directory") {
			t.Errorf("%+v", r)
		}
	}
}
