package sandbox_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
)

// A secret file and a secret directory look empty to a command by every name that leads to
// them, cannot be put away, and are untouched.
func TestSecrets(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		file, dir := g.root+"/sub/.env", g.root+"/keys"
		g.put(file, "a secret")
		g.put(dir+"/id", "a secret")
		g.put(dir+"/deep/id", "a secret")
		must(t, os.Symlink("sub/.env", g.root+"/link"))
		must(t, os.Symlink("keys", g.root+"/linked"))
		must(t, os.Symlink("nowhere", g.root+"/dangling"))
		g.give()
		before, err := os.Stat(file)
		must(t, err)
		j := job{Secrets: []string{file, dir, dir + "/id", g.root + "/dangling"}}
		var list []try
		for _, name := range []string{file, g.root + "/link", g.root + "/sub/../sub/./.env", "/proc/self/root" + file, "/proc/self/cwd/sub/.env", "sub/.env", g.root + "//sub/.env", "/proc/1/root" + file} {
			list = append(list, try{"read|" + name, "got |EACCES"})
		}
		list = append(list,
			try{"list|" + dir, "got "}, try{"list|" + g.root + "/linked", "got "}, try{"read|" + dir + "/id", "ENOENT"}, try{"read|" + dir + "/deep/id", "ENOENT"},
			try{"size|" + file, "got 0"}, try{"write|" + file + "|x", "EROFS|EACCES"}, try{"truncate|" + file, "EROFS|EACCES"}, try{"unlink|" + file, "EBUSY"}, try{"remove|" + dir, "EBUSY|EROFS"},
			try{"rename|" + file + "|" + g.root + "/new", "EBUSY"}, try{"rename|" + dir + "|" + g.root + "/new", "EBUSY"}, try{"link|" + file + "|" + g.root + "/hard", "EXDEV|EPERM|EROFS"},
			try{"create|" + dir + "/x", "EROFS|EACCES"}, try{"chmod|" + file + "|0777", "EROFS"}, try{"exchange|" + file + "|" + g.root + "/file", "EBUSY|EXDEV"},
			try{"rename|" + g.root + "/file|" + file, "EBUSY|EXDEV"},
			// What is above it can be moved, and takes the cover along.
			try{"rename|" + g.root + "/sub|" + g.root + "/moved", "ok"}, try{"read|" + g.root + "/moved/.env", "got "},
		)
		a := g.tries(j, list...)
		if a.Hidden != 2 {
			t.Error(a.Hidden)
		}
		if strings.Contains(a.Out, "a secret") {
			t.Error(a.Out)
		}
		after, err := os.Stat(g.root + "/moved/.env")
		must(t, err)
		if data, err := os.ReadFile(g.root + "/moved/.env"); string(data) != "a secret" || !os.SameFile(before, after) || before.Mode() != after.Mode() {
			t.Error(err)
		}
		// The next command's secrets are those of then.
		j = job{Secrets: []string{g.root + "/moved/.env", dir}, Times: 1}
		g.tries(j, try{"read|" + g.root + "/moved/.env", "got "})
		// What is a secret only when a command runs is hidden from the next one.
		g.put(g.root+"/later", "a secret")
		g.give()
		j = job{SecretsAfter: []string{g.root + "/later"}, Times: 2, Spec: spec{Args: []string{"/bin/cat", g.root + "/later"}}}
		s := g.serve(j)
		var outs []string
		for range 2 {
			a := s.next()
			for a.Begun {
				a = s.next()
			}
			outs = append(outs, a.Out)
		}
		if outs[0] != "a secret" || outs[1] != "" {
			t.Errorf("%q", outs)
		}
		if data, err := os.ReadFile(dir + "/deep/id"); string(data) != "a secret" {
			t.Error(err)
		}
		// What is not there any more: the command is not run.
		j = sh("true")
		j.Secrets = []string{g.root + "/gone"}
		g.refused(j, "CONFLICT")
		// Nor behind a link in its directory's place, whatever is there.
		must(t, os.Symlink("moved", g.root+"/sub"))
		j.Secrets = []string{g.root + "/sub/.env"}
		g.refused(j, "CONFLICT")
	})
}

// Where nothing can be hidden a command is not run.
func TestSecretsReduced(t *testing.T) {
	each(t, reduced, func(t *testing.T, g *ground) {
		g.put(g.root+"/.env", "a secret")
		g.put(g.root+"/state/db", "a secret")
		g.give()
		j := sh("cat .env")
		j.Secrets = []string{g.root + "/.env"}
		g.refused(j, "NOT_SUPPORTED")
		j = sh("cat state/db")
		j.Hidden = []string{g.root + "/state"}
		g.refused(j, "NOT_SUPPORTED")
		j.Hidden = []string{g.root + "/missing"}
		g.ran(j)
	})
}

// The installation's directory in a workspace looks empty, also by another name of it, and
// so does one in what all commands may read.
func TestHiddenDirectories(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		state := g.root + "/state"
		g.put(state+"/db", "a secret")
		must(t, os.Symlink(g.root, g.dir+"/name"))
		g.put(g.dir+"/tools/bin/tool", "a tool")
		g.put(g.dir+"/tools/private/key", "a secret")
		g.give()
		j := job{Hidden: []string{g.dir + "/name/state", g.root + "/missing"}, Cache: state + "/cache"}
		a := g.tries(j, try{"read|" + state + "/db", "ENOENT"}, try{"list|" + state, "got "}, try{"list|" + g.dir + "/name/state", "ENOENT"})
		if a.Hidden != 1 {
			t.Error(a.Hidden)
		}
		j = job{Read: []string{g.dir + "/tools"}, Hidden: []string{g.dir + "/tools/private"}}
		g.tries(j, try{"read|" + g.dir + "/tools/private/key", "ENOENT"})
		j = job{Read: []string{g.dir + "/tools"}}
		g.tries(j, try{"read|" + g.dir + "/tools/private/key", "got a secret"}, try{"create|" + g.dir + "/tools/x", "EROFS"})
		// The owner's home is not shown because a program is in it.
		g.put(g.dir+"/home/bin/tool", "a tool")
		g.put(g.dir+"/home/lib/x", "a secret")
		g.give()
		j = job{Home: g.dir + "/home", Path: []string{"/bin", g.dir + "/home/bin", g.dir + "/home"}}
		g.tries(j, try{"read|" + g.dir + "/home/bin/tool", "got a tool"}, try{"read|" + g.dir + "/home/lib/x", "ENOENT"})
	})
}

// Directories are moved and replaced by links while commands are started: a secret is never
// seen, and nothing outside is mounted, made or written.
func TestSecretsRace(t *testing.T) {
	each(t, atFull, func(t *testing.T, g *ground) {
		file := g.root + "/sub/.env"
		g.put(file, "a secret")
		g.put(g.root+"/decoy/.env", "a decoy")
		g.repository(g.root + "/sub/.git")
		g.repository(g.outside + "/.git")
		g.put(g.outside+"/.env", "outside")
		g.put(g.outside+"/.git/config", "outside")
		g.give()
		s := g.serve(job{Hold: true, Secrets: []string{file}, Git: []string{g.root + "/sub/.git"}, Times: 60,
			Spec: spec{Args: []string{"/bin/sh", "-c", "cat */.env */.git/config; echo x >>sub/.git/config; echo x >sub/.git/hooks/x; true"}}})
		if a := s.next(); !a.Begun {
			t.Fatalf("%+v", a)
		}
		stop := make(chan struct{})
		var swap sync.WaitGroup
		swap.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// Never without one of its names: the secret is at sub/.env or at aside/.env.
				_ = os.Rename(g.root+"/sub", g.root+"/aside")
				_ = os.Symlink(g.outside, g.root+"/sub")
				_ = os.Remove(g.root + "/sub")
				_ = os.Rename(g.root+"/decoy", g.root+"/sub")
				_ = os.Rename(g.root+"/sub", g.root+"/decoy")
				_ = os.Rename(g.root+"/aside", g.root+"/sub")
			}
		})
		codes := map[string]int{}
		for range 60 {
			a := s.next()
			for a.Begun {
				a = s.next()
			}
			codes[a.Code]++
			if a.Code != "" && a.Code != "CONFLICT" && a.Code != "NOT_FOUND" {
				t.Errorf("%+v", a)
			}
			if strings.Contains(a.Out, "a secret") || strings.Contains(a.Out, "outside") {
				t.Errorf("%+v", a)
			}
		}
		close(stop)
		swap.Wait()
		t.Log(codes)
		for name, want := range map[string]string{".env": "outside", ".git/config": "outside"} {
			if data, err := os.ReadFile(g.outside + "/" + name); string(data) != want {
				t.Errorf("%s: %q %v", name, data, err)
			}
		}
		if _, err := os.Stat(g.outside + "/.git/hooks/x"); err == nil {
			t.Error("it wrote outside")
		}
	})
}

// A command may change nothing in a workspace that is given for reading, and its script is
// there and private. Behind walls of its own it has a place that says nothing of this machine.
func TestReadOnlyAndScript(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		script := g.dir + "/state/scripts/one"
		g.put(script, "#!/bin/sh\necho '{\"Self\":\"'$0'\"}'\n")
		g.put(g.dir+"/state/scripts/two", "another's")
		must(t, os.Chmod(script, 0o700))
		g.give()
		inside, gone := sandbox.ScriptPath, "ENOENT"
		if g.level == sandbox.Reduced {
			inside, gone = script, "EACCES"
		}
		g.tries(job{Spec: spec{ReadOnly: true, Script: script}},
			try{"write|" + g.root + "/file|x", g.by("EROFS", "EACCES")}, try{"create|" + g.root + "/new", g.by("EROFS", "EACCES")}, try{"unlink|" + g.root + "/file", g.by("EROFS", "EACCES")},
			try{"read|" + g.root + "/file", "got a file"}, try{"exec|" + inside, "exit 0"}, try{"write|" + inside + "|x", g.by("EROFS", "EACCES")},
			try{"read|" + g.dir + "/state/scripts/two", g.by("ENOENT", "EACCES")}, try{"list|" + g.dir + "/state/scripts", gone})
		for _, args := range [][]string{{script}, {"/bin/sh", script}} {
			if a := g.ran(job{Spec: spec{Args: args, Script: script}}); a.Out != `{"Self":"`+inside+"\"}\n" {
				t.Errorf("%+v", a)
			}
		}
		// Where the owner shows /run there is no room for it.
		if a := g.ran(job{Read: []string{"/run"}, Spec: spec{Args: []string{"/bin/sh", script}, Script: script}}); a.Out != `{"Self":"`+script+"\"}\n" {
			t.Errorf("%+v", a)
		}
	})
}

// A home is there, lasts, and belongs to the commands of one workspace.
func TestHome(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		for i, want := range []string{"0\n", "1\n"} {
			if a := g.ran(sh("ls $HOME | grep -c kept; touch $HOME/kept; touch $TMPDIR/temporary; test -w $HOME")); a.Out != want || a.Exit.Code != 0 {
				t.Errorf("%d: %+v", i, a)
			}
		}
		j := sh("ls $HOME | grep -c kept")
		j.Cache = g.dir + "/state/other"
		if a := g.ran(j); a.Out != "0\n" {
			t.Errorf("%+v", a)
		}
		if g.level != sandbox.Reduced {
			if a := g.ran(sh("ls -A $TMPDIR | grep -c temporary")); a.Out != "0\n" {
				t.Errorf("%+v", a)
			}
		}
	})
}
