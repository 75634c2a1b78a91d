package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// The attack cases on files, by their numbers in the design of the sandbox.

// everyWay uses a path in each way a tool can, and expects each to be refused with one of
// the codes.
func everyWay(t *testing.T, tr *Tree, p Path, codes ...fault.Code) {
	t.Helper()
	ways := map[string]func() error{
		"open": func() error {
			f, err := tr.Open(p)
			if err == nil {
				f.Close()
			}
			return err
		},
		"read": func() error { _, _, err := tr.Read(p, 0); return err },
		"list": func() error { _, err := tr.ReadDir(p, true); return err },
		"walk": func() error {
			return tr.Walk(t.Context(), WalkOptions{Start: p, Ignored: true}, func(Visit) error { return errors.New("visited") })
		},
		"below": func() error { _, _, err := tr.Parent(p.Join("new"), false); return err },
	}
	for way, use := range ways {
		done := make(chan error, 1)
		go func() { done <- use() }()
		select {
		case err := <-done:
			ok := false
			for _, code := range codes {
				ok = ok || errors.Is(err, code)
			}
			if !ok {
				t.Errorf("%s of %q: %v, want one of %v", way, p, err, codes)
			}
		case <-time.After(3 * time.Second):
			t.Fatalf("%s of %q hangs", way, p)
		}
	}
}

// Case 1: file tools are given ../x, /etc/passwd, a/../../x: refused, and nothing is opened.
func TestCase1PathsThatLeave(t *testing.T) {
	for _, s := range []string{
		"../x", "/etc/passwd", "a/../../x", "a/..", "..", "", "~", "~root/x", `a\b`, "C:/x", "c:", "a\x00b",
		strings.Repeat("a", 1025), strings.Repeat("a/", 64) + "a", "/",
	} {
		_, err := ParsePath(s)
		refused(t, err, contract.PathDenied)
	}
	for s, want := range map[string]string{
		".": ".", "./a//b/./c/": "a/b/c", "a": "a", "...": "...", "a/..b": "a/..b", "1:x": "1:x",
		strings.Repeat("a/", 64): strings.TrimSuffix(strings.Repeat("a/", 64), "/"), strings.Repeat("é", 1024): strings.Repeat("é", 1024),
	} {
		p, err := ParsePath(s)
		must(t, err)
		if p.String() != want {
			t.Errorf("ParsePath(%q) = %q, want %q", s, p, want)
		}
	}
}

// Case 2: file tools follow an absolute link of the workspace: refused.
// Case 3: file tools follow a relative link that leaves the root: refused.
// Case 7: file tools follow magic links of /proc: refused.
func TestCase2And3And7LinksAreNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	files(t, outside, map[string]string{"secret": "outside"})
	files(t, dir, map[string]string{"in/file": "x", "deep/": ""})
	for name, to := range map[string]string{
		"absolute": outside, "absolutefile": outside + "/secret", "relative": "../" + filepath.Base(outside), "dangling": "nowhere",
		"inside": "in", "self": "/proc/self/root", "cwd": "/proc/self/cwd", "fd": "/proc/self/fd/0", "one": "/proc/1/root", "deep/up": "../..",
	} {
		must(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	tr := tree(t, dir, Options{})
	for _, name := range []string{
		"absolute", "absolutefile", "relative", "dangling", "inside", "self", "cwd", "fd", "one", "deep/up",
		"absolute/secret", "relative/secret", "inside/file", "self/etc/passwd", "cwd/x", "one/etc", "deep/up/x",
	} {
		everyWay(t, tr, parsed(t, name), contract.PathDenied)
		_, err := tr.Stat(parsed(t, name))
		refused(t, err, contract.PathDenied)
	}
	// Case 74 of the public reports: what a dangling link points to is not made.
	_, _, err := tr.Parent(parsed(t, "dangling/x/f"), true)
	refused(t, err, contract.PathDenied)
	if diff := cmp.Diff([]string{"deep", "in", "in/file"}, walked(t, tr, WalkOptions{Ignored: true})); diff != "" {
		t.Error(diff)
	}
}

// Case 4: file tools follow a loop of links, or 41 of them: refused at once.
func TestCase4LinkLoops(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	prev := "0"
	files(t, dir, map[string]string{"0": "x"})
	for i := 1; i <= 45; i++ {
		must(t, os.Symlink(prev, filepath.Join(dir, strconv.Itoa(i))))
		prev = strconv.Itoa(i)
	}
	tr := tree(t, dir, Options{})
	for _, name := range []string{"loop", "loop/loop/x", "45", "1"} {
		everyWay(t, tr, parsed(t, name), contract.PathDenied)
	}
}

// Case 5: directories and links are swapped while files are opened: nothing outside is reached.
// Case 6: the last part is swapped between writing and renaming: nothing outside is touched.
// Case 11: files are moved across the root while links are swapped: refused.
//
// TestCase5And6And11SwapRace swaps names in the workspace for links that lead out, while
// every primitive works on them: nothing outside is read, listed, changed or made.
func TestCase5And6And11SwapRace(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	files(t, outside, map[string]string{"f": "outside", "victim/f": "outside"})
	files(t, dir, map[string]string{"d/f": "inside", "d/victim/f": "inside", "file": "inside"})
	must(t, os.Symlink(outside, filepath.Join(dir, "l")))
	must(t, os.Symlink(outside+"/f", filepath.Join(dir, "m")))
	before := names(t, outside)
	tr := tree(t, dir, Options{})

	length := 5 * time.Second
	if testing.Short() {
		length = time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(at)
		for ctx.Err() == nil {
			unix.Renameat2(at, "d", at, "l", unix.RENAME_EXCHANGE)
			unix.Renameat2(at, "file", at, "m", unix.RENAME_EXCHANGE)
		}
	})
	inside := func(what string, data []byte) {
		if string(data) == "outside" {
			t.Errorf("%s reached a file outside", what)
		}
	}
	reads, writes, good := 0, 0, 0
	wg.Go(func() {
		for ; ctx.Err() == nil; reads++ {
			for _, name := range []string{"d/f", "file", "d/victim/f"} {
				if data, _, err := tr.Read(Path{name}, 0); err == nil {
					inside("Read", data)
					good++
				}
			}
			if list, err := tr.ReadDir(Path{"d"}, true); err == nil && len(list) == 2 && list[0].Name == "f" {
				good++
			}
			tr.Walk(ctx, WalkOptions{Ignored: true, Workers: reads % 3}, func(v Visit) error {
				if v.Type == safefile.Regular {
					if data, _, _, err := v.LoadText(nil, 100); err == nil {
						inside("Load", data)
					}
					if f, err := v.Open(); err == nil {
						data, _ := io.ReadAll(f)
						inside("Open", data)
						f.Close()
					}
				}
				return nil
			})
		}
	})
	wg.Go(func() {
		for ; ctx.Err() == nil; writes++ {
			d, _, err := tr.Parent(Path{"d/made/f"}, true)
			if err != nil {
				continue
			}
			// In the way of package change: a draft that gets its name, or a stage like the file
			// that is there; then the name, or a swap; then the stage of what was displaced goes.
			stage := StageName("race", writes)
			draft, err := d.Draft([]byte("new"), 0o600, nil)
			if err == nil {
				err = d.NameStage(draft, stage)
				draft.Close()
			}
			if err != nil {
				err = d.WriteStage(stage, []byte("new"), 0o600, nil)
			}
			if err == nil {
				if d.Restore(stage, "f") != nil {
					d.Exchange(stage, "f")
				}
				d.Rename("f", d, "g")
				d.Withdraw("g", StageName("race", -1-writes))
				d.Sweep("race")
				d.Remove("f")
			}
			d.Close()
			// The last name is swapped between staging and taking the name.
			if top, _, err := tr.Parent(Path{"file"}, false); err == nil {
				if model, err := top.Open("file"); err == nil {
					if top.WriteStage(stage, []byte("inside"), 0, model) == nil {
						top.Exchange(stage, "file")
						top.Sweep("race")
					}
					model.Close()
				}
				top.Close()
			}
			if d, _, err := tr.Parent(Path{"d/f"}, false); err == nil {
				d.Mkdir("new", 0o700)
				d.Return("new", d, "newer")
				d.RemoveDir("newer")
				if top, _, err := tr.Parent(Path{"file"}, false); err == nil {
					top.Rename("file", d, "moved")
					d.Rename("moved", top, "file")
					top.Close()
				}
				d.RemoveDir("made")
				d.Close()
			}
		}
	})
	wg.Wait()
	if diff := cmp.Diff(before, names(t, outside)); diff != "" {
		t.Errorf("outside changed: %s", diff)
	}
	for _, name := range []string{"f", "victim/f"} {
		if data, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(data) != "outside" {
			t.Errorf("outside %s is %q, %v", name, data, err)
		}
	}
	if reads < 20 || writes < 20 || good == 0 {
		t.Errorf("the race was none: %d reads (%d good), %d writes", reads, good, writes)
	}
	t.Logf("%d reads, %d good; %d writes", reads, good, writes)
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		list = append(list, strings.TrimPrefix(path, dir))
		return err
	}))
	return list
}

// Case 10: a file of the workspace is a hard link to one outside: a write replaces it, the one outside stays as it is.
func TestCase10HardLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	files(t, outside, map[string]string{"f": "outside"})
	must(t, os.Link(filepath.Join(outside, "f"), filepath.Join(dir, "f")))
	tr := tree(t, dir, Options{})
	everyWay(t, tr, Path{"f"}, contract.PathDenied)
	// A write takes the name by exchange: the file outside stays as it is.
	d, _, err := tr.Parent(Path{"f"}, false)
	must(t, err)
	defer d.Close()
	_, err = d.Open("f")
	refused(t, err, contract.PathDenied)
	stage := staged(t, d, "x", "new", 0o600)
	must(t, d.Exchange(stage, "f"))
	must(t, d.Remove(stage))
	data, err := os.ReadFile(filepath.Join(outside, "f"))
	must(t, err)
	if string(data) != "outside" {
		t.Errorf("the file outside is %q", data)
	}
	must(t, tr.Walk(t.Context(), WalkOptions{}, func(v Visit) error {
		_, _, _, err := v.LoadText(nil, 100)
		return err
	}))
}

// Case 12: a FIFO is to be read: an error at once.
// Case 16: a socket is to be read: an error at once.
func TestCase12And16FIFOsAndSocketsAtOnce(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	must(t, err)
	defer l.Close()
	tr := tree(t, dir, Options{})
	everyWay(t, tr, Path{"fifo"}, contract.PathDenied)
	everyWay(t, tr, Path{"sock"}, contract.PathDenied)
	if got := walked(t, tr, WalkOptions{Ignored: true}); len(got) > 0 {
		t.Errorf("visited %q", got)
	}
	// The FIFO is not even opened: somebody who waits to write to it goes on waiting.
	woke := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		woke <- err
	}()
	time.Sleep(50 * time.Millisecond)
	everyWay(t, tr, Path{"fifo"}, contract.PathDenied)
	select {
	case <-woke:
		t.Error("the FIFO was opened")
	case <-time.After(50 * time.Millisecond):
	}
	r, err := os.OpenFile(filepath.Join(dir, "fifo"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	<-woke
	r.Close()
}

// Case 13: a device file in the workspace is to be read: refused by its type.
func TestCase13Devices(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mknod(filepath.Join(dir, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Skipf("this user may not make devices: %v", err)
	}
	tr := tree(t, dir, Options{})
	everyWay(t, tr, Path{"zero"}, contract.PathDenied)
	if got := walked(t, tr, WalkOptions{}); len(got) > 0 {
		t.Errorf("visited %q", got)
	}
}

// Case 17: a sparse file of 1 TiB is read or searched: bounded time and memory.
// Case 18: a file without an end is read: bounded.
func TestCase17And18HugeAndEndlessFiles(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "huge"))
	must(t, err)
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Skipf("the file system takes no file of 1 TiB: %v", err)
	}
	must(t, os.Symlink("/dev/zero", filepath.Join(dir, "endless")))
	tr := tree(t, dir, Options{MaxFile: 1 << 20})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = tr.Read(Path{"huge"}, 0)
	refused(t, err, contract.FileTooLarge)
	if f := fault.From(err); f.Detail["size"] != int64(1<<40) || f.Detail["limit"] != int64(1<<20) {
		t.Errorf("details %v", f.Detail)
	}
	must(t, tr.Walk(t.Context(), WalkOptions{}, func(v Visit) error {
		_, _, _, err := v.LoadText(nil, 1<<20)
		refused(t, err, contract.FileTooLarge)
		return nil
	}))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
	everyWay(t, tr, Path{"endless"}, contract.PathDenied)
}

// Case 18: a log grows while it is read: what is read is of one state.
//
// A log that grows while it is read is not read for ever, and what is read is of one state.
func TestCase18GrowingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "log")
	files(t, dir, map[string]string{"log": strings.Repeat("x", 100)})
	tr := tree(t, dir, Options{MaxFile: 1 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for ctx.Err() == nil {
			f.WriteString("line\n")
		}
	})
	for ctx.Err() == nil {
		data, in, err := tr.Read(Path{"log"}, 0)
		switch {
		case err == nil && int64(len(data)) != in.Size:
			t.Errorf("%d bytes of a file of %d", len(data), in.Size)
		case err != nil && !errors.Is(err, contract.FileChanged) && !errors.Is(err, contract.FileTooLarge):
			t.Error(err)
		}
	}
	wg.Wait()
}

// Case 21: very many files in the workspace: listings are paged, walks have bounds.
func TestCase21ManyFiles(t *testing.T) {
	dir := t.TempDir()
	const n = 5000
	for i := range n {
		must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	tr := tree(t, dir, Options{})
	for _, workers := range []int{1, 4} {
		var mu sync.Mutex
		visited := 0
		err := tr.Walk(t.Context(), WalkOptions{MaxEntries: 1000, Workers: workers}, func(Visit) error {
			mu.Lock()
			visited++
			mu.Unlock()
			return nil
		})
		if err != ErrCut || visited != 1000 {
			t.Errorf("%d visits, %v", visited, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = tr.Walk(ctx, WalkOptions{Workers: workers}, func(Visit) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a walk nobody wants any more: %v", err)
		}
	}
}

// Case 22: names with line breaks, escape sequences, invalid UTF-8: visible in answers, refused when they are to be made.
func TestCase22StrangeNames(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("n", 255)
	strange := []string{"bad\xff", "esc\x1b[2J", "line\nfeed", long, `back\slash`}
	for _, name := range strange {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	tr := tree(t, dir, Options{})
	list, err := tr.ReadDir(Path{}, false)
	must(t, err)
	if len(list) != len(strange) {
		t.Errorf("%d entries", len(list))
	}
	for _, name := range []string{"esc\x1b[2J", "line\nfeed", long} { // they can be read
		data, _, err := tr.Read(parsed(t, name), 0)
		must(t, err)
		if string(data) != "x" {
			t.Errorf("%q holds %q", name, data)
		}
	}
	_, _, err = tr.Read(parsed(t, long+"n"), 0)
	refused(t, err, contract.PathDenied)
	if got := (Path{"a\xff/é\n"}).Shown(); got != "a\\x{ff}/é\n" {
		t.Errorf("shown as %q", got)
	}
	// Nothing new gets such a name.
	d, _, err := tr.Parent(Path{"new"}, false)
	must(t, err)
	defer d.Close()
	for _, name := range []string{"bad\xfe", "esc\x1b", "a\nb", "tab\t", "right\u202eleft", "zero\u200bwidth", "del\x7f"} {
		refused(t, tr.Creatable(Path{name}), contract.PathDenied)
		refused(t, d.Mkdir(name, 0o700), contract.PathDenied)
		_, _, err := tr.Parent(Path{"made/" + name + "/f"}, true)
		refused(t, err, contract.PathDenied)
	}
}

// Case 27: the workspace is the home, the root, or holds the installation: refused, or asked for by the owner alone.
func TestCase27Roots(t *testing.T) {
	base := t.TempDir()
	files(t, base, map[string]string{"home/project/": "", "file": "", "state/deep/": ""})
	home := filepath.Join(base, "home")
	must(t, os.Symlink(home, filepath.Join(base, "link")))
	open := func(root string, o Options) error {
		tr, err := Open(root, o)
		if err == nil {
			tr.Close()
		}
		return err
	}
	must(t, open(filepath.Join(home, "project"), Options{Home: home}))
	refused(t, open(home, Options{Home: home}), contract.PathDenied)
	refused(t, open(filepath.Join(base, "link"), Options{Home: home}), contract.PathDenied)
	refused(t, open(home, Options{Home: filepath.Join(base, "link")}), contract.PathDenied)
	must(t, open(home, Options{Home: home, AllowUnsafe: true}))
	refused(t, open("/", Options{}), contract.PathDenied)
	must(t, open("/", Options{AllowUnsafe: true}))
	for _, name := range []string{"/home", "/mnt", "/media"} {
		if in, err := os.Lstat(name); err == nil && in.IsDir() {
			refused(t, open(name, Options{}), contract.PathDenied)
		}
	}
	refused(t, open(filepath.Join(base, "none"), Options{}), contract.NotFound)
	refused(t, open(filepath.Join(base, "file"), Options{}), contract.PathDenied)
	refused(t, open("/proc", Options{AllowUnsafe: true}), contract.PathDenied)
	for _, root := range []string{"state", "state/deep"} {
		refused(t, open(filepath.Join(base, root), Options{Hidden: []string{filepath.Join(base, "state")}, AllowUnsafe: true}), contract.PathDenied)
	}
	tr := tree(t, filepath.Join(base, "link", "project"), Options{})
	if want, err := filepath.EvalSymlinks(filepath.Join(home, "project")); err != nil || tr.Root() != want {
		t.Errorf("the root is %q", tr.Root())
	}
}

// Case 28: the workspace's directory is replaced by a link after the start: every call says so, nothing is done.
func TestCase28RootReplaced(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	files(t, base, map[string]string{"w/f": "inside"})
	files(t, outside, map[string]string{"f": "outside"})
	root := filepath.Join(base, "w")
	tr := tree(t, root, Options{})
	must(t, tr.Check())
	for _, replace := range []func(){
		func() {},
		func() { must(t, os.Symlink(outside, root)) },
		func() { must(t, os.Symlink(filepath.Join(base, "moved"), root)) },
		func() { files(t, base, map[string]string{"w/f": "another"}) },
		func() { files(t, base, map[string]string{"w": "a file"}) },
	} {
		must(t, os.Rename(root, filepath.Join(base, "moved")))
		replace()
		refused(t, tr.Check(), contract.PathDenied)
		everyWay(t, tr, Path{"f"}, contract.PathDenied)
		_, err := tr.Stat(Path{})
		refused(t, err, contract.PathDenied)
		must(t, os.RemoveAll(root))
		must(t, os.Rename(filepath.Join(base, "moved"), root))
		must(t, tr.Check()) // the same directory is back
	}
}

func TestEveryGitIsProtected(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{
		".git/config": "x", "sub/.git": "gitdir: ../x", "deep/a/b/.git/hooks/": "", "case/.GIT/config": "", "case2/.Git": "", "ntfs/GIT~1/x": "",
		"dots/.git. ./x": "", "hfs/.g\u200cit/x": "", "stream/.git:x/y": "", ".gitignore": "", ".github/x": "", "git/x": "", ".gitmodules": "",
	})
	must(t, os.Symlink("git", filepath.Join(dir, "linked")))
	must(t, os.MkdirAll(filepath.Join(dir, "ln"), 0o755))
	must(t, os.Symlink("../git", filepath.Join(dir, "ln/.git")))
	tr := tree(t, dir, Options{})
	for _, name := range []string{
		".git", ".git/config", "sub/.git", "deep/a/b/.git", "deep/a/b/.git/hooks/pre-commit", "case/.GIT/config", "case2/.Git",
		"ntfs/GIT~1/x", "dots/.git. ./x", "hfs/.g\u200cit/x", "stream/.git:x/y", "ln/.git", "ln/.git/x",
		"none/.git/x", "none/.gIt", "git~9", ".git ",
	} {
		everyWay(t, tr, parsed(t, name), contract.PathDenied)
		_, err := tr.Stat(parsed(t, name))
		refused(t, err, contract.PathDenied)
		_, _, err = tr.Parent(parsed(t, name), true)
		refused(t, err, contract.PathDenied)
	}
	d, _, err := tr.Parent(parsed(t, "x"), false)
	must(t, err)
	defer d.Close()
	stage := staged(t, d, "x", "gitdir: /tmp", 0o600)
	for _, name := range []string{".git", ".GIT", "git~1", ".git."} {
		refused(t, tr.Creatable(Path{name}), contract.PathDenied)
		refused(t, d.Restore(stage, name), contract.PathDenied)
		refused(t, d.Exchange(stage, name), contract.PathDenied)
		refused(t, d.Mkdir(name, 0o700), contract.PathDenied)
		refused(t, d.Rename(".gitignore", d, name), contract.PathDenied)
		refused(t, d.Rename(name, d, "y"), contract.PathDenied)
		refused(t, d.Return("git", d, name), contract.PathDenied)
		refused(t, d.Return(name, d, "y"), contract.PathDenied)
		refused(t, d.Withdraw(name, StageName("x", 2)), contract.PathDenied)
		refused(t, d.Remove(name), contract.PathDenied)
		refused(t, d.RemoveDir(name), contract.PathDenied)
		_, err := d.Open(name)
		refused(t, err, contract.PathDenied)
	}
	must(t, d.Sweep("x"))
	for _, name := range walked(t, tr, WalkOptions{Ignored: true}) {
		if strings.Contains(strings.ToLower(name), ".git/") || strings.HasSuffix(strings.ToLower(name), ".git") {
			t.Errorf("visited %q", name)
		}
	}
	for _, name := range []string{".gitignore", ".github/x", "git/x", ".gitmodules"} {
		if _, err := tr.Stat(parsed(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretsAreDeniedByName(t *testing.T) {
	dir := t.TempDir()
	secrets := []string{
		".env", ".env.local", ".env.example", "prod.env", ".envrc", "a/b/x.pem", "x.KEY", "k.p12", "k.pfx", "k.jks", "k.keystore", "id_rsa", "id_rsa.pub",
		"id_ed25519", "db.kdbx", ".npmrc", ".pypirc", ".netrc", "_netrc", ".git-credentials", ".ssh/config", "x/.ssh/known_hosts", ".gnupg/x",
		".aws/credentials", ".kube/config", "home/.kube/config", ".docker/config.json", "secrets.yaml", "credentials.json", "service-account-x.json",
		"terraform.tfstate", "terraform.tfstate.backup", ".ENV", "a/.Env.Local", "X.PEM", ".SSH/id", ".\u017fsh/id", ".e\u200bnv", "mine.txt", ".env.", "x.pem ",
		".env~", "#.env#", "x.pem.bak", ".x.pem.swp", "a/id_rsa.orig", ".npmrc~", "prod.env.ORIG", "mine.txt~", ".pgpass", ".my.cnf", ".htpasswd", "putty.ppk", ".dockercfg",
		".cargo/credentials", "h/.cargo/credentials.toml", ".m2/settings.xml", "h/.config/gcloud/x", ".config/gh/hosts.yml", ".azure/x", ".vault-token", ".s3cfg", ".boto",
		"client_secret_1.json", ".bash_history", ".zsh_history", ".psql_history",
	}
	for _, name := range secrets {
		files(t, dir, map[string]string{name: "secret"})
	}
	files(t, dir, map[string]string{"open/x.pem": "", "env.go": "", "keys.go": "", ".kube/other": "", "environment": "", "ssh/x": ""})
	files(t, dir, map[string]string{"env.go~": "", "#": "", "~": "", "x.bak": "", "plain/settings.xml": "", "my_history": ""})
	files(t, dir, map[string]string{"file/.aws": "secret", "file/drawer": "secret", "secrets.d/x": ""}) // files where rules speak of directories
	secrets = append(secrets, "file/.aws", "file/drawer")
	tr := tree(t, dir, Options{SecretDeny: []string{"/mine.*", "drawer/"}, SecretAllow: []string{"open/*.pem", "secrets.d/"}})
	for _, name := range secrets {
		everyWay(t, tr, parsed(t, name), contract.SecretPathDenied)
		_, _, err := tr.Parent(parsed(t, name), true)
		refused(t, err, contract.SecretPathDenied)
	}
	for _, name := range []string{"none/.env", ".ssh", ".aws/new/deep", "none/x.pem"} { // they do not exist
		everyWay(t, tr, parsed(t, name), contract.SecretPathDenied)
	}
	d, _, err := tr.Parent(parsed(t, "x"), false)
	must(t, err)
	defer d.Close()
	stage := staged(t, d, "x", "x", 0o600)
	for _, name := range []string{".env", "new.PEM", ".ssh"} {
		refused(t, tr.Creatable(Path{name}), contract.SecretPathDenied)
		refused(t, d.Restore(stage, name), contract.SecretPathDenied)
		refused(t, d.Exchange(stage, name), contract.SecretPathDenied)
		refused(t, d.Mkdir(name, 0o700), contract.SecretPathDenied)
		refused(t, d.Rename("env.go", d, name), contract.SecretPathDenied)
		refused(t, d.Rename(name, d, "y"), contract.SecretPathDenied)
		refused(t, d.Return("env.go", d, name), contract.SecretPathDenied)
		refused(t, d.Return(name, d, "y"), contract.SecretPathDenied)
		refused(t, d.Withdraw(name, StageName("x", 2)), contract.SecretPathDenied)
	}
	must(t, d.Sweep("x"))
	want := []string{".kube", ".kube/other", "a", "a/b", "env.go", "environment", "home", "home/.kube", "keys.go", "open", "open/x.pem", "ssh", "ssh/x", "x", ".docker",
		"file", "secrets.d", "secrets.d/x", "env.go~", "#", "~", "x.bak", "plain", "plain/settings.xml", "my_history",
		".cargo", ".config", ".config/gh", ".m2", "h", "h/.cargo", "h/.config"}
	if diff := cmp.Diff(sorted(want), sorted(walked(t, tr, WalkOptions{Ignored: true}))); diff != "" {
		t.Error(diff)
	}
	if _, err := tr.ReadDir(Path{"secrets.d"}, false); err != nil {
		t.Errorf("what the owner excepted: %v", err)
	}
	for _, bad := range []Options{{SecretDeny: []string{"a[b"}}, {SecretAllow: []string{`a\`}}} {
		_, err := Open(dir, bad)
		refused(t, err, contract.InvalidInput)
	}
}

func TestHiddenDirectory(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"state/dodo/state.db": "x", "state/other": "x"})
	must(t, os.Symlink("state", filepath.Join(dir, "way")))
	tr := tree(t, dir, Options{Hidden: []string{filepath.Join(dir, "way/dodo"), filepath.Join(dir, "later"), "/elsewhere"}})
	for _, name := range []string{"state/dodo", "state/dodo/state.db", "STATE/Dodo/x", "later", "later/x"} {
		everyWay(t, tr, parsed(t, name), contract.PathDenied)
		if f := fault.From(tr.Access(parsed(t, name))); strings.Contains(f.Hint, "operations") {
			t.Errorf("%s is not git's, and there is no operation for it: %s", name, f.Hint)
		}
	}
	if diff := cmp.Diff([]string{"state", "state/other"}, walked(t, tr, WalkOptions{Ignored: true})); diff != "" {
		t.Error(diff)
	}
}

// The files of a mount of the kernel's in the workspace call themselves regular.
func TestKernelFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"proc/": "", "file": "x"})
	if err := unix.Mount("/proc", filepath.Join(dir, "proc"), "", unix.MS_BIND, ""); err != nil {
		t.Skipf("this user may not mount: %v", err)
	}
	defer unix.Unmount(filepath.Join(dir, "proc"), unix.MNT_DETACH)
	if err := unix.Mount("/proc/version", filepath.Join(dir, "file"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(filepath.Join(dir, "file"), unix.MNT_DETACH)
	tr := tree(t, dir, Options{})
	everyWay(t, tr, Path{"proc/version"}, contract.PathDenied)
	everyWay(t, tr, Path{"file"}, contract.PathDenied)
	_, err := tr.ReadDir(Path{"proc"}, true)
	refused(t, err, contract.PathDenied)
	_, _, err = tr.Parent(Path{"proc/new"}, true)
	refused(t, err, contract.PathDenied)
	visits := 0
	must(t, tr.Walk(t.Context(), WalkOptions{}, func(v Visit) error {
		visits++
		_, _, _, err := v.LoadText(nil, 1000)
		refused(t, err, contract.PathDenied)
		return nil
	}))
	if visits != 1 {
		t.Errorf("%d visits", visits)
	}
}

// TestOrdinaryUser has the rights of a user who owns nothing there.
func TestOrdinaryUser(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"mine": "x", "closed": "x", "shut/x": "x", "pass/x": "x"})
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	must(t, os.Chmod(filepath.Join(dir, "shut"), 0))
	must(t, os.Chmod(filepath.Join(dir, "pass"), 0o111))
	if os.Geteuid() == 0 {
		for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		unix.SetfsuidRetUid(65534)
		defer unix.SetfsuidRetUid(0)
	} else {
		defer os.Chmod(filepath.Join(dir, "shut"), 0o755)
		defer os.Chmod(filepath.Join(dir, "pass"), 0o755)
	}
	tr := tree(t, dir, Options{})
	for _, name := range []string{"mine", "pass/x"} { // not one's own: no O_NOATIME, no listing of pass
		data, _, err := tr.Read(parsed(t, name), 0)
		must(t, err)
		if string(data) != "x" {
			t.Errorf("%s is %q", name, data)
		}
	}
	for _, name := range []string{"closed", "shut/x"} {
		_, _, err := tr.Read(parsed(t, name), 0)
		refused(t, err, contract.PathDenied)
	}
	_, err := tr.ReadDir(Path{"shut"}, false)
	refused(t, err, contract.PathDenied)
	got := map[string]bool{}
	must(t, tr.Walk(t.Context(), WalkOptions{}, func(v Visit) error {
		got[v.Path.String()] = v.Err != nil
		return nil
	}))
	if diff := cmp.Diff(map[string]bool{"mine": false, "closed": false, "pass": true, "shut": true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStageLikeAFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := t.TempDir()
	files(t, dir, map[string]string{"f": "old"})
	must(t, os.Chown(filepath.Join(dir, "f"), 65534, 65533))
	must(t, os.Chmod(filepath.Join(dir, "f"), 0o640))
	tr := tree(t, dir, Options{})
	d, _, err := tr.Parent(Path{"f"}, false)
	must(t, err)
	defer d.Close()
	model, err := d.Open("f")
	must(t, err)
	defer model.Close()
	stage := StageName("x", 1)
	must(t, d.WriteStage(stage, []byte("new"), 0, model))
	must(t, d.Exchange(stage, "f"))
	draft, err := d.Draft([]byte("new"), 0, model)
	must(t, err)
	defer draft.Close()
	second := StageName("x", 2)
	must(t, d.NameStage(draft, second))
	for _, name := range []string{"f", second} {
		in, err := d.Stat(name)
		must(t, err)
		if in.UID != 65534 || in.GID != 65533 || in.Mode != 0o640 {
			t.Errorf("%s became %+v", name, in)
		}
	}
}

func TestRenameTakesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{".kube/config": "secret", "f": "x", "to/": ""})
	must(t, os.Symlink("f", filepath.Join(dir, "ln")))
	tr := tree(t, dir, Options{})
	d, _, err := tr.Parent(Path{"f"}, false)
	must(t, err)
	defer d.Close()
	to, _, err := tr.Parent(Path{"to/f"}, false)
	must(t, err)
	defer to.Close()
	refused(t, d.Rename(".kube", d, "kube"), contract.PathDenied)
	refused(t, d.Rename("ln", to, "ln"), contract.PathDenied)
	must(t, os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "second")))
	refused(t, d.Rename("f", to, "f"), contract.PathDenied)
	must(t, os.Remove(filepath.Join(dir, "second")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	refused(t, d.Rename("fifo", to, "fifo"), contract.PathDenied)
	refused(t, d.Rename("none", to, "x"), contract.NotFound)
	must(t, d.Rename("f", to, "f"))
	files(t, dir, map[string]string{"f": "again"})
	err = d.Rename("f", to, "f")
	refused(t, err, contract.Conflict)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v does not say that something is there", err)
	}
}

func TestDiskFullIsAResourceLimit(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("this user may not mount: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	tr := tree(t, dir, Options{})
	d, _, err := tr.Parent(Path{"f"}, false)
	must(t, err)
	defer d.Close()
	refused(t, d.WriteStage(StageName("x", 1), make([]byte, 1<<20), 0o600, nil), contract.ResourceLimit)
	_, err = d.Draft(make([]byte, 1<<20), 0o600, nil)
	refused(t, err, contract.ResourceLimit)
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	must(t, d.WriteStage(StageName("x", 1), make([]byte, 1<<10), 0o600, nil))
}

func TestPanicOfAVisitReachesTheCaller(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a/b": "", "c": ""})
	tr := tree(t, dir, Options{})
	defer func() {
		if v := recover(); v != "on purpose" {
			t.Errorf("recovered %v\n%s", v, debug.Stack())
		}
	}()
	tr.Walk(t.Context(), WalkOptions{Workers: 2}, func(Visit) error { panic("on purpose") })
}

// However a walk ends, it leaves no directory open.
func TestWalkLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		files(t, dir, map[string]string{strconv.Itoa(i) + "/a/b/c": "", strconv.Itoa(i) + "/d": ""})
	}
	must(t, os.Chmod(filepath.Join(dir, "3/a"), 0))
	defer os.Chmod(filepath.Join(dir, "3/a"), 0o700)
	tr := tree(t, dir, Options{})
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(list)
	}
	before := open()
	for name, f := range map[string]func(v Visit, n int) error{
		"whole": func(Visit, int) error { return nil },
		"skip":  func(v Visit, _ int) error { return map[safefile.Type]error{safefile.Directory: fs.SkipDir}[v.Type] },
		"ended": func(_ Visit, n int) error { return map[int]error{7: io.EOF}[n] },
		"panics": func(_ Visit, n int) error {
			if n == 9 {
				panic("on purpose")
			}
			return nil
		},
	} {
		for _, o := range []WalkOptions{{}, {Workers: 3}, {Workers: 3, MaxEntries: 11}, {MaxDepth: 2}} {
			var mu sync.Mutex
			n := 0
			func() {
				defer func() { recover() }()
				tr.Walk(t.Context(), o, func(v Visit) error {
					mu.Lock()
					n++
					at := n
					mu.Unlock()
					return f(v, at)
				})
			}()
			if after := open(); after != before {
				t.Errorf("%s %+v: %d files are open, %d were", name, o, after, before)
			}
		}
	}
}

// TestReadIsCoherent: a reader sees one state of a file that is rewritten in place all the time, or
// an error. One write takes longer than one read, so that a read can begin and end within it.
func TestReadIsCoherent(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	a, b := bytes.Repeat([]byte("a"), 8<<20), bytes.Repeat([]byte("b"), 8<<20)
	must(t, os.WriteFile(name, a, 0o600))
	tr := tree(t, dir, Options{})
	length := 2 * time.Second
	if testing.Short() {
		length = time.Second / 2
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for i := 0; ctx.Err() == nil; i++ {
			f.WriteAt([][]byte{a, b}[i%2], 0)
			time.Sleep(11 * time.Millisecond) // longer than a tick of the file system's clock
		}
	})
	whole := 0
	for ctx.Err() == nil {
		data, _, err := tr.Read(Path{"f"}, 0)
		if err != nil {
			if !errors.Is(err, contract.FileChanged) || !fault.From(err).Retryable {
				t.Error(err)
			}
			continue
		}
		whole++
		if !bytes.Equal(data, a) && !bytes.Equal(data, b) {
			t.Fatal("a torn read")
		}
	}
	wg.Wait()
	if whole == 0 {
		t.Error("nothing could be read")
	}
}

// TestOpenWhatIsReplaced: a file that is replaced while it is opened has no name left; the one
// that took its place is opened instead.
func TestOpenWhatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	tr := tree(t, dir, Options{})
	name := filepath.Join(dir, "f")
	must(t, os.WriteFile(name, nil, 0o600))
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	wg.Go(func() {
		for !stop.Load() {
			if err := errors.Join(os.WriteFile(name+"~", nil, 0o600), os.Rename(name+"~", name)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20_000 {
		f, err := tr.Open(parsed(t, "f"))
		if err == nil {
			must(t, f.Close())
		} else if !errors.Is(err, contract.FileChanged) {
			t.Fatal(err)
		}
	}
}
