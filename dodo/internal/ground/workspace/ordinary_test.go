package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/safefile"
	"localmcp/internal/testenv"
)

var ignoring = map[string]string{
	".gitignore":           "*.log\n/top.txt\nsub/deep/\n!keep.log\n",
	"a.log":                "",
	"keep.log":             "",
	"top.txt":              "",
	"sub/.gitignore":       "!a.log\n*.tmp\nonly/\n",
	"sub/a.log":            "",
	"sub/b.log":            "",
	"sub/top.txt":          "",
	"sub/x.tmp":            "",
	"sub/only/x":           "",
	"sub/deep/x":           "",
	"sub/in/.gitignore":    "*\n!*.go\n",
	"sub/in/x.go":          "",
	"sub/in/x.c":           "",
	"sub/in/dir/x.go":      "",
	"other/only":           "",
	"other/linked/x.weird": "",
}

// Listings and walks leave out what git leaves out, from wherever they start.
func TestOrdinaryLayerIsThatOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	files(t, dir, ignoring)
	must(t, os.WriteFile(filepath.Join(dir, "rules"), []byte("*.weird\n"), 0o600))
	must(t, os.Symlink("../../rules", filepath.Join(dir, "other/linked/.gitignore"))) // git takes no link for an ignore file
	home := testenv.NewHome(t)
	home.Set("GIT_CONFIG_NOSYSTEM", "1")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = home.Environ()
		out, err := cmd.Output()
		must(t, err)
		return string(out)
	}
	git("init", "-q")
	var want []string
	for name := range strings.SplitSeq(strings.TrimRight(git("ls-files", "-o", "-z", "--exclude-standard"), "\x00"), "\x00") {
		if !strings.HasSuffix(name, "linked/.gitignore") { // a link, which nobody sees
			want = append(want, name)
		}
	}
	tr := tree(t, dir, Options{})
	for _, workers := range []int{1, 3} {
		var got []string
		for _, name := range walked(t, tr, WalkOptions{Workers: workers}) {
			if in, err := tr.Stat(Path{name}); err == nil && in.Type == safefile.Regular {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"sub/in/x.go"}, walked(t, tr, WalkOptions{Start: Path{"sub/in"}})); diff != "" {
		t.Error(diff)
	}
	// What is named by the caller is not left out itself.
	if diff := cmp.Diff([]string{"sub/only/x"}, walked(t, tr, WalkOptions{Start: Path{"sub/only"}})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.log"}, walked(t, tr, WalkOptions{Start: Path{"a.log"}})); diff != "" {
		t.Error(diff)
	}
	list, err := tr.ReadDir(Path{"sub"}, false)
	must(t, err)
	var got []string
	for _, e := range list {
		got = append(got, e.Name)
	}
	if diff := cmp.Diff([]string{".gitignore", "a.log", "in", "top.txt"}, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := tr.Read(Path{"sub/x.tmp"}, 0); err != nil {
		t.Errorf("the ordinary layer is about listings, not about reading: %v", err)
	}
}

func TestOrdinaryLayerInItsOrder(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{
		".gitignore":  "*.gen\n!node_modules/\n",
		".dodoignore": "!kept.gen\nnotes/\n!x.min.js\n!excluded\n",
		"a.gen":       "", "kept.gen": "", "notes/n": "", "x.min.js": "", "y.min.js": "", "m.map": "", "excluded": "", "dist/d": "", "sub/dist": "",
		"node_modules/x": "", "sub/.dodoignore": "*\n", "sub/s": "",
	})
	tr := tree(t, dir, Options{Exclude: []string{"excluded", "!a.gen", "bad[", "#c"}})
	want := []string{".dodoignore", ".gitignore", "kept.gen", "node_modules", "node_modules/x", "sub", "sub/.dodoignore", "sub/dist", "sub/s", "x.min.js"}
	if diff := cmp.Diff(want, walked(t, tr, WalkOptions{})); diff != "" {
		t.Error(diff)
	}
	if n := len(walked(t, tr, WalkOptions{Ignored: true})); n != 18 {
		t.Errorf("%d of 18 entries with what is ignored", n)
	}
}

func TestIgnoreFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"big/.gitignore": "x\n" + strings.Repeat("#", maxIgnoreBytes), "big/x": ""})
	for i := range maxIgnoreFiles + 20 {
		name := "d" + strconv.Itoa(1000+i)
		files(t, dir, map[string]string{name + "/.gitignore": "x\n", name + "/x": ""})
	}
	tr := tree(t, dir, Options{})
	seen := 0
	for _, name := range walked(t, tr, WalkOptions{}) {
		if strings.HasSuffix(name, "/x") {
			seen++
		}
	}
	if seen != 1+19 { // the one beside the large file, and those of which the rules were not read: the root has none
		t.Errorf("%d files of ignored name are visited", seen)
	}
}
