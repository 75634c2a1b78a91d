package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/sandbox"
)

// Case 48: tokens and sockets in the server's environment: they are not in the command's, nor can they be found.
func TestCase48ServerEnvironment(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.tries(job{}, try{"env", "got .*"}, try{"search|of-the-server", "nothing"}, try{"search|of-a-sibling", "nothing"})
		env := got(t, a.Out)["env"]
		for _, word := range []string{"LEAK_TOKEN", "SSH_AUTH_SOCK", "DBUS", "GOMAXPROCS", "DISPLAY", "XDG"} {
			if strings.Contains(env, word) {
				t.Errorf("%s in %s", word, env)
			}
		}
		for _, kv := range strings.Fields(env)[1:] {
			name, _, _ := strings.Cut(kv, "=")
			if !slices.Contains([]string{"GROUND", "HOME", "LANG", "PATH", "TMPDIR"}, name) {
				t.Error(kv)
			}
		}
	})
}

// Case 49: a caller gives variables that loaders and programs obey: they are the command's alone, the helper does not see them.
func TestCase49Loader(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		j := job{Spec: spec{Args: attempts(g, "env"), Env: []string{"LD_PRELOAD=" + g.root + "/x.so", "GODEBUG=x=1", "GOTRACEBACK=crash", "HOME=/elsewhere", "TMPDIR=" + g.outside}}}
		a := g.ran(j)
		env := got(t, a.Out)["env"]
		if !strings.Contains(env, "LD_PRELOAD="+g.root) || strings.Contains(env, "elsewhere") || strings.Contains(env, "outside") {
			t.Error(env)
		}
	})
}

// Case 50: the workspace is first in the path, with programs of common names in it: none of them is found.
func TestCase50Look(t *testing.T) {
	users(t, func(t *testing.T, g *ground) {
		for _, name := range []string{"sh", "git"} {
			g.put(g.root+"/bin/"+name, "#!/bin/sh\n")
			must(t, os.Chmod(g.root+"/bin/"+name, 0o755))
		}
		must(t, os.Symlink(g.root+"/bin", g.dir+"/bin"))
		g.give()
		a := g.run(job{Path: []string{g.root + "/bin", g.dir + "/bin", "bin", ".", "", g.root + "/../" + filepath.Base(g.root) + "/bin", "/bin"}, Look: []string{"sh", "git", "../bin/sh", g.root + "/bin/sh", "", "a\x00b"}})
		if a.Looked["sh"] != "/bin/sh" || strings.HasPrefix(a.Looked["git"], g.dir) {
			t.Error(a.Looked)
		}
		for _, name := range []string{"../bin/sh", g.root + "/bin/sh", "", "a\x00b"} {
			if !strings.Contains(a.Looked[name], "no slash") {
				t.Error(a.Looked)
			}
		}
	})
}

func (g *ground) repository(dir string) {
	g.t.Helper()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n", "hooks/pre-commit": "#!/bin/sh\n", "objects/x": "", "refs/heads/x": "", "info/attributes": ""} {
		g.put(dir+"/"+name, text)
	}
	g.give()
}

// Case 52: a command moves .git away and makes another: EBUSY.
func TestCase52MoveGit(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		git := g.root + "/.git"
		g.repository(git)
		a := g.tries(job{Git: []string{git}},
			try{"rename|" + git + "|" + g.root + "/aside", "EBUSY"}, try{"exchange|" + git + "|" + g.root + "/file", "EBUSY"},
			try{"rename|" + git + "/hooks|" + git + "/aside", "EBUSY"}, try{"rename|" + git + "/config|" + git + "/aside", "EBUSY"}, try{"unlink|" + git + "/config", "EBUSY"},
			try{"write|" + git + "/config|x", "EROFS"}, try{"create|" + git + "/hooks/post-commit", "EROFS"}, try{"rename|" + g.root + "/file|" + git + "/config", "EBUSY|EXDEV"},
			try{"chmod|" + git + "/hooks/pre-commit|0755", "EROFS"}, try{"write|" + git + "/info/attributes|x", "EROFS"},
			try{"create|" + git + "/index", "ok"}, try{"link|" + git + "/config|" + git + "/other", "EXDEV"},
		)
		if len(a.Exit.Notes) > 0 {
			t.Error(a.Exit.Notes)
		}
	})
}

// Case 53: a command plants commondir, config.worktree and hooks in a repository, or a repository of its own: the first are refused, the last is told.
func TestCase53PlantedControl(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		git, nested := g.root+"/.git", g.root+"/sub/.git"
		g.repository(git)
		g.repository(nested)
		must(t, os.RemoveAll(git+"/commondir"))
		must(t, os.RemoveAll(git+"/config.worktree"))
		must(t, os.RemoveAll(git+"/hooks"))
		j := sh("! echo x >.git/commondir; ! echo x >.git/config.worktree; ! echo x >.git/hooks/pre-commit || exit 9; mkdir .vscode; echo {} >.vscode/tasks.json; echo '{}' >.mcp.json; mv sub moved; mkdir -p sub/.git; echo evil >sub/.git/config; true")
		j.Git = []string{git, nested}
		a := g.ran(j)
		notes := strings.Join(a.Exit.Notes, "\n")
		for _, path := range []string{".vscode/tasks.json", ".mcp.json", "sub/.git"} {
			if !strings.Contains(notes, `"`+path+`"`) {
				t.Errorf("%s is not told:\n%s", path, notes)
			}
		}
		for _, path := range []string{"commondir", "config.worktree", "hooks/pre-commit"} { // what stood in for them is gone, too
			if _, err := os.Lstat(filepath.Join(git, path)); err == nil || a.Exit.Code != 0 {
				t.Errorf("%s is there; %+v", path, a.Exit)
			}
		}
		// Nobody is told of what did not change.
		j = sh("git status >/dev/null 2>&1; true")
		j.Git = []string{git}
		if a := g.ran(j); len(a.Exit.Notes) > 0 {
			t.Error(a.Exit.Notes)
		}
	})
}

// Case 54: a workspace without .git, with a link, a pointer file, linked hooks: the command starts, and the shape stays or is told.
func TestCase54GitShapes(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		git := g.root + "/.git"
		run := func(what, script string, note bool) {
			t.Helper()
			j := sh(script)
			j.Git = []string{git}
			if a := g.ran(j); a.Exit.Code != 0 || (len(a.Exit.Notes) > 0) != note {
				t.Errorf("%s: %+v", what, a)
			}
		}
		run("missing", "true", false)
		run("missing and made", "mkdir .git; echo x >.git/config", true)
		must(t, os.RemoveAll(git))
		g.put(git, "gitdir: ../elsewhere\n")
		g.give()
		run("pointer", "! echo 'gitdir: /evil' >.git; ! mv .git x; ! rm .git", false)
		must(t, os.Remove(git))
		g.repository(g.root + "/real")
		must(t, os.Symlink("real", git))
		run("link", "true", false)
		run("link changed", "ln -sfn elsewhere .git", true)
		must(t, os.Remove(git))
		g.repository(git)
		must(t, os.RemoveAll(git+"/hooks"))
		must(t, os.Symlink("../hooks", git+"/hooks"))
		run("linked hooks", "true", false)
		run("an odd one", "mkfifo pipe; rm -r real; ln -s /dev/zero .mcp.json", true)
	})
}

// Case 55: a command lists the arguments of all processes: what the helper was told is not among them.
func TestCase55PlanNotInArguments(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		g.put(g.root+"/very-secret", "x")
		g.give()
		a := g.tries(job{Secrets: []string{g.root + "/very-secret"}, Spec: spec{Env: []string{"WORD=hidden-word"}}}, try{"args", "got .*"}, try{"search|sandbox-programs-x", "nothing"})
		if all := got(t, a.Out)["args"]; strings.Contains(all, "very-secret") || strings.Contains(all, "hidden-word") || strings.Contains(all, "bwrap") {
			t.Error(all)
		}
	})
}

// Case 56: a command types into its own terminal, also with bit 32 of the request set: EPERM.
func TestCase56TerminalInput(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		a := g.tries(job{Spec: spec{Terminal: &sandbox.Size{Columns: 80, Rows: 24}}},
			try{name("ioctl|0|%d", unix.TIOCSTI), "EPERM"}, try{name("ioctl|0|%d+high", unix.TIOCSTI), "EPERM"}, try{name("ioctl|0|%d", unix.TIOCGWINSZ), "ok"},
			try{name("ioctl|0|%d", unix.TIOCSETD), "EPERM"}, try{"open rw|/dev/tty", "ok"})
		if a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// Case 57: a command uses the console and the server's terminal: there is none.
func TestCase57OtherTerminals(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		list := []try{
			{name("ioctl|0|%d", unix.TIOCLINUX), "EPERM"}, {name("ioctl|0|%d", unix.TIOCCONS), "EPERM"}, {name("ioctl|0|%d", unix.TIOCSCTTY), "ENOTTY"},
			{"open rw|/dev/tty", "ENXIO"}, {"open rw|/dev/tty1", "ENOENT|EACCES"}, {"pty", g.by("ok", "EACCES")}, {"list|/dev/pts", g.by("got ptmx", "EACCES")},
		}
		if others, _ := filepath.Glob("/dev/pts/[0-9]*"); g.level == sandbox.Reduced {
			for _, tty := range others {
				list = append(list, try{"open rw|" + tty, "EACCES"})
			}
		}
		g.tries(job{}, list...)
	})
}

// A terminal that is closed hangs up: what it was for ends.
func TestTerminalHangup(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		j := sh("stty size; echo ready; while :; do sleep 0.05; done")
		j.Spec.Terminal, j.Hangup = &sandbox.Size{Columns: 91, Rows: 17}, "ready"
		a := g.ran(j)
		if a.Exit.Signal != "SIGHUP" || !strings.HasPrefix(a.Out, "17 91") {
			t.Errorf("%+v", a)
		}
		g.nothingLeft()
	})
}

// Case 77: a kernel without Landlock, without seccomp, without user namespaces, with an old Landlock: a level with that name or NOT_SUPPORTED, and the reason.
func TestCase77OldKernels(t *testing.T) {
	users(t, func(t *testing.T, g *ground) {
		for _, c := range []struct {
			kernel        string
			require, best sandbox.Isolation // "" is NOT_SUPPORTED
			reason        string
			notes         int // of the best
		}{
			{"no-landlock", "", "", "no Landlock", 0},
			{"container", "", "", "no Landlock", 0},
			{"empty-landlock", "", "", "access to files is not restricted", 0},
			{"no-seccomp", "", "", "seccomp", 0},
			{"empty-seccomp", "", "", "was not denied", 0},
			{"no-userns", "", sandbox.Reduced, "namespaces", 0},
			{"landlock=1", sandbox.Full, sandbox.Full, "", 0},
			{"landlock=3", sandbox.Full, sandbox.Full, "", 0},
			{"landlock=5", sandbox.Full, sandbox.Full, "", 0},
			{"landlock=6", sandbox.Full, sandbox.Full, "", 0},
		} {
			g.wrap = []string{programs(t) + "/oldkernel", c.kernel}
			for mode, want := range map[sandbox.Mode]sandbox.Isolation{sandbox.Require: c.require, sandbox.Prefer: c.best} {
				j := job{Only: "any", Spec: spec{Args: attempts(g, "read|"+g.secret, "kill|1|0"), Mode: mode}}
				a := g.run(j)
				if want == "" {
					if a.Code != "NOT_SUPPORTED" || !strings.Contains(a.Text, c.reason) || a.Out != "" {
						t.Errorf("%s, %s: %s %q %v", c.kernel, mode, a.Code, a.Text, a.Report)
					}
					continue
				}
				if a.Code != "" || a.Isolation != want || a.Exit.Code != 0 {
					t.Errorf("%s, %s: %+v", c.kernel, mode, a)
					continue
				}
				if got := got(t, a.Out)["read "+g.secret]; got != "ENOENT" && got != "EACCES" {
					t.Errorf("%s, %s: %s", c.kernel, mode, got)
				}
			}
		}
		// Reduced, where Landlock cannot keep files from being emptied, is none.
		for kernel, want := range map[string]string{"landlock=1": "NOT_SUPPORTED", "landlock=2": "NOT_SUPPORTED", "landlock=3": "", "landlock=5": "", "landlock=6": ""} {
			g.wrap = []string{programs(t) + "/oldkernel", kernel}
			a := g.run(job{Only: sandbox.Reduced, Spec: spec{Args: attempts(g, "truncate|"+g.secret, "truncate open|"+g.secret)}})
			if a.Code != want {
				t.Errorf("%s: %+v", kernel, a)
			}
			if want != "" {
				continue
			}
			for _, got := range got(t, a.Out) {
				if got != "EACCES" {
					t.Errorf("%s: %+v", kernel, a)
				}
			}
			if told := strings.Contains(strings.Join(a.Notes, " "), "signals"); told != (kernel != "landlock=6") {
				t.Errorf("%s: %q", kernel, a.Notes)
			}
		}
		// Before scopes the machine's abstract sockets are reached with its network, and it is said.
		g.wrap = []string{programs(t) + "/oldkernel", "landlock=5"}
		if a := g.run(job{Spec: spec{Args: []string{"/bin/true"}, Network: sandbox.Host}}); len(a.Notes) != 1 || a.Code != "" {
			t.Errorf("%+v", a)
		}
	})
}

// Case 78: a wall is missing, whichever: the helper says so with status 125 and the command does not run.
func TestCase78MissingWall(t *testing.T) {
	each(t, allOf, func(t *testing.T, g *ground) {
		walls := []string{"memory", "capabilities", "privileges", "landlock", "filter", "limits"}
		switch g.level {
		case sandbox.Full:
			walls = append(walls, "numbers", "mnt", "pid", "ipc", "uts", "net", "root", "cover", "loopback")
		case sandbox.Bwrap:
			walls = append(walls, "cover", "net")
		}
		for _, wall := range walls {
			if wall == "capabilities" && g.level == sandbox.Reduced && !g.root0 {
				continue // there are none
			}
			if g.level == sandbox.Bwrap && (wall == "capabilities" || wall == "privileges") {
				continue // bubblewrap has done it
			}
			g.put(g.root+"/.env", "x")
			g.give()
			j := sh("echo ran >ran; cat .env")
			j.Without = wall
			if g.level != sandbox.Reduced {
				j.Secrets = []string{g.root + "/.env"}
			}
			a := g.run(j)
			if a.Code != "NOT_SUPPORTED" && (a.Code != "CONFLICT" || wall != "cover") {
				t.Errorf("without %s: %+v", wall, a)
			}
			if _, err := os.Stat(g.root + "/ran"); err == nil || a.Out != "" {
				t.Errorf("without %s it ran: %s", wall, a.Out)
				os.Remove(g.root + "/ran")
			}
		}
		j := sh("true")
		j.Without = "nothing"
		g.ran(j)
	})
}

// The groups of the server stay with its commands, which may not put them down in a user
// namespace: what is mounted and a group may read, they can (residual).
func TestServerGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have others run with more groups")
	}
	each(t, allOf, func(t *testing.T, g *ground) {
		if g.root0 {
			return
		}
		const adm = 4
		for _, name := range []string{"shown", "private"} {
			g.put(g.dir+"/"+name+"/log", "for adm")
			must(t, os.Chown(g.dir+"/"+name+"/log", 0, adm))
			must(t, os.Chmod(g.dir+"/"+name+"/log", 0o640))
		}
		who := *g.who
		who.Groups = []uint32{adm}
		g.who = &who
		g.tries(job{Read: []string{g.dir + "/shown"}}, try{"read|" + g.dir + "/shown/log", "got for adm"}, try{"read|" + g.dir + "/private/log", g.by("ENOENT", "EACCES")})
	})
}
