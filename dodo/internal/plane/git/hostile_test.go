package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/plane/git"
)

// commandKeys are settings of git that make it run what they say.
var commandKeys = []string{
	"core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
	"pager.status", "pager.diff", "pager.log", "pager.config", "pager.version", "credential.helper", "credential.https://x.helper",
	"diff.external", "diff.evil.command", "diff.evil.textconv", "diff.ünï.command", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
	"filter.a=b.c.clean", "filter.a=b.c.process", "filter.lfs.process", "merge.evil.driver", "merge.tool", "mergetool.x.cmd", "difftool.x.cmd",
	"gpg.program", "gpg.ssh.program", "gpg.x509.program", "gpg.ssh.defaultKeyCommand", "sequence.editor", "interactive.diffFilter",
	"trailer.x.command", "trailer.x.cmd", "browser.x.cmd", "man.x.cmd", "help.browser", "web.browser", "instaweb.httpd", "guitool.x.cmd",
	"uploadpack.packObjectsHook", "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.vcs", "remote.origin.proxy",
	"hook.evil.command", "alias.status", "alias.diff", "alias.x", "sendemail.smtpServer", "imap.tunnel", "svn-remote.x.y", "futuresection.command", "futuresection.x.y",
}

// TestCommandsAreOverridden: every setting that is a command gets a value that runs nothing,
// and what is none keeps its own.
func TestCommandsAreOverridden(t *testing.T) {
	for _, key := range commandKeys {
		section, rest, _ := strings.Cut(key, ".")
		at := strings.LastIndexByte(rest, '.') + 1
		key = strings.ToLower(section) + "." + rest[:at] + strings.ToLower(rest[at:])
		if key == "merge.tool" { // names a section, whose commands are overridden
			continue
		}
		value, is := git.Harmless(key)
		if !is || value != "" && value != "false" && value != "cat" && value != ":" {
			t.Errorf("%s: %q, %v", key, value, is)
		}
	}
	for key, want := range map[string]string{"core.hookspath": "/dev/null", "submodule.x.update": "none", "filter.lfs.required": "false"} {
		if value, is := git.Harmless(key); !is || value != want {
			t.Errorf("%s: %q, %v", key, value, is)
		}
	}
	for _, key := range []string{
		"core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.repositoryformatversion", "core.worktree", "core.excludesfile", "core.sparsecheckout",
		"core.fsmonitorhookversion", "core.bigfilethreshold", "extensions.objectformat", "branch.main.merge", "branch.main.remote", "remote.origin.url", "remote.origin.fetch",
		"diff.algorithm", "diff.evil.xfuncname", "diff.renamelimit", "user.name", "user.email", "submodule.x.url", "status.renames", "include.path", "includeif.gitdir:x.path",
		"gpg.format", "protocol.ext.allow", "commit.cleanup", "clean.requireforce", "index.threads", "pack.threads", "url.x.insteadof",
	} {
		if value, is := git.Harmless(key); is {
			t.Errorf("%s: %q", key, value)
		}
	}
}

// hostile plants every way that a repository has to run something. The marker is made by what
// runs.
func hostile(w *world) (marker string) {
	w.t.Helper()
	marker = w.home.Path("marker")
	evil := w.home.Path("evil")
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>'%s'\ncat 2>/dev/null\nexit 0\n", marker)
	if err := os.WriteFile(evil, []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.root, ".git")
	var b strings.Builder
	for _, key := range commandKeys {
		section, rest, _ := strings.Cut(key, ".")
		at := strings.LastIndexByte(rest, '.')
		if at < 0 {
			fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, rest, evil)
		} else {
			fmt.Fprintf(&b, "[%s \"%s\"]\n\t%s = %s\n", section, rest[:at], rest[at+1:], evil)
		}
	}
	fmt.Fprintf(&b, "[alias]\n\tversion = !%[1]s\n\trev-parse = !%[1]s\n", evil)
	fmt.Fprintf(&b, "[core]\n\thooksPath = %s\n\tattributesFile = %s\n", w.home.Path("hooks"), w.home.Path("attributes"))
	b.WriteString("[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n[filter \"evil\"]\n\trequired = true\n[filter \"lfs\"]\n\trequired = true\n")
	b.WriteString("[diff]\n\tsubmodule = diff\n[status]\n\tsubmoduleSummary = true\n[submodule]\n\trecurse = true\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n")
	fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = ext::%s\n\tpromisor = true\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[extensions]\n\tpartialClone = origin\n", evil)
	b.WriteString("[hook \"evil\"]\n\tevent = pre-commit\n\tevent = reference-transaction\n\tevent = post-index-change\n[gc]\n\tauto = 1\n[include]\n\tpath = included\n")
	b.WriteString("[extensions]\n\tworktreeConfig = true\n[includeIf \"onbranch:main\"]\n\tpath = onbranch\n[includeIf \"gitdir:**\"]\n\tpath = ongitdir\n")
	fmt.Fprintf(&b, "[filter \"\"]\n\tclean = %[1]s\n[diff \"\"]\n\tcommand = %[1]s\n[filter.old]\n\tclean = %[1]s\n[filter \"CASE\"]\n\tclean = %[1]s\n", evil)
	included := fmt.Sprintf("[core]\n\tfsmonitor = %[1]s\n[filter \"inc\"]\n\tclean = %[1]s\n\tprocess = %[1]s\n[include]\n\tpath = again\n", evil)
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		w.t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "config"), strings.Replace(string(config), "repositoryformatversion = 0", "repositoryformatversion = 1", 1)+b.String())
	put(filepath.Join(dir, "included"), included)
	put(filepath.Join(dir, "config.worktree"), fmt.Sprintf("[core]\n\tfsmonitor = %[1]s\n[filter \"wt\"]\n\tclean = %[1]s\n", evil))
	put(filepath.Join(dir, "onbranch"), fmt.Sprintf("[core]\n\tfsmonitor = %[1]s\n[filter \"ob\"]\n\tclean = %[1]s\n", evil))
	put(filepath.Join(dir, "ongitdir"), fmt.Sprintf("[core]\n\tfsmonitor = %[1]s\n[filter \"og\"]\n\tclean = %[1]s\n", evil))
	put(filepath.Join(dir, "again"), fmt.Sprintf("[filter \"again\"]\n\tclean = %s\n", evil))
	for _, hooks := range []string{filepath.Join(dir, "hooks"), w.home.Path("hooks")} {
		for _, h := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc", "post-checkout"} {
			put(filepath.Join(hooks, h), script)
		}
	}
	attributes := "*.txt filter=evil diff=evil merge=evil\n*.inc filter=inc\n*.again filter=again\n*.eq filter=a=b.c\n*.wt filter=wt\n*.ob filter=ob\n*.og filter=og\n*.old filter=old\n*.case filter=CASE\n*.none filter=\n*.lfs filter=lfs\n* diff=evil\n"
	w.write(".gitattributes", attributes)
	put(filepath.Join(dir, "info", "attributes"), "README filter=evil diff=evil\n")
	put(w.home.Path("attributes"), "* filter=evil\n")
	return marker
}

// Case 51: a repository names programs in every kind of configuration, in attributes, hooks and a submodule: git runs none of them, not even without walls.
//
// TestHostileRepository: whatever a repository's configuration, attributes, hooks and
// submodules say, reading and committing run none of it. A last step shows that plain git does.
func TestHostileRepository(t *testing.T) {
	w := repo(t)
	w.git.Unwalled() // behind walls a program could not leave its mark
	shapes["submodule"](w)
	w.write("sub/file", "first\n")
	w.run("-C", "sub", "add", "file")
	w.run("-C", "sub", "commit", "-qm", "file")
	for _, n := range []string{"a.txt", "b.inc", "c.again", "d.eq", "e.lfs", "f.wt", "g.ob", "h.og", "i.old", "j.case", "k.none"} {
		w.write(n, "first\n")
	}
	w.run("add", ".")
	w.run("commit", "-qm", "files")
	w.run("-C", "sub", "commit", "-q", "--allow-empty", "-m", "more")
	w.run("init", "-q", "nested")
	w.write("nested/file", "x\n")
	w.run("-C", "nested", "add", "file")
	w.run("-C", "nested", "config", "core.fsmonitor", w.home.Path("evil"))
	w.run("remote", "add", "origin", "x")
	w.run("update-ref", "refs/remotes/origin/main", "HEAD")
	w.run("config", "branch.main.remote", "origin")
	w.run("config", "branch.main.merge", "refs/heads/main")
	marker := hostile(w)
	// The submodule has a hostile configuration of its own.
	sub := filepath.Join(w.root, ".git/modules/sub/config")
	config, err := os.ReadFile(sub)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sub, []byte(string(config)+"[core]\n\tfsmonitor = "+w.home.Path("evil")+"\n[filter \"subevil\"]\n\tclean = "+w.home.Path("evil")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a.txt", "b.inc", "c.again", "d.eq", "e.lfs", "f.wt", "g.ob", "h.og", "i.old", "j.case", "k.none", "README", "new.txt", "sub/dirty"} {
		w.write(n, "other\n") // as long as before: git has to look at the content
	}
	w.write("sub/file", "other\n")
	w.write("sub/.gitattributes", "* filter=subevil\n")
	none := func(after string) {
		t.Helper()
		if out, err := os.ReadFile(marker); err == nil {
			t.Fatalf("after %s: something was run:\n%s", after, out)
		}
	}
	steps := []struct {
		name string
		args args
	}{
		{"git_status", args{}}, {"git_diff", args{}}, {"git_diff", args{"staged": true}}, {"git_diff", args{"paths": []string{"a.txt", "sub"}}},
		{"git_log", args{}}, {"git_log", args{"path": "a.txt"}},
	}
	for _, s := range steps {
		w.must(s.name, s.args)
		none(s.name)
	}
	if _, err := w.call("git_commit", args{"message": "x", "paths": []string{"a.txt"}}); err == nil {
		t.Error("a file that goes through a filter was added without it")
	}
	none("a refused commit")
	// .git/info/attributes has README go through a filter, too.
	if err := os.Remove(filepath.Join(w.root, ".git/info/attributes")); err != nil {
		t.Fatal(err)
	}
	c := w.must("git_commit", args{"message": "by dodo", "paths": []string{"README", ".gitattributes", "sub", "nested"}})
	none("git_commit")
	if c.m["filesChanged"] != 3.0 {
		t.Errorf("%v", c.m)
	}
	if !has(c.warnings, "hooks of the repository were not run") || !has(c.warnings, "not signed") {
		t.Errorf("%q", c.warnings)
	}
	if _, err := w.try("status"); err == nil {
		if _, err := os.Stat(marker); err != nil {
			t.Error("plain git runs nothing here: the test shows nothing")
		}
	}
}

// TestHostileMissingObject: an object that is not there is not fetched.
func TestHostileMissingObject(t *testing.T) {
	w := repo(t)
	w.git.Unwalled() // behind walls a program could not leave its mark
	w.write("README", "second\n")
	w.run("commit", "-qam", "second")
	id := strings.TrimSpace(w.run("rev-parse", "HEAD:README"))
	marker := hostile(w)
	if err := os.Remove(filepath.Join(w.root, ".git/objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	w.write("README", "third\n")
	for _, name := range []string{"git_status", "git_diff", "git_log"} {
		_, _ = w.call(name, args{})
	}
	if out, err := os.ReadFile(marker); err == nil {
		t.Errorf("something was run:\n%s", out)
	}
}

// TestTooManyCommands: a configuration that would make an environment without bounds is refused.
func TestTooManyCommands(t *testing.T) {
	w := repo(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "[filter \"f%d\"]\n\tclean = x\n", i)
	}
	config, _ := os.ReadFile(filepath.Join(w.root, ".git/config"))
	w.write(".git/config", string(config)+b.String())
	w.refused("RESOURCE_LIMIT", "git_status", args{})
}
