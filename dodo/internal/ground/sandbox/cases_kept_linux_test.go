package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// found is a job whose workspace is looked through as dodo does it.
func found(script string) job {
	j := sh(script)
	j.Find = true
	return j
}

// git runs git as the owner, outside of the walls.
func (g *ground) git(dir string, args ...string) {
	g.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		g.t.Skip("git is not installed")
	}
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always"}
	if out, err := c.CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v %s", args, err, out)
	}
}

// unwritten wants the word in none of a repository's files that name programs.
func (g *ground) unwritten(what string, a answer, dirs ...string) {
	g.t.Helper()
	for _, dir := range dirs {
		must(g.t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "evil") {
				g.t.Errorf("%s: %s has %q %v; %+v", what, path, text, err, a)
			}
			return nil
		}))
	}
}

// Case 101: a command takes the server's permission for a directory with secrets away, and the next gives it back: they are not seen.
func TestCase101ClosedDirectories(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		for _, mode := range []string{"000", "111", "300", "444", "644"} {
			sub := g.root + "/sub" + mode
			g.put(sub+"/.env", "a secret")
			g.put(sub+"/deep/.ssh/id", "a secret")
			g.give()
			name := filepath.Base(sub)
			g.ran(found("chmod " + mode + " " + name))
			a := g.ran(found("chmod 755 " + name + "; ls " + name + "; cat " + name + "/.env " + name + "/deep/.ssh/id; rm -rf " + name + "; mv " + name + " away; cat away/.env; true"))
			if strings.Contains(a.Out, "a secret") || a.Exit.Code != 0 {
				t.Errorf("%s: %+v", mode, a)
			}
			if !g.root0 && !strings.Contains(strings.Join(a.Notes, "\n"), `"`+name+`"`) {
				t.Errorf("%s: it is not said: %q", mode, a.Notes)
			}
			must(t, os.Chmod(sub, 0o755))
			if text, err := os.ReadFile(sub + "/.env"); string(text) != "a secret" {
				t.Error(err)
			}
			must(t, os.RemoveAll(sub))
		}
	})
}

// Case 101: a command takes the permission for the workspace itself away: the next says what the owner is to do.
func TestCase101ClosedWorkspace(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		for _, mode := range []string{"300", "444", "000"} {
			j := found("chmod " + mode + " .")
			j.Times = 2
			s := g.serve(j)
			if a := s.last(); a.Code != "" {
				t.Fatalf("%+v", a)
			}
			if a := s.last(); !g.root0 && (a.Code != "PATH_DENIED" || !strings.Contains(a.Text, "the workspace's own directory")) || g.root0 && a.Code != "" && a.Code != "PATH_DENIED" {
				t.Errorf("%s: %+v", mode, a)
			}
			must(t, os.Chmod(g.root, 0o755))
		}
	})
}

// Case 101: a command moves a directory with secrets to where file tools do not look: they are not seen.
func TestCase101SecretsAside(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		for _, place := range []string{"a/.git", "a/.git/refs/heads", "a/.git/logs", "a/.dodo-x-0123456789abcdef", "a/git~1", "bare/refs", "bare/objects/ab"} {
			must(t, os.RemoveAll(g.root+"/a"))
			g.put(g.root+"/sub/.env", "a secret")
			g.put(g.root+"/sub/.aws/x", "a secret")
			g.repository(g.root + "/bare")
			g.ran(found("mkdir -p " + place + "; mv sub " + place))
			if a := g.ran(found("find . -name .env | grep . && cat " + place + "/sub/.env " + place + "/sub/.aws/x; true")); strings.Contains(a.Out, "a secret") || !strings.Contains(a.Out, ".env") {
				t.Errorf("%s: %+v", place, a)
			}
			must(t, os.RemoveAll(g.root+"/"+place+"/sub"))
			must(t, os.RemoveAll(g.root+"/bare"))
		}
	})
}

// A branch with the name of a secret file is a branch.
func TestBranchesWithSecretNames(t *testing.T) {
	each(t, atFull, func(t *testing.T, g *ground) {
		g.git(g.root, "init", "-q", ".")
		g.git(g.root, "add", "file")
		g.git(g.root, "commit", "-qm", "x")
		g.git(g.root, "checkout", "-qb", "fix/secrets.yml")
		g.git(g.root, "tag", "v/id_rsa")
		g.give()
		if a := g.ran(found("git -c safe.directory='*' log -1 --format=%D; git -c safe.directory='*' reflog | wc -l")); !strings.Contains(a.Out, "fix/secrets.yml") || !strings.Contains(a.Out, "v/id_rsa") || a.Hidden > 0 {
			t.Errorf("%+v", a)
		}
	})
}

// Case 102: a command closes a git directory or a directory in it, and the next opens it and writes what git obeys: it cannot.
func TestCase102ClosedGit(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		for _, at := range []string{".git", "n/.git", "n", ".git/modules", ".git/modules/m", ".git/hooks", ".git/info"} {
			for _, mode := range []string{"000", "111", "300", "444", "555"} {
				for _, dir := range []string{".git", "n/.git", ".git/modules/m"} {
					g.repository(g.root + "/" + dir)
				}
				g.ran(found("chmod " + mode + " " + at))
				a := g.ran(found("chmod 755 " + at + "; for d in .git n/.git .git/modules/m; do for f in config config.worktree commondir hooks/pre-commit info/attributes; do echo evil >>$d/$f; done; done; true"))
				must(t, os.Chmod(g.root+"/"+at, 0o755))
				g.unwritten(at+" "+mode, a, g.root)
				must(t, os.RemoveAll(g.root+"/.git"))
				must(t, os.RemoveAll(g.root+"/n"))
			}
		}
	})
}

// Case 102: a command writes to a bare repository, one that a pointer file names, and one whose HEAD it moved away before: refused.
func TestCase102GitByShape(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		g.repository(g.root + "/bare.git")
		g.repository(g.root + "/x/gg")
		g.put(g.root+"/sep/.git", "gitdir: "+g.root+"/x/gg\n")
		g.give()
		write := "for d in bare.git x/gg; do for f in config config.worktree commondir hooks/pre-commit hooks/new info/attributes; do echo evil >>$d/$f; done; mv $d/config $d/c; mv $d/hooks $d/h; mv $d/info $d/i; mv $d $d.old; mv $d/objects $d/o; mv $d/refs $d/r; done; true"
		a := g.ran(found(write))
		g.unwritten("at once", a, g.root)
		g.ran(found("for d in bare.git x/gg; do mv $d/HEAD $d/H; mv $d/objects $d/o; mv $d/refs $d/r; done; true"))
		a = g.ran(found(write))
		g.unwritten("without HEAD", a, g.root)
		for _, name := range []string{"bare.git/H", "x/gg/H", "bare.git/objects", "x/gg/refs", "bare.git/config", "x/gg/hooks"} {
			if _, err := os.Stat(g.root + "/" + name); err != nil {
				t.Error(err)
			}
		}
	})
}

// Case 102: a command redirects submodules and linked worktrees by what is above their directories: refused.
func TestCase102GitFamily(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		modules := []string{".git/modules/m", ".git/modules/third/party/lib/deep", ".git/modules/m/modules/inner"}
		g.repository(g.root + "/.git")
		for _, dir := range modules {
			g.repository(g.root + "/" + dir)
		}
		for name, text := range map[string]string{"HEAD": "ref: refs/heads/w\n", "commondir": "../..\n", "gitdir": g.root + "/wt/.git\n"} {
			g.put(g.root+"/.git/worktrees/wt/"+name, text)
		}
		g.put(g.root+"/wt/.git", "gitdir: "+g.root+"/.git/worktrees/wt\n")
		g.give()
		var moves []try
		for _, dir := range []string{"modules", "worktrees", "modules/third", "modules/third/party/lib", "modules/m/modules", "modules/m", "worktrees/wt", "info"} {
			moves = append(moves, try{"rename|" + g.root + "/.git/" + dir + "|" + g.root + "/.git/aside", "EBUSY|EXDEV"})
		}
		g.tries(job{Find: true}, moves...)
		a := g.ran(found("for d in " + strings.Join(modules, " ") + " .git/worktrees/wt; do for f in config config.worktree commondir hooks/x; do echo evil >>$d/$f; done; done; echo evil >wt/.git; echo evil >>.git/worktrees/wt/gitdir; " +
			"mkdir .git/worktrees/new .git/modules/new && rmdir .git/worktrees/new .git/modules/new && echo can"))
		if a.Exit.Code != 0 || !strings.Contains(a.Out, "can\n") {
			t.Errorf("%+v", a)
		}
		g.unwritten("family", a, g.root+"/.git", g.root+"/wt")
	})
}

// git works for a command in a repository with a submodule and a linked worktree, and nobody is told of it.
func TestGitWorksGuarded(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		g.git(g.dir, "init", "-q", "other")
		g.git(g.dir+"/other", "commit", "-q", "--allow-empty", "-m", "x")
		g.git(g.root, "init", "-q", ".")
		g.git(g.root, "submodule", "--quiet", "add", g.dir+"/other", "deep/mod")
		g.git(g.root, "commit", "-qm", "x")
		g.git(g.root, "worktree", "add", "-q", "wt", "-b", "w")
		g.git(g.root, "init", "-q", "--bare", "bare.git")
		g.give()
		a := g.ran(found("export HOME=/tmp GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e; set -e; printf '[safe]\\n\\tdirectory = *\\n[user]\\n\\tname = n\\n\\temail = e\\n' >/tmp/.gitconfig; " +
			"git add file; git commit -qm one; git checkout -qb other; git stash list; git tag t; git gc -q; git worktree add -q wt2 -b w2; git worktree list | wc -l; " +
			"cd deep/mod; echo x >y; git add y; git commit -qm two; cd ../../wt; echo x >y; git add y; git commit -qm three; git push -q ../bare.git HEAD:refs/heads/pushed; cd ..; git -C bare.git gc -q; git fsck"))
		if a.Exit.Code != 0 || !strings.HasPrefix(a.Out, "3\n") {
			t.Errorf("%+v", a)
		}
		if notes := strings.Join(a.Exit.Notes, "\n"); len(a.Exit.Notes) != 2 || strings.Count(notes, "a repository was made") != 2 || !strings.Contains(notes, `".git/worktrees/wt2"`) {
			t.Error(notes)
		}
	})
}

// Case 103: a command makes so many repositories that not all can be guarded: the workspace's own still is, and those that are too many look empty.
func TestCase103ManyRepositories(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		for _, dir := range []string{".git", "zz/a/b/c/d/.git", ".git/modules/m"} {
			g.repository(g.root + "/" + dir)
		}
		g.ran(found("for i in $(seq 1 250); do mkdir -p '!'/$i/.git/hooks '!'$i/.git/objects '!'$i/.git/refs; echo x >'!'/$i/.git/HEAD; echo x >'!'$i/.git/HEAD; done"))
		a := g.ran(found("for d in .git zz/a/b/c/d/.git .git/modules/m; do for f in config config.worktree commondir hooks/x; do echo evil >>$d/$f; done; done; mv zz/a/b/c/d/.git zz/x; echo y >.git/index; true"))
		g.unwritten("beyond", a, g.root+"/.git", g.root+"/zz")
		if notes := strings.Join(a.Notes, "\n"); !strings.Contains(notes, "git directories") {
			t.Errorf("%q", a.Notes)
		}
		if text, err := os.ReadFile(g.root + "/.git/index"); string(text) != "y\n" {
			t.Error(err)
		}
	})
}

// Case 104: a command gives directories names that are not UTF-8, and makes them too deep for a path: what is in them is hidden, and commands run on.
func TestCase104NamesOfBytes(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		bad := g.root + "/bad\xff"
		g.put(bad+"/.env", "a secret")
		g.put(bad+"/plain", "not one")
		g.repository(bad + "/\xfe.git")
		g.give()
		a := g.ran(found("cat bad*/.env bad*/plain; echo evil >>$(echo bad*/*.git)/config; cd bad*; pwd"))
		if strings.Contains(a.Out, "a secret") || !strings.Contains(a.Out, "not one") || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		g.unwritten("bytes", a, bad)
		// Arguments and variables too.
		j := found("printf %s \"$X$1\"")
		j.Spec.Args = append(j.Spec.Args, "sh", "a\xffb")
		if a := g.ran(j); !strings.Contains(a.Out, "a\xffb") {
			t.Logf("the test's own messages are text: %q", a.Out)
		}
		// The test makes it step by step: no path leads there.
		deep := "d=$(printf %0200d 0); for i in $(seq 1 30); do mkdir $d; cd $d; done; echo 'a secret' >.env; git init -q . 2>/dev/null; true"
		g.ran(found(deep))
		a = g.ran(found("d=$(printf %0200d 0); for i in $(seq 1 30); do cd $d || break; done; cat .env; true"))
		if strings.Contains(a.Out, "a secret") || a.Exit.Code != 0 || !strings.Contains(strings.Join(a.Notes, ""), "look empty") {
			t.Errorf("%+v", a)
		}
		a = g.ran(found("rm -rf 0*; for i in $(seq 1 600); do mkdir d; cd d; done; echo 'a secret' >.env"))
		a = g.ran(found("find . -name .env -exec cat {} +; true"))
		if strings.Contains(a.Out, "a secret") || a.Exit.Code != 0 {
			t.Errorf("%+v", a)
		}
		must(t, os.RemoveAll(g.root))
	})
}

// What is told of repositories is what happened to them: not each of their files.
func TestChangedRepositories(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		g.repository(g.root + "/.git")
		g.repository(g.root + "/z/n/.git")
		g.put(g.root+"/.git/modules/m/logs/HEAD", "")
		told := func(script string, want ...string) {
			t.Helper()
			a := g.ran(found(script))
			if got := strings.Join(a.Exit.Notes, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("%s:\n%s\nwant\n%s", script, got, strings.Join(want, "\n"))
			}
		}
		told("true")
		told("mv z y", `a repository was moved while the command ran: "z/n/.git" is "y/n/.git" now`)
		told("mv y z; mkdir -p y/n/.git; touch y/n/.git/config",
			`a repository was moved while the command ran: "y/n/.git" is "z/n/.git" now`, `another repository is in its place since the command ran: "y/n/.git"`)
		told("mkdir -p .vscode; for i in $(seq 1 30); do echo >.vscode/$i; done; mkdir -p new/.git", append(func() (list []string) {
			for _, n := range strings.Fields("1 10 11 12 13 14 15 16 17 18 19 2 20 21 22 23 24 25 26 27") {
				list = append(list, `a file that other programs obey was changed while the command ran: ".vscode/`+n+`"`)
			}
			return list
		}(), "and 11 more changes of this kind")...)
		if !g.root0 {
			told("chmod 000 .git", `a repository can no longer be looked into, by the permissions it has since the command ran: ".git"`)
			must(t, os.Chmod(g.root+"/.git", 0o755))
		}
	})
}

// Case 105: a command connects to a socket file of a server of this machine in a directory that it may read: refused, and said.
func TestCase105SocketToRead(t *testing.T) {
	each(t, walled, func(t *testing.T, g *ground) {
		tools := g.dir + "/tools"
		g.put(tools+"/lib/file", "a tool")
		l, err := net.Listen("unix", tools+"/lib/agent")
		must(t, err)
		defer l.Close()
		must(t, os.Chmod(tools+"/lib/agent", 0o777))
		must(t, os.Symlink("tools", g.dir+"/linked"))
		g.give()
		for _, dir := range []string{tools, g.dir + "/linked"} {
			a := g.tries(job{Read: []string{dir}}, try{"dial|unix|" + dir + "/lib/agent", "ECONNREFUSED|EACCES"}, try{"read|" + dir + "/lib/file", "got a tool"})
			if !strings.Contains(strings.Join(a.Notes, ""), "/lib/agent") {
				t.Errorf("%q", a.Notes)
			}
		}
	})
}
