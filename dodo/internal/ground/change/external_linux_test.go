package change_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
	"localmcp/internal/fault"
)

// rival writes to files in the way other programs do.
type rival struct {
	name string
	add  func(path, line string) error // adds a line
}

var rivals = []rival{
	{"append", func(path, line string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(line)
		return errors.Join(err, f.Close())
	}},
	{"slow append", func(path, line string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		time.Sleep(3 * time.Millisecond) // it has the file open while the names are swapped
		_, err = f.WriteString(line)
		return errors.Join(err, f.Close())
	}},
}

// TestExternalWriter: another program adds lines to a file while edits change its first line.
// Whatever is refused, no line of either is lost.
func TestExternalWriter(t *testing.T) {
	for _, r := range rivals {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld(t)
			w.write("log", "0 edits\n")
			var stop atomic.Bool
			var wg sync.WaitGroup
			lines := 0
			wg.Go(func() {
				for !stop.Load() {
					if err := r.add(w.path("log"), fmt.Sprintf("line %d\n", lines)); err != nil {
						t.Errorf("the other program: %v", err)
						return
					}
					lines++
					time.Sleep(time.Millisecond)
				}
			})
			edits, refusals := 0, 0
			defer wg.Wait()
			defer stop.Store(true)
			var last error
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
				_, err := w.try("edit_file", obj{"path": "log", "edits": []obj{{
					"find": fmt.Sprintf("%d edits\n", edits), "replace": fmt.Sprintf("%d edits\n", edits+1),
				}}})
				switch {
				case err == nil:
					edits++
				case isOne(err, contract.FileChanged):
					refusals++
					last = err
				default:
					t.Log(last, fault.From(last).Detail)
					must(t, err)
				}
			}
			stop.Store(true)
			wg.Wait()
			data, err := os.ReadFile(w.path("log"))
			must(t, err)
			var want strings.Builder
			fmt.Fprintf(&want, "%d edits\n", edits)
			for i := range lines {
				fmt.Fprintf(&want, "line %d\n", i)
			}
			if string(data) != want.String() {
				t.Errorf("after %d edits (%d refused) and %d lines of the other program, the file has %d lines",
					edits, refusals, lines, strings.Count(string(data), "\n")-1)
			}
			t.Logf("%d edits, %d refused, %d lines", edits, refusals, lines)
			if edits+refusals == 0 || lines == 0 {
				t.Error("nothing raced")
			}
			w.clean()
		})
	}
}

// TestExternalReplacement: another program replaces the file in the moment before the swap.
func TestExternalReplacement(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"rename over": func(w *world) {
			w.write("tmp", "theirs")
			must(w.t, os.Rename(w.path("tmp"), w.path("f")))
		},
		"written in place": func(w *world) { w.write("f", "theirs") },
		"same size, same time": func(w *world) {
			in, err := os.Stat(w.path("f"))
			must(w.t, err)
			w.write("f", "0ld 2")
			must(w.t, os.Chtimes(w.path("f"), in.ModTime(), in.ModTime()))
		},
		"removed":           func(w *world) { must(w.t, os.Remove(w.path("f"))) },
		"link":              func(w *world) { must(w.t, os.Remove(w.path("f"))); must(w.t, os.Symlink("a", w.path("f"))) },
		"directory":         func(w *world) { must(w.t, os.Remove(w.path("f"))); must(w.t, os.Mkdir(w.path("f"), 0o755)) },
		"second name":       func(w *world) { must(w.t, os.Link(w.path("f"), w.path("second"))) },
		"mode":              func(w *world) { must(w.t, os.Chmod(w.path("f"), 0o600)) },
		"fifo":              func(w *world) { must(w.t, os.Remove(w.path("f"))); must(w.t, syscall.Mkfifo(w.path("f"), 0o600)) },
		"taken destination": func(w *world) { w.write("g", "theirs") },
	} {
		for _, op := range []obj{
			{"op": "replace_file", "path": "f", "content": "ours"},
			{"op": "delete", "path": "f"},
			{"op": "move", "path": "f", "destPath": "g"},
		} {
			for _, when := range []string{"publish", "swap"} {
				if name == "taken destination" && op["op"] != "move" || name == "mode" && op["op"] == "move" || when == "swap" && op["op"] == "move" {
					continue
				}
				t.Run(name+" "+op["op"].(string)+" "+when, func(t *testing.T) {
					w := newWorld(t)
					w.write("a", "first")
					w.write("f", "old 1")
					plan := w.plan([]obj{{"op": "replace_file", "path": "a", "content": "changed"}, op})
					published := 0
					list := func() map[string]string { // without reading what cannot be read
						all := map[string]string{}
						dir, err := os.ReadDir(w.root)
						must(t, err)
						for _, e := range dir {
							if strings.HasPrefix(e.Name(), ".dodo-") {
								continue
							}
							all[e.Name()] = e.Type().String()
							if e.Type().IsRegular() {
								data, err := os.ReadFile(w.path(e.Name()))
								must(t, err)
								in, err := e.Info()
								must(t, err)
								all[e.Name()] += in.Mode().Perm().String() + string(data)
							}
						}
						delete(all, "a")
						return all
					}
					var theirs map[string]string
					_, err := w.attempt(plan, func(p string) error {
						if p == when {
							if published++; published == 2 {
								between(w)
								theirs = list()
							}
						}
						if p == "lease" {
							return errInjected // this goroutine is the other program: it must not wait for itself
						}
						return nil
					})
					refused(t, err, contract.FileChanged)
					same(t, theirs, list())
					w.holds("a", "first")
					if w.svc.FailAt(nil); name != "fifo" {
						w.clean()
					}
				})
			}
		}
	}
}

// TestWriterThatHoldsTheFile: a program has the file open; what it will write must not be lost.
func TestWriterThatHoldsTheFile(t *testing.T) {
	w := newWorld(t)
	w.write("f", "old")
	f, err := os.OpenFile(w.path("f"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = w.try("write_file", obj{"path": "f", "content": "new"})
	if c := refused(t, err, contract.FileChanged); !strings.Contains(fmt.Sprint(c.Detail["conflicts"]), "open for writing") {
		t.Errorf("detail %v", c.Detail)
	}
	_, err = f.WriteString(" and more")
	must(t, err)
	must(t, f.Close())
	w.holds("f", "old and more")
	w.call("write_file", obj{"path": "f", "content": "new"})
	w.holds("f", "new")
	w.clean()
}

// TestWriterThatWaits: a program opens the file for writing while the names are swapped, and
// has to wait. It must find the file in its place again.
func TestWriterThatWaits(t *testing.T) {
	for _, op := range []obj{{"op": "replace_file", "path": "f", "content": "new"}, {"op": "delete", "path": "f"}} {
		w := newWorld(t)
		w.write("f", "old")
		done := make(chan error)
		began := false
		_, err := w.attempt(w.plan([]obj{op}), func(p string) error {
			if p == "swap" && !began {
				began = true
				go func() {
					f, err := os.OpenFile(w.path("f"), os.O_WRONLY|os.O_APPEND, 0)
					if err == nil {
						_, err = f.WriteString(" and more")
						err = errors.Join(err, f.Close())
					}
					done <- err
				}()
				time.Sleep(50 * time.Millisecond) // until it waits in the kernel
			}
			return nil
		})
		refused(t, err, contract.FileChanged)
		must(t, <-done)
		w.holds("f", "old and more")
		w.clean()
	}
}

// TestReplacedTwice: another program replaces the file before the swap, and yet another
// writes to what is in place before it is swapped back. Both versions are kept, and the
// owner is asked.
func TestReplacedTwice(t *testing.T) {
	w := newWorld(t)
	w.write("f", "old")
	_, err := w.attempt(w.plan([]obj{{"op": "replace_file", "path": "f", "content": "ours"}}), func(p string) error {
		switch p {
		case "swap":
			w.write("tmp", "their first")
			must(t, os.Rename(w.path("tmp"), w.path("f")))
		case "swapped":
			w.write("f", "their second")
		}
		return nil
	})
	f := refused(t, err, contract.PartialRecoveryRequired)
	w.svc.FailAt(nil)
	w.holds("f", "their second")
	kept := false
	for _, text := range w.tree() {
		kept = kept || text == "their first"
	}
	if !kept {
		t.Error("the first version is lost")
	}
	r, err := w.svc.Recover(context.Background(), f.Detail["changesetId"].(string), change.Resolve)
	must(t, err)
	w.holds("f", "their second")
	if len(r.Saved) != 1 {
		t.Fatalf("saved %v", r.Saved)
	}
	w.holds(r.Saved[0], "their first")
	w.clean()
}

// TestCreateNeverOverwrites: the name is taken in the moment before.
func TestCreateNeverOverwrites(t *testing.T) {
	w := newWorld(t)
	plan := w.plan([]obj{{"op": "create", "path": "n", "content": "ours"}})
	_, err := w.attempt(plan, func(p string) error {
		if p == "publish" {
			w.write("n", "theirs")
		}
		return nil
	})
	refused(t, err, contract.FileChanged)
	w.holds("n", "theirs")
	w.clean()
}

// TestRobbedThenDied: another program wrote before the swap and the process died before it
// looked. The next one puts the other program's bytes back.
func TestRobbedThenDied(t *testing.T) {
	w := newWorld(t)
	w.write("f", "old")
	plan := w.plan([]obj{{"op": "replace_file", "path": "f", "content": "ours"}})
	died, err := w.attempt(plan, func(p string) error {
		if p == "publish" {
			stages, err := os.ReadDir(w.root)
			must(t, err)
			for _, e := range stages {
				if strings.HasPrefix(e.Name(), ".dodo-") { // what Exchange does, after the other program
					must(t, os.WriteFile(w.path("x"), []byte("theirs"), 0o644))
					must(t, os.Rename(w.path(e.Name()), w.path("f")))
					must(t, os.Rename(w.path("x"), w.path(e.Name())))
				}
			}
			panic(crash{})
		}
		return nil
	})
	if !died {
		t.Fatal(err)
	}
	w.holds("f", "ours")
	w.reopen()
	must(t, w.svc.Reconcile(context.Background()))
	w.holds("f", "theirs")
	w.clean()
	w.call("write_file", obj{"path": "f", "content": "again"})
}

// TestResolveSavesWhatOnlyAStageHas: what a stage holds that nobody else has survives Resolve.
func TestResolveSavesWhatOnlyAStageHas(t *testing.T) {
	for _, name := range []string{"f", strings.Repeat("é", 127)} { // the other as long as names are
		resolveSaves(t, name)
	}
}

func resolveSaves(t *testing.T, f string) {
	w := newWorld(t)
	w.write(f, "old")
	plan := w.plan([]obj{{"op": "delete", "path": f}})
	died, _ := w.attempt(plan, func(p string) error {
		if p == "sync" {
			panic(crash{})
		}
		return nil
	})
	if !died {
		t.Fatal("it did not die")
	}
	for name := range w.tree() {
		must(t, os.WriteFile(w.path(name), []byte("only here"), 0o644)) // the stage
	}
	w.write(f, "made anew")
	must(t, w.svc.Reconcile(context.Background()))
	list, err := change.Everywhere(context.Background(), w.state, "")
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("waiting: %v", list)
	}
	r, err := w.svc.Recover(context.Background(), list[0].ID, "resolve")
	must(t, err)
	if len(r.Saved) != 1 {
		t.Fatalf("saved %v", r.Saved)
	}
	w.holds(r.Saved[0], "only here")
	w.holds(f, "made anew")
	w.clean()
}

// TestCreatedAlike: another program makes a file with the very bytes that ours would have. It is
// theirs, and stays when the change is taken back.
func TestCreatedAlike(t *testing.T) {
	for _, dies := range []bool{false, true} {
		w := newWorld(t)
		w.write("a", "old")
		plan := w.plan([]obj{{"op": "replace_file", "path": "a", "content": "new"}, {"op": "create", "path": "n", "content": "alike"}})
		published := 0
		died, err := w.attempt(plan, func(p string) error {
			if p == "publish" {
				if published++; published == 2 {
					w.write("n", "alike")
					if dies {
						panic(crash{})
					}
				}
			}
			return nil
		})
		if died != dies {
			t.Fatal(err)
		}
		if dies {
			w.reopen()
			must(t, w.svc.Reconcile(context.Background()))
		} else {
			refused(t, err, contract.FileChanged)
		}
		w.holds("a", "old")
		w.holds("n", "alike")
		w.svc.FailAt(nil)
		w.call("write_file", obj{"path": "other", "content": "x"})
		w.clean()
	}
}

// TestRobbedThenDiedTakingBack: while a change is taken back another program writes to a file,
// and the process dies before it looked at what it displaced. What the stage has is the other
// program's, and nothing else has it.
func TestRobbedThenDiedTakingBack(t *testing.T) {
	for _, action := range []string{"create", "replace_file"} {
		t.Run(action, func(t *testing.T) {
			w := newWorld(t)
			if action != "create" {
				w.write("f", "old")
			}
			w.write("z", "old")
			plan := w.plan([]obj{{"op": action, "path": "f", "content": "ours"}, {"op": "replace_file", "path": "z", "content": "new"}})
			stage, published := "", 0
			died, err := w.attempt(plan, func(p string) error {
				switch p {
				case "publish":
					if published++; published == 2 {
						return errInjected
					}
					for name, text := range w.tree() {
						if strings.HasPrefix(name, ".dodo-") && text == "ours" {
							stage = name
						}
					}
				case "undo": // what is done there, after the other program
					if action == "create" {
						must(t, os.Remove(w.path("f")))
					} else {
						w.write("f", "old")
					}
					w.write(stage, "theirs")
					panic(crash{})
				}
				return nil
			})
			if !died || stage == "" {
				t.Fatal(stage, err)
			}
			w.reopen()
			must(t, w.svc.Reconcile(context.Background()))
			w.holds("z", "old")
			if action == "create" {
				w.holds("f", "theirs")
				w.clean()
				return
			}
			w.holds("f", "old")
			list, err := change.Everywhere(context.Background(), w.state, "")
			must(t, err)
			if len(list) != 1 {
				t.Fatalf("waiting: %v, files: %v", list, w.tree())
			}
			r, err := w.svc.Recover(context.Background(), list[0].ID, change.Resolve)
			must(t, err)
			if len(r.Saved) != 1 {
				t.Fatalf("saved %v", r.Saved)
			}
			w.holds(r.Saved[0], "theirs")
			w.clean()
		})
	}
}

// TestGrownLarge: another program makes a file so large that nobody can wait until it is read, at
// every moment at which a change looks at it.
func TestGrownLarge(t *testing.T) {
	const large = 48 << 30 // without blocks: it takes no room, and half a minute to read
	for _, when := range []string{"begin", "before", "swap", "undo"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "first")
			w.write("f", "old")
			plan := w.plan([]obj{{"op": "replace_file", "path": "f", "content": "ours"}, {"op": "replace_file", "path": "a", "content": "changed"}})
			grow := func() {
				if err := os.Truncate(w.path("f"), large); err != nil {
					t.Skip("the file system has no such files") // tmpfs has
				}
			}
			if when == "before" {
				grow()
			}
			begun, swaps, published := time.Now(), 0, 0
			_, err := w.attempt(plan, func(p string) error {
				switch p {
				case "lease":
					return errInjected // this goroutine is the other program
				case "swap":
					if swaps++; swaps == 1 && when == p {
						grow()
					}
				case "publish":
					if published++; published == 2 && when == "undo" {
						grow()
						return errInjected
					}
				case "begin":
					if when == p {
						grow()
					}
				}
				return nil
			})
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if when == "undo" {
				refused(t, err, contract.PartialRecoveryRequired)
			} else {
				refused(t, err, contract.FileChanged)
			}
			w.holds("a", "first")
			if in, err := os.Stat(w.path("f")); err != nil || in.Size() != large {
				t.Errorf("%v, %v", in, err)
			}
		})
	}
}

// TestWaitingEndsByItself: what was unclear because another program was in the middle of
// something is judged anew; what is still unclear, or would lose bytes, waits for the owner.
func TestWaitingEndsByItself(t *testing.T) {
	old, ours := "old", "ours"
	for name, c := range map[string]struct {
		op          obj
		path, stage string // what stands there when the next change comes; empty for nothing
		ends        change.Status
	}{
		"as before":                   {obj{"op": "replace_file", "path": "f", "content": ours}, old, ours, change.Failed},
		"saved by another, ours left": {obj{"op": "replace_file", "path": "f", "content": ours}, "theirs", ours, change.Failed},
		"whole":                       {obj{"op": "replace_file", "path": "f", "content": ours}, ours, old, change.Committed},
		"deleted":                     {obj{"op": "delete", "path": "f"}, "", old, change.Committed},
		"made anew, ours left":        {obj{"op": "delete", "path": "f"}, "theirs", "", change.Failed},
		"unclear":                     {obj{"op": "replace_file", "path": "f", "content": ours}, "theirs", old, change.RecoveryRequired},
		"only in the stage":           {obj{"op": "replace_file", "path": "f", "content": ours}, old, "theirs", change.RecoveryRequired},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("f", old)
			stage := ""
			died, err := w.attempt(w.plan([]obj{c.op}), func(p string) error {
				if p == "sync" {
					panic(crash{})
				}
				return nil
			})
			if !died {
				t.Fatal(err)
			}
			w.svc.FailAt(nil)
			for name := range w.tree() {
				if strings.HasPrefix(name, ".dodo-") {
					stage = name
				}
			}
			w.write("f", "in between") // with the stage as it is: unclear
			must(t, w.svc.Reconcile(context.Background()))
			list, err := change.Everywhere(context.Background(), w.state, "")
			must(t, err)
			if len(list) != 1 {
				t.Fatalf("waiting: %v", list)
			}
			for name, text := range map[string]string{"f": c.path, stage: c.stage} {
				if text == "" {
					must(t, os.Remove(w.path(name)))
				} else {
					w.write(name, text)
				}
			}
			before := w.visible()
			_, err = w.try("write_file", obj{"path": "other", "content": "x"})
			if got := w.status(list[0].ID); got != string(c.ends) {
				t.Errorf("it is %s (%v), want %s", got, err, c.ends)
			}
			if c.ends == change.RecoveryRequired {
				refused(t, err, contract.RecoveryRequired)
				w.holds(stage, c.stage)
			} else {
				must(t, err)
				must(t, os.Remove(w.path("other")))
				w.clean()
			}
			same(t, before, w.visible())
		})
	}
}
