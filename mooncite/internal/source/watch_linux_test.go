package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/source"
	"localmcp/mooncite/internal/transcript"
)

var kindNames = map[source.Kind]string{source.Added: "added", source.Replaced: "replaced", source.Recheck: "recheck", source.Removed: "removed"}

// settle makes the watch believe that everything was read long after it was written.
func settle(w *source.Watch, changes []source.Change) {
	for _, c := range changes {
		if c.Kind == source.Removed {
			w.Forget(c.Rel)
			continue
		}
		w.Accept(source.Known{Rel: c.Rel, ID: c.ID, SeenNS: c.ID.CtimeNS + int64(time.Hour)})
	}
}

// later is a clock at which everything written by a test is old.
func later() time.Time { return time.Now().Add(time.Minute) }

func look(t testing.TB, w *source.Watch) (changes []source.Change, short []string) {
	t.Helper()
	changes, err := w.Changes(t.Context())
	must(t, err)
	for _, c := range changes {
		short = append(short, kindNames[c.Kind]+" "+c.Rel)
	}
	return changes, short
}

func expect(t testing.TB, w *source.Watch, want ...string) []source.Change {
	t.Helper()
	changes, got := look(t, w)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	return changes
}

func TestDiscovery(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	root := ".claude/projects/"
	h.Write(t, root+"p/x.jsonl", "")
	h.Write(t, root+"p/deep/er/y.jsonl", "")
	h.Write(t, root+"p/z.jsonl.zst", "")
	h.Write(t, root+"p/both.jsonl", "")
	h.Write(t, root+"p/both.jsonl.zst", "")
	h.Write(t, root+"p/notes.txt", "")
	h.Write(t, root+"skip/s.jsonl", "")
	h.Write(t, root+"p/line\nfeed.jsonl", "")
	h.Write(t, root+"p/bad\xff.jsonl", "")
	must(t, os.Symlink("x.jsonl", h.Path(root+"p/ln.jsonl")))
	must(t, os.Symlink("p", h.Path(root+"lndir")))
	must(t, os.Symlink("p", h.Path(root+"p/skip")))
	must(t, unix.Mkfifo(h.Path(root+"p/fifo.jsonl"), 0o600))
	before := testenv.Fingerprint(t, h.Path(root))

	w := source.NewWatch(tree, nil, later)
	expect(t, w, "added p/both.jsonl", "added p/deep/er/y.jsonl", "added p/line\nfeed.jsonl", "added p/x.jsonl", "added p/z.jsonl.zst")
	want := source.Report{
		Files: 5, Directories: 4,
		Skips: []source.Skip{
			{Why: source.Link, Rel: "lndir"},
			{Why: source.BadName, Rel: "p/bad\xff.jsonl"},
			{Why: source.Special, Rel: "p/fifo.jsonl"},
			{Why: source.Link, Rel: "p/ln.jsonl"},
		},
	}
	if diff := cmp.Diff(want, w.Report()); diff != "" {
		t.Error(diff)
	}
	changes, _ := look(t, w)
	if changes[4].Shape != transcript.Packed || changes[3].Shape != transcript.Lines {
		t.Errorf("shapes: %+v", changes)
	}
	if diff := cmp.Diff(before, testenv.Fingerprint(t, h.Path(root))); diff != "" {
		t.Errorf("discovery changed the root: %s", diff)
	}
}

func TestChanges(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	root := ".claude/projects/"
	for _, name := range []string{"a/grow", "a/same", "a/replace", "a/cut", "a/gone", "b/moved", "c/quiet"} {
		h.Write(t, root+name+".jsonl", "0123456789")
	}
	w := source.NewWatch(tree, nil, later)
	first, _ := look(t, w)
	if len(first) != 7 {
		t.Fatalf("%v", first)
	}
	expect(t, w, "added a/cut.jsonl", "added a/gone.jsonl", "added a/grow.jsonl", "added a/replace.jsonl", "added a/same.jsonl", "added b/moved.jsonl", "added c/quiet.jsonl")
	settle(w, first)
	expect(t, w)

	f, err := os.OpenFile(h.Path(root+"a/grow.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	f.WriteString("more")
	f.Close()
	must(t, os.WriteFile(h.Path(root+"a/same.jsonl"), []byte("9876543210"), 0o600))
	h.Write(t, root+"new", "0123456789")
	must(t, os.Rename(h.Path(root+"new"), h.Path(root+"a/replace.jsonl")))
	must(t, os.Truncate(h.Path(root+"a/cut.jsonl"), 3))
	must(t, os.Remove(h.Path(root+"a/gone.jsonl")))
	must(t, os.Rename(h.Path(root+"b"), h.Path(root+"b2")))
	h.Write(t, root+"d/e/fresh.jsonl", "")
	want := []string{
		"replaced a/cut.jsonl", "removed a/gone.jsonl", "replaced a/grow.jsonl", "replaced a/replace.jsonl", "replaced a/same.jsonl",
		"removed b/moved.jsonl", "added b2/moved.jsonl", "added d/e/fresh.jsonl",
	}
	expect(t, w, want...)
	changes := expect(t, w, want...) // until accepted
	settle(w, changes)
	expect(t, w)

	must(t, os.Rename(h.Path(root+"b2"), h.Path(root+"b"))) // and back
	changes = expect(t, w, "added b/moved.jsonl", "removed b2/moved.jsonl")
	settle(w, changes)
	must(t, os.RemoveAll(h.Path(root+"d")))
	must(t, os.Rename(h.Path(root+"b"), h.Path("away")))
	must(t, os.Symlink(h.Path("away"), h.Path(root+"b"))) // a directory replaced by a link to it
	expect(t, w, "removed b/moved.jsonl", "removed d/e/fresh.jsonl")
	if r := w.Report(); len(r.Skips) != 1 || r.Skips[0] != (source.Skip{Why: source.Link, Rel: "b"}) {
		t.Errorf("%+v", r)
	}
	must(t, os.Remove(h.Path(root+"b")))
	must(t, os.Rename(h.Path("away"), h.Path(root+"b"))) // the very directory comes back, its removal not yet forgotten
	expect(t, w, "removed d/e/fresh.jsonl")
}

func TestFreshlyWrittenFilesAreRechecked(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	name := h.Write(t, ".claude/projects/p/x.jsonl", "first")
	w := source.NewWatch(tree, nil, nil)
	f, err := tree.OpenFile("p/x.jsonl")
	must(t, err)
	f.Close()
	w.Accept(source.Known{Rel: "p/x.jsonl", ID: f.ID, SeenNS: f.SeenNS})
	expect(t, w, "recheck p/x.jsonl") // it could be rewritten within the clock's granule
	must(t, os.WriteFile(name, []byte("other"), 0o600))
	must(t, os.Chtimes(name, time.Time{}, time.Unix(0, f.ID.MtimeNS)))
	if _, got := look(t, w); len(got) != 1 {
		t.Errorf("a rewrite of equal size in the same instant is missed: %q", got)
	}
	changes, _ := look(t, w)
	settle(w, changes)
	expect(t, w)
}

func TestDirectoryChangedInTheSameInstantIsReadAgain(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/p/a.jsonl", "")
	w := source.NewWatch(tree, nil, nil) // the real clock: all is too fresh to trust
	changes, _ := look(t, w)
	settle(w, changes)
	dir := h.Path(".claude/projects/p")
	st, err := os.Stat(dir)
	must(t, err)
	h.Write(t, ".claude/projects/p/b.jsonl", "")
	must(t, os.Chtimes(dir, time.Time{}, st.ModTime()))
	expect(t, w, "added p/b.jsonl")
}

func TestSeededWatch(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/p/kept.jsonl", "1")
	h.Write(t, ".claude/projects/p/changed.jsonl", "1")
	h.Write(t, ".claude/projects/p/unproven.jsonl", "1")
	var known []source.Known
	changes, _ := look(t, source.NewWatch(tree, nil, nil))
	for _, c := range changes {
		k := source.Known{Rel: c.Rel, ID: c.ID, SeenNS: c.ID.CtimeNS + int64(time.Hour)}
		if strings.HasSuffix(c.Rel, "unproven.jsonl") {
			k.SeenNS = 0
		}
		known = append(known, k)
	}
	known = append(known, source.Known{Rel: "old/vanished.jsonl"})
	h.Write(t, ".claude/projects/p/changed.jsonl", "12")
	w := source.NewWatch(tree, known, nil)
	want := []string{"removed old/vanished.jsonl", "replaced p/changed.jsonl", "recheck p/unproven.jsonl"}
	settle(w, expect(t, w, want...))
	expect(t, w)
}

// obeyModes takes from this test's thread the power of root to read every directory.
func obeyModes(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread() // for good: the thread ends with the test
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	must(t, unix.Capget(&head, &data[0]))
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	must(t, unix.Capset(&head, &data[0]))
}

func TestClosedDirectoryIsAFailureNotARemoval(t *testing.T) {
	obeyModes(t)
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/closed/in/x.jsonl", "")
	h.Write(t, ".claude/projects/open/y.jsonl", "")
	w := source.NewWatch(tree, []source.Known{{Rel: "closed/in/x.jsonl"}}, later)
	for _, mode := range []os.FileMode{0o000, 0o300, 0o600} {
		must(t, os.Chmod(h.Path(".claude/projects/closed"), mode))
		expect(t, w, "added open/y.jsonl")
		r := w.Report()
		if len(r.Failures) == 0 || r.Failures[0].Fault.Code != source.Discovery || strings.Contains(r.Failures[0].Fault.Msg, h.Dir) {
			t.Errorf("mode %v: %+v", mode, r.Failures)
		}
	}
	must(t, os.Chmod(h.Path(".claude/projects/closed"), 0o700))
	expect(t, w, "replaced closed/in/x.jsonl", "added open/y.jsonl")
	if r := w.Report(); len(r.Failures) != 0 {
		t.Errorf("%+v", r.Failures)
	}
}

// A path longer than the system takes in one call stands for every directory that
// cannot be looked at, for root too.
func TestUnreachableDirectory(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/open/y.jsonl", "")
	name := strings.Repeat("n", 250)
	dir, err := os.OpenRoot(h.Path(".claude/projects"))
	must(t, err)
	for range 20 {
		must(t, dir.Mkdir(name, 0o700))
		next, err := dir.OpenRoot(name)
		must(t, err)
		dir.Close()
		dir = next
	}
	dir.Close()
	known := strings.Repeat(name+"/", 18) + "known.jsonl"
	w := source.NewWatch(tree, []source.Known{{Rel: known}, {Rel: "gone.jsonl"}}, later)
	for range 2 {
		expect(t, w, "removed gone.jsonl", "added open/y.jsonl")
		r := w.Report()
		if len(r.Failures) != 1 || r.Failures[0].Fault.Code != source.Discovery || strings.Contains(r.Failures[0].Fault.Msg, "/") {
			t.Errorf("%+v", r.Failures)
		}
	}
}

func TestVanishedRootKeepsItsFiles(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	h.Write(t, ".claude/projects/p/x.jsonl", "")
	w := source.NewWatch(tree, nil, later)
	changes, _ := look(t, w)
	settle(w, changes)
	root := h.Path(".claude/projects")
	must(t, os.Rename(root, root+".away"))
	expect(t, w)
	if r := w.Report(); r.Files != 1 || len(r.Failures) != 1 || r.Failures[0].Fault.Code != source.RootUnavailable {
		t.Errorf("%+v", r)
	}
	h.Write(t, ".claude/projects/q/y.jsonl", "") // another directory takes its name
	expect(t, w, "removed p/x.jsonl", "added q/y.jsonl")
	if r := w.Report(); len(r.Failures) != 0 {
		t.Errorf("%+v", r.Failures)
	}
	f, err := tree.OpenFile("q/y.jsonl")
	must(t, err)
	f.Close()
}

func TestDepthLimit(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	deep := strings.Repeat("d/", source.MaxDepth)
	h.Write(t, ".claude/projects/"+deep+"last.jsonl", "")
	h.Write(t, ".claude/projects/"+deep+"too/deep.jsonl", "")
	h.Write(t, ".claude/projects/top.jsonl", "")
	w := source.NewWatch(tree, nil, later)
	expect(t, w, "added "+deep+"last.jsonl", "added top.jsonl")
	r := w.Report()
	if len(r.Failures) != 1 || r.Failures[0].Fault.Code != source.Limit || r.Failures[0].Rel != deep+"too" {
		t.Errorf("%+v", r.Failures)
	}
}

func TestChangesStopsWithItsContext(t *testing.T) {
	h := testenv.NewHome(t)
	w := source.NewWatch(claudeTree(t, h), nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Changes(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// many fills a root as Codex does: dirs directories of per files. They are names of few
// real files, which are made much faster and looked at just as fast.
func many(t testing.TB, h *testenv.Home, dirs, per int) {
	t.Helper()
	for d := range dirs {
		one := h.Write(t, fmt.Sprintf("one%d", d), "x")
		dir := h.Path(fmt.Sprintf(".claude/projects/2026/%02d/%02d", d/28, d%28))
		must(t, os.MkdirAll(dir, 0o700))
		for i := range per {
			name := "rollout-2026-11-30T12-00-00-0199a0b2-1111-7222-8333-" + strconv.Itoa(100000000000+i) + ".jsonl"
			must(t, os.Link(one, filepath.Join(dir, name)))
		}
	}
}

func TestManyFiles(t *testing.T) {
	h := testenv.NewHome(t)
	tree := claudeTree(t, h)
	many(t, h, 200, 100)
	w := source.NewWatch(tree, nil, later)
	changes, _ := look(t, w)
	if len(changes) != 20000 {
		t.Fatalf("%d files, want 20000", len(changes))
	}
	settle(w, changes)
	start := time.Now()
	expect(t, w)
	t.Logf("20,000 unchanged files: %v", time.Since(start))
}

func BenchmarkUnchanged(b *testing.B) {
	for _, per := range []int{2, 10, 100} {
		b.Run(strconv.Itoa(per)+" files a directory", func(b *testing.B) {
			const files = 2000
			h := testenv.NewHome(b)
			tree := claudeTree(b, h)
			many(b, h, files/per, per)
			w := source.NewWatch(tree, nil, later)
			changes, _ := look(b, w)
			settle(w, changes)
			b.ReportAllocs()
			for b.Loop() {
				if changes, err := w.Changes(b.Context()); err != nil || len(changes) > 0 {
					b.Fatal(len(changes), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
		})
	}
}

func BenchmarkFirstLook(b *testing.B) {
	const files = 20000
	h := testenv.NewHome(b)
	tree := claudeTree(b, h)
	many(b, h, files/100, 100)
	b.ReportAllocs()
	for b.Loop() {
		if changes, err := source.NewWatch(tree, nil, later).Changes(b.Context()); err != nil || len(changes) != files {
			b.Fatal(len(changes), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
}
