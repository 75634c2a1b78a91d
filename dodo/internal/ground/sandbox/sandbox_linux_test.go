package sandbox_test

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/testenv"
)

var helper = testenv.Program{Package: "./testdata/helper"}

func TestMain(m *testing.M) {
	code := m.Run()
	helper.Remove()
	for _, p := range []*testenv.Program{&runner, &attacker, &oldkernel} {
		p.Remove()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A world is a workspace with a sandbox around it.
type world struct {
	t     testing.TB
	box   *sandbox.Box
	place *sandbox.Place
	root  string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	home := testenv.NewHome(t)
	root := home.Path("work")
	must(t, os.MkdirAll(root, 0o755))
	box := sandbox.New(sandbox.Options{Path: filepath.SplitList(os.Getenv("PATH")), Hidden: []string{home.Path("state")}, Home: home.Dir, Helper: cmp.Or(os.Getenv("DODO_BENCH_HELPER"), helper.Path(t))})
	return &world{t: t, box: box, root: root, place: box.Place(root, home.Path("state/cache"), nil)}
}

// result is what a command gave.
type result struct {
	sandbox.Exit
	out string
	p   *sandbox.Process
}

// run runs a command to its end.
func (w *world) run(s sandbox.Spec) (result, error) {
	w.t.Helper()
	r, out, err := os.Pipe()
	must(w.t, err)
	defer r.Close()
	if s.Dir == "" {
		s.Dir = w.root
	}
	if s.Env == nil {
		s.Env = []string{"PATH=" + w.place.Path(), "LANG=C.UTF-8"}
	}
	if s.Terminal == nil {
		s.Stdout, s.Stderr = out, out
	}
	p, err := w.place.Start(w.t.Context(), s)
	out.Close()
	if err != nil {
		return result{}, err
	}
	from := io.Reader(r)
	if p.Terminal != nil {
		from = p.Terminal
		defer p.Terminal.Close()
	}
	text, _ := io.ReadAll(from) // a terminal ends with an error
	return result{Exit: p.Wait(), out: string(text), p: p}, nil
}

func (w *world) sh(script string) result {
	w.t.Helper()
	r, err := w.run(sandbox.Spec{Args: []string{"/bin/sh", "-c", script}, Mode: sandbox.Prefer})
	must(w.t, err)
	return r
}

func TestShell(t *testing.T) {
	w := newWorld(t)
	t.Logf("%+v", w.box.Probe(t.Context()))
	r := w.sh("id; pwd; ls -la / /etc /dev; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; ps ax; echo hi > x; env; mount; exit 3")
	t.Logf("%+v\n%s", r.Exit, r.out)
	if r.Code != 3 || !strings.Contains(r.out, "NoNewPrivs:\t1") {
		t.Error(r.Exit)
	}
}
