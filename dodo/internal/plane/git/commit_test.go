package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/plane/git"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// last is what the last commit changed, as "A path".
func (w *world) last() (lines []string) {
	w.t.Helper()
	f := strings.Split(w.run("-c", "diff.orderFile=/dev/null", "show", "--format=", "--name-status", "--no-renames", "-z", "--root", "HEAD"), "\x00")
	for i := 0; i+1 < len(f); i += 2 {
		lines = append(lines, f[i]+" "+f[i+1])
	}
	return lines
}

// sound fails when git finds the repository in another state than after its own commit: sound
// objects, no lock, and an index that agrees with the commit but for what is named.
func (w *world) sound(leftStaged ...string) {
	w.t.Helper()
	if out, err := w.try("fsck", "--strict"); err != nil {
		w.t.Errorf("fsck: %v: %s", err, out)
	}
	var staged []string
	for _, line := range strings.Split(strings.TrimSpace(w.run("-c", "diff.orderFile=/dev/null", "diff", "--cached", "--name-only")), "\n") {
		if line != "" {
			staged = append(staged, line)
		}
	}
	if !slices.Equal(staged, leftStaged) {
		w.t.Errorf("staged: %q, want %q", staged, leftStaged)
	}
	dir := strings.TrimSpace(w.run("rev-parse", "--absolute-git-dir"))
	names, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range names {
		if strings.HasSuffix(e.Name(), ".lock") || e.Name() == "SQUASH_MSG" || strings.HasPrefix(e.Name(), "dodo-candidate") {
			w.t.Errorf("%s is left", e.Name())
		}
	}
}

// TestCommit goes through the ways to say what is committed.
func TestCommit(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world)
		args   args
		want   []string
		staged []string
		warns  string
	}{
		"what is staged": {
			func(w *world) { w.write("a", "a\n"); w.write("b", "b\n"); w.run("add", "a") },
			args{}, []string{"A a"}, nil, "",
		},
		"staged, then changed again": {
			func(w *world) { w.write("README", "x\n"); w.run("add", "README"); w.write("README", "y\n") },
			args{}, []string{"M README"}, nil, "",
		},
		"named": {
			func(w *world) { w.write("a", "a\n"); w.write("b", "b\n") },
			args{"paths": []string{"a", "README"}}, []string{"A a"}, nil, "at 1 of the paths nothing",
		},
		"a named directory": {
			func(w *world) {
				w.write("d/a", "a\n")
				w.write("d/.env", "b\n")
				w.write("d/e/f", "b\n")
				w.write("dd", "")
			},
			args{"paths": []string{"./d/"}}, []string{"A d/a", "A d/e/f"}, nil, "1 files were left out",
		},
		"all": {
			func(w *world) {
				w.write("new", "a\n")
				w.write(".env", "SECRET=1\n")
				w.write("ig.o", "")
				w.write(".gitignore", "*.o\n")
				os.Remove(filepath.Join(w.root, "README"))
				os.Symlink("new", filepath.Join(w.root, "link"))
				w.run("init", "-q", "nested")
				w.write("nested/x", "")
			},
			args{"all": true}, []string{"A .gitignore", "D README", "A link", "A new"}, nil, "1 other repositories",
		},
		"the root as a path": {
			func(w *world) { w.write("new", "a\n"); w.write("d/e", "a\n") },
			args{"paths": []string{"."}}, []string{"A d/e", "A new"}, nil, "",
		},
		"a file in the place of a directory": {
			func(w *world) {
				w.write("d/a", "a\n")
				w.run("add", ".")
				w.run("commit", "-qm", "d")
				os.RemoveAll(filepath.Join(w.root, "d"))
				w.write("d", "file\n")
			},
			args{"all": true}, []string{"A d", "D d/a"}, nil, "",
		},
		"a directory in the place of a file": {
			func(w *world) {
				os.Remove(filepath.Join(w.root, "README"))
				w.write("README/x", "x\n")
			},
			args{"all": true}, []string{"D README", "A README/x"}, nil, "",
		},
		"odd names": {
			func(w *world) {
				for _, n := range []string{"-x", "--all", ":(top)y", "*", "new\nline", `"quoted"`, `back\slash`, "ünï", "tab\t", "cr\r"} {
					w.write(n, n)
				}
			},
			args{"all": true},
			[]string{`A "quoted"`, "A *", "A --all", "A -x", "A :(top)y", `A back\slash`, "A cr\r", "A new\nline", "A tab\t", "A ünï"}, nil, "",
		},
		"a star is a name": {
			func(w *world) { w.write("*", "x"); w.write("other", "x") },
			args{"paths": []string{"*"}}, []string{"A *"}, nil, "",
		},
		"intent to add": {
			func(w *world) { w.write("later", "x\n"); w.run("add", "-N", "later") },
			args{"paths": []string{"later"}}, []string{"A later"}, nil, "",
		},
		"staged as new and gone": {
			func(w *world) {
				w.write("brief", "x\n")
				w.run("add", "brief")
				os.Remove(filepath.Join(w.root, "brief"))
				w.write("README", "x\n")
			},
			args{"all": true}, []string{"M README"}, nil, "",
		},
		"crlf that is kept": {
			func(w *world) {
				w.write("crlf", "a\r\nb\r\n")
				w.run("-c", "core.autocrlf=false", "add", "crlf")
				w.run("commit", "-qm", "crlf")
				w.write(".gitattributes", "* text=auto\n")
				w.write("crlf", "a\r\nc\r\n")
				w.write("lf", "a\r\n")
			},
			args{"all": true}, []string{"A .gitattributes", "M crlf", "A lf"}, nil, "",
		},
		"a squashed merge": {
			func(w *world) {
				w.run("checkout", "-qb", "side")
				w.write("side", "s\n")
				w.run("add", ".")
				w.run("commit", "-qm", "side")
				w.run("checkout", "-q", "main")
				w.run("merge", "-q", "--squash", "side")
			},
			args{}, []string{"A side"}, nil, "",
		},
		"untracked cache": {
			func(w *world) { shapes["untracked cache"](w) },
			args{"all": true}, []string{"A n"}, nil, "",
		},
		"mode": {
			func(w *world) { os.Chmod(filepath.Join(w.root, "README"), 0o755) },
			args{"all": true}, []string{"M README"}, nil, "",
		},
		"unborn": {
			func(w *world) { shapes["unborn"](w); w.write("b", "b\n") },
			args{"all": true}, []string{"A README", "A b"}, nil, "",
		},
		"unborn without an index": {
			func(w *world) { shapes["unborn and nothing staged"](w) },
			args{"all": true}, []string{"A README"}, nil, "",
		},
		"sha256": {
			func(w *world) { shapes["sha256"](w); os.Symlink("x", filepath.Join(w.root, "l")) },
			args{"all": true}, []string{"M README", "A l"}, nil, "",
		},
		"detached":     {func(w *world) { shapes["detached"](w); w.write("n", "n") }, args{"all": true}, []string{"A n"}, nil, ""},
		"split index":  {func(w *world) { shapes["split index"](w); w.write("m", "m") }, args{"all": true}, []string{"A m", "A n"}, nil, ""},
		"sparse":       {func(w *world) { shapes["sparse"](w) }, args{"all": true}, []string{"M in/x"}, nil, ""},
		"a submodule":  {func(w *world) { shapes["submodule"](w) }, args{"paths": []string{"sub"}}, []string{"M sub"}, nil, ""},
		"renamed":      {func(w *world) { w.run("mv", "README", "new") }, args{}, []string{"D README", "A new"}, nil, ""},
		"configured":   {func(w *world) { shapes["configured"](w) }, args{"all": true}, []string{"M README", "A ü"}, nil, ""},
		"bad bytes":    {func(w *world) { w.write("bad\xff", "x") }, args{"all": true}, []string{"A bad\xff"}, nil, ""},
		"kept changes": {func(w *world) { w.write("README", "x\n"); w.write("b", "b\n") }, args{"paths": []string{"README"}}, []string{"M README"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repo(t)
			c.before(w)
			c.args["message"] = "  what  \n\n\n\nand why \n"
			a := w.must("git_commit", c.args)
			if got := w.last(); !slices.Equal(got, c.want) {
				t.Errorf("committed %q, want %q", got, c.want)
			}
			if got := w.run("log", "-1", "--format=%an <%ae> %cn %B"); got != "Ada Example <ada@example.com> Ada Example   what\n\nand why\n\n" {
				t.Errorf("%q", got)
			}
			if a.m["commit"] != strings.TrimSpace(w.run("rev-parse", "HEAD")) || a.m["subject"] != "  what" || a.m["filesChanged"] != float64(len(c.want)) {
				t.Errorf("%v", a.m)
			}
			if !has(a.warnings, c.warns) && c.warns != "" || c.warns == "" && len(a.warnings) > 0 {
				t.Errorf("warnings %q", a.warnings)
			}
			if got := w.run("reflog", "-1", "--format=%gs"); !strings.HasPrefix(got, "commit") {
				t.Errorf("reflog %q", got)
			}
			w.sound(c.staged...)
		})
	}
}

// TestCommitRefuses goes through what is not committed; afterwards nothing has changed.
func TestCommitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world)
		args   args
		code   fault.Code
	}{
		"nothing":               {func(*world) {}, args{}, contract.Conflict},
		"nothing at the path":   {func(w *world) { w.write("a", "") }, args{"paths": []string{"README"}}, contract.Conflict},
		"blank":                 {func(w *world) { w.write("a", "") }, args{"message": " \n\t\n", "all": true}, contract.InvalidInput},
		"paths and all":         {func(w *world) { w.write("a", "") }, args{"paths": []string{"a"}, "all": true}, contract.InvalidInput},
		"only secrets":          {func(w *world) { w.write(".env", "") }, args{"all": true}, contract.Conflict},
		"a staged secret":       {func(w *world) { w.write(".env", ""); w.write("a", ""); w.run("add", "-f", ".env") }, args{"paths": []string{"a"}}, contract.SecretPathDenied},
		"a secret by name":      {func(w *world) { w.write(".env", "") }, args{"paths": []string{".env"}}, contract.SecretPathDenied},
		"git's own":             {func(w *world) { w.write("a", "") }, args{"paths": []string{".git/config"}}, contract.PathDenied},
		"conflict":              {func(w *world) { shapes["conflict"](w) }, args{"all": true}, contract.Conflict},
		"an ignored path":       {func(w *world) { w.write("x.o", ""); w.write(".git/info/exclude", "*.o\n") }, args{"paths": []string{"x.o"}}, contract.Conflict},
		"no identity":           {func(w *world) { w.home.Write(w.t, ".gitconfig", "[user]\nemail = a@b\n"); w.write("a", "") }, args{"all": true}, contract.InvalidInput},
		"an identity of crumbs": {func(w *world) { w.run("config", "user.name", " <.> "); w.write("a", "") }, args{"all": true}, contract.InvalidInput},
		"a merge that is resolved": {func(w *world) {
			shapes["conflict"](w)
			w.write("README", "both\n")
			w.run("add", "README")
		}, args{}, contract.Conflict},
		"a cherry-pick": {func(w *world) {
			shapes["conflict"](w)
			w.run("merge", "--abort")
			_, _ = w.try("cherry-pick", "other")
			w.write("README", "both\n")
			w.run("add", "README")
		}, args{}, contract.Conflict},
		"a lock": {func(w *world) { w.write("a", ""); w.write(".git/index.lock", "") }, args{"all": true}, contract.Conflict},
		"an encoding that does not hold": {func(w *world) {
			w.write(".gitattributes", "*.u working-tree-encoding=UTF-16\n")
			w.write("x.u", "odd")
		}, args{"paths": []string{"x.u"}}, contract.Conflict},
		"a filter": {func(w *world) {
			w.write(".gitattributes", "*.big filter=lfs\n")
			w.write("x.big", "large\n")
		}, args{"all": true}, contract.NotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repo(t)
			c.before(w)
			if c.args["message"] == nil {
				c.args["message"] = "x"
			}
			head, index := w.run("rev-parse", "HEAD"), w.read(".git/index")
			f := w.refused(c.code, "git_commit", c.args)
			if strings.Contains(f.Error(), ".env") && name == "a staged secret" {
				t.Errorf("names it: %v", f)
			}
			if w.run("rev-parse", "HEAD") != head || w.read(".git/index") != index {
				t.Error("something has changed")
			}
			if name == "a lock" {
				if !f.Retryable {
					t.Error("not retryable")
				}
				if w.read(".git/index.lock") != "" {
					t.Error("the lock of another was taken")
				}
				os.Remove(filepath.Join(w.root, ".git/index.lock"))
			}
			if name != "conflict" && name != "a staged secret" && !strings.HasPrefix(name, "a merge") && !strings.HasPrefix(name, "a cherry") {
				w.sound()
			}
		})
	}
}

func (w *world) read(name string) string {
	data, err := os.ReadFile(filepath.Join(w.root, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(data)
}

// TestCommitIdentity: the repository's own name counts more than the owner's, and nothing that
// the owner's configuration includes is looked at.
func TestCommitIdentity(t *testing.T) {
	w := repo(t)
	w.home.Write(t, ".config/git/config", "[user]\nname = Older\n[commit]\ngpgSign = true\n")
	w.home.Write(t, ".gitconfig", "[user]\nname = Ada\nemail = ada@example.com\n[include]\npath = "+w.home.Write(t, "more", "[user]\nname = Included\n")+"\n")
	w.write("a", "a")
	if a := w.must("git_commit", args{"message": "x", "all": true}); !has(a.warnings, "not signed") {
		t.Errorf("%q", a.warnings)
	}
	if got := strings.TrimSpace(w.run("log", "-1", "--format=%an %ae")); got != "Ada ada@example.com" {
		t.Errorf("%q", got)
	}
	w.run("config", "user.name", "Own")
	w.write("a", "b")
	w.must("git_commit", args{"message": "x", "all": true})
	if got := strings.TrimSpace(w.run("log", "-1", "--format=%an %ae")); got != "Own ada@example.com" {
		t.Errorf("%q", got)
	}
}

// TestCommitWhatWasPreviewed: a commit is exactly what was previewed, or none.
func TestCommitWhatWasPreviewed(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"content":       func(w *world) { w.write("new", "other\n") },
		"another file":  func(w *world) { w.write("more", "x\n") },
		"a file less":   func(w *world) { os.Remove(filepath.Join(w.root, "new")) },
		"staged":        func(w *world) { w.write("README", "x\n"); w.run("add", "README") },
		"head":          func(w *world) { w.run("commit", "-q", "--allow-empty", "-m", "y") },
		"branch":        func(w *world) { w.run("checkout", "-qb", "other") },
		"kind":          func(w *world) { os.Remove(filepath.Join(w.root, "new")); os.Symlink("x", filepath.Join(w.root, "new")) },
		"staged secret": func(w *world) { w.write(".env", ""); w.run("add", "-f", ".env") },
		"a merge":       func(w *world) { w.write(".git/MERGE_HEAD", w.run("rev-parse", "HEAD")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repo(t)
			w.write("new", "content\n")
			p, err := w.act("git_commit", args{"message": "x", "all": true})
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := op.Encode(p.Preview)
			if !strings.Contains(string(raw), `"path":"new"`) || !strings.Contains(p.Summary, "1 files") || strings.Contains(p.Summary, "new") {
				t.Errorf("%s, %s", p.Summary, raw)
			}
			if same, err := w.act("git_commit", args{"message": "x", "all": true}); err != nil {
				t.Fatal(err)
			} else if other, _ := op.Encode(same.Preview); string(other) != string(raw) {
				t.Errorf("of the same commit the preview is another:\n%s\n%s", raw, other)
			}
			change(w)
			head := w.run("rev-parse", "HEAD")
			if _, err := p.Run(context.Background()); err == nil {
				t.Fatal("it was committed")
			}
			if w.run("rev-parse", "HEAD") != head {
				t.Error("HEAD has moved")
			}
			again, err := w.act("git_commit", args{"message": "x", "all": true})
			if err == nil {
				other, _ := op.Encode(again.Preview)
				if string(other) == string(raw) {
					t.Error("the preview is the same")
				}
			}
		})
	}
}

// TestCommitPreview: the owner sees the message, made visible, and whether hooks are left out.
func TestCommitPreview(t *testing.T) {
	w := repo(t)
	w.write("new", "content\n")
	p, err := w.act("git_commit", args{"message": "what\x1b[2J \u202eand\n\nwhy", "all": true, "noVerify": true})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := op.Encode(p.Preview)
	if !strings.Contains(string(raw), `"message":"what\\u{1b}[2J \\u{202e}and\n\nwhy"`) || !strings.Contains(string(raw), `"noVerify":true`) {
		t.Errorf("%s", raw)
	}
}

// TestCommitMeanwhile: what others do while a commit is made is never lost or covered.
func TestCommitMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		point string
		do    func(w *world)
		code  fault.Code // empty: the commit is made
		after func(w *world)
	}{
		"an index written without the lock": {"staged", func(w *world) {
			os.Remove(filepath.Join(w.root, ".git/index.lock"))
			w.write("other", "o\n")
			w.run("add", "other")
		}, contract.Conflict, func(w *world) { w.sound("other") }},
		"a lock that another has by then": {"swapped", func(w *world) {
			os.Remove(filepath.Join(w.root, ".git/index.lock"))
			w.write(".git/index.lock", "")
		}, "", func(w *world) {
			if _, err := os.Stat(filepath.Join(w.root, ".git/index.lock")); err != nil {
				w.t.Error("the lock of another was removed")
			}
			os.Remove(filepath.Join(w.root, ".git/index.lock"))
			w.sound()
		}},
		"a branch that moves": {"swapped", func(w *world) {
			w.run("update-ref", "HEAD", strings.TrimSpace(w.run("commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}")))
		}, contract.Conflict, func(w *world) { w.sound() }},
		"an index that comes first": {"staged", func(w *world) {}, "", func(w *world) { w.sound() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := repo(t)
			w.write("new", "n\n")
			w.serve(func(point string) error {
				if point == c.point {
					c.do(w)
				}
				return nil
			})
			if c.code == "" {
				w.must("git_commit", args{"message": "x", "all": true})
			} else if f := w.refused(c.code, "git_commit", args{"message": "x", "all": true}); !f.Retryable {
				t.Error("not retryable")
			}
			c.after(w)
		})
	}
}

// TestCommitFails: at whatever point it fails, the repository is as it was or has the commit;
// only when nobody can tell is something kept for the owner.
func TestCommitFails(t *testing.T) {
	broken := errors.New("broken")
	for _, unborn := range []bool{false, true} {
		for _, points := range []string{"staged", "swapped", "led", "led asked"} {
			t.Run(fmt.Sprint(points, unborn), func(t *testing.T) {
				w := repo(t)
				if unborn {
					shapes["unborn and nothing staged"](w)
				}
				w.write("new", "n\n")
				head, _ := w.try("rev-parse", "HEAD")
				index := w.read(".git/index")
				w.serve(func(point string) error {
					if strings.Contains(" "+points+" ", " "+point+" ") {
						return broken
					}
					return nil
				})
				_, err := w.call("git_commit", args{"message": "x", "paths": []string{"new"}})
				now, _ := w.try("rev-parse", "HEAD")
				switch points {
				case "staged", "swapped":
					if !errors.Is(err, broken) || now != head || w.read(".git/index") != index {
						t.Errorf("%v, %v", err, now)
					}
				case "led": // it was made: HEAD says so
					if err != nil || now == head {
						t.Errorf("%v, %v", err, now)
					}
				default:
					f := fault.From(err)
					kept, _ := f.Detail["kept"].(string)
					if f.Code != contract.RecoveryRequired || now == head || !unborn && w.read(".git/"+kept) != index {
						t.Errorf("%v %v, %v", err, f.Detail, now)
					}
				}
				w.serve(nil)
				if now == head {
					w.must("git_commit", args{"message": "x", "paths": []string{"new"}})
				}
				w.sound()
			})
		}
	}
}

// TestCommitCancelled: a call that is given up leaves the repository usable.
func TestCommitCancelled(t *testing.T) {
	for _, wait := range []time.Duration{0, 5, 20, 35, 50, 65, 80, 100, 130, 170} {
		w := repo(t)
		w.write("new", "n\n")
		p, err := w.act("git_commit", args{"message": "x", "all": true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait*time.Millisecond)
		_, err = p.Run(ctx)
		cancel()
		made := !strings.HasPrefix(w.run("log", "--format=%s"), "first")
		if made != (err == nil) {
			t.Errorf("after %d ms: made %v, %v", wait, made, err)
		}
		if !made {
			w.must("git_commit", args{"message": "x", "all": true})
		}
		w.sound()
	}
}

// TestCommitOnce: of many commits at once each is made or refused, and none is lost.
func TestCommitOnce(t *testing.T) {
	w := repo(t)
	const n = 6
	results := make(chan error, n)
	for i := range n {
		w.write(fmt.Sprintf("f%d", i), "x\n")
		go func() {
			_, err := w.call("git_commit", args{"message": fmt.Sprint("commit ", i), "paths": []string{fmt.Sprintf("f%d", i)}})
			results <- err
		}()
	}
	made := 1
	for range n {
		err := <-results
		if err == nil {
			made++
		} else if !errors.Is(err, contract.Conflict) {
			t.Error(err)
		}
	}
	if got := strings.Count(w.run("log", "--format=%h"), "\n"); got != made {
		t.Errorf("%d commits, want %d", got, made)
	}
	w.sound()
}

// TestHooks: they run only where the owner lets them, in the order and with what git gives
// them.
func TestHooks(t *testing.T) {
	on := func(c *git.Config) { c.Hooks = git.HooksSandbox }
	hook := func(w *world, name, text string) {
		w.write(".git/hooks/"+name, "#!/bin/sh\n"+text)
		if err := os.Chmod(filepath.Join(w.root, ".git/hooks", name), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	w := repo(t, on)
	out := filepath.Join(w.root, ".git", "out") // hooks see nothing else
	hook(w, "pre-commit", "echo pre $# $GIT_AUTHOR_NAME >>'"+out+"'; echo made >made; git add 'm?de'\n")
	hook(w, "prepare-commit-msg", "echo prepare $2 >>'"+out+"'; echo 'x: ' >\"$1.new\"; cat \"$1\" >>\"$1.new\"; mv \"$1.new\" \"$1\"\n")
	hook(w, "commit-msg", "echo msg >>'"+out+"'; tr a-z A-Z <\"$1\" >\"$1.new\"; mv \"$1.new\" \"$1\"\n")
	hook(w, "post-commit", "echo post $(git log -1 --format=%s) >>'"+out+"'\n")
	hook(w, "reference-transaction", "echo no >>'"+out+"'\n")
	w.write("a", "a\n")
	p, err := w.act("git_commit", args{"message": "words", "all": true})
	if err != nil || !strings.Contains(p.Summary, "4 hooks") {
		t.Fatal(p.Summary, err)
	}
	a := w.must("git_commit", args{"message": "words", "all": true})
	if got := w.last(); !slices.Equal(got, []string{"A a", "A made"}) || a.m["filesChanged"] != 2.0 || a.m["subject"] != "X: WORDS" {
		t.Errorf("%q, %v", got, a.m)
	}
	data, _ := os.ReadFile(out)
	if string(data) != "pre 0 Ada Example\nprepare message\nmsg\npost X: WORDS\n" {
		t.Errorf("%s", data)
	}
	w.sound()

	hook(w, "pre-commit", "echo not so >&2; exit 1\n")
	w.write("a", "b\n")
	f := w.refused(contract.Conflict, "git_commit", args{"message": "words", "all": true})
	if f.Detail["output"] != "not so" {
		t.Errorf("%v", f.Detail)
	}
	w.sound()
	hook(w, "prepare-commit-msg", "exit 0\n")
	a = w.must("git_commit", args{"message": "words", "all": true, "noVerify": true})
	if a.m["subject"] != "words" {
		t.Errorf("%v", a.m)
	}
	hook(w, "pre-commit", "echo x >.env; git add -f .env\n")
	w.write("a", "c\n")
	w.refused(contract.SecretPathDenied, "git_commit", args{"message": "words", "all": true})
	w.sound()
	hook(w, "pre-commit", "git reset -q\n")
	w.refused(contract.Conflict, "git_commit", args{"message": "words", "all": true})

	w.serve(nil)
	p, err = w.act("git_commit", args{"message": "off", "all": true})
	if err != nil || strings.Contains(p.Summary, "hooks") {
		t.Error(p.Summary, err)
	}
	a = w.must("git_commit", args{"message": "off", "all": true})
	if !has(a.warnings, "up to 4 hooks of the repository were not run") {
		t.Errorf("%q", a.warnings)
	}
}

// TestHooksElsewhere: a configured directory of hooks is used, one out of reach is not looked at.
func TestHooksElsewhere(t *testing.T) {
	w := repo(t, func(c *git.Config) { c.Hooks = git.HooksSandbox })
	w.write("tools/hooks/commit-msg", "#!/bin/sh\necho own >\"$1\"\n")
	os.Chmod(filepath.Join(w.root, "tools/hooks/commit-msg"), 0o755)
	w.run("config", "core.hooksPath", "tools/hooks")
	if a := w.must("git_commit", args{"message": "x", "all": true}); a.m["subject"] != "own" {
		t.Errorf("%v", a.m)
	}
	w.run("config", "core.hooksPath", "/net/nowhere.example/hooks")
	w.write("a", "a")
	p, err := w.act("git_commit", args{"message": "x", "all": true})
	if err != nil || !strings.Contains(p.Summary, "4 hooks") {
		t.Error(p.Summary, err)
	}
	w.serve(nil)
	if a := w.must("git_commit", args{"message": "x", "all": true}); !has(a.warnings, "up to 4 hooks") {
		t.Errorf("%q", a.warnings)
	}
}

// TestHooksOutside: hooks do not run where they could change what is outside of the workspace.
func TestHooksOutside(t *testing.T) {
	w := newWorld(t, "parent")
	dir := w.other("main")
	w.root = w.home.Path("parent/tree")
	if _, err := w.in(dir, "worktree", "add", "-q", w.root); err != nil {
		t.Fatal(err)
	}
	marker := w.home.Path("marker")
	if err := os.WriteFile(filepath.Join(dir, ".git/hooks/pre-commit"), []byte("#!/bin/sh\ntouch '"+marker+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.serve(nil, func(c *git.Config) { c.Hooks = git.HooksSandbox })
	w.write("a", "a")
	a := w.must("git_commit", args{"message": "x", "all": true})
	if _, err := os.Stat(marker); err == nil || !has(a.warnings, "outside of the workspace") {
		t.Errorf("%v, %q", err, a.warnings)
	}
}
