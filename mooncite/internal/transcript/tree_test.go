package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A conversation that only goes on must not cost a second reading for labels,
// wherever the reader came by: parallel tool calls, notices, compaction, last-prompt.
func TestGoingOnRelabelsNothing(t *testing.T) {
	branching := []string{"2222", "5555", "_v2", "s-harbour"}
next:
	for _, x := range fixtures(t) {
		if ShapeOf(x.file) == Document || x.file.Origin != "pi" && x.file.Origin != "omp" && x.file.Origin != "claude-code" {
			continue
		}
		for _, b := range branching {
			if strings.Contains(x.path, b) {
				continue next
			}
		}
		damaged := strings.Contains(x.path, "damaged") || strings.Contains(x.path, "6666")
		for _, cut := range boundaries(x.data) {
			head, err := read(x.file, x.data[:cut], Position{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tail, err := read(x.file, x.data[cut:], head.pos, head.res.State)
			if err != nil {
				continue // TestResume looks at that
			}
			if tail.res.Relabel && !damaged {
				t.Errorf("%s: cut at %d relabels", x.path, cut)
			}
		}
	}
}

// Small trees as "id<parent" in file order, "*" before a side record, "#g" behind one
// of a group; off is what must be off the branch.
func TestBranches(t *testing.T) {
	for name, x := range map[string]struct{ records, off string }{
		"a line":                {"a b<a c<b", ""},
		"an edit":               {"a b<a c<b d<a e<d", "b c"},
		"a new root":            {"a b<a c d<c", "a b"},
		"a parent nowhere":      {"a b<a c<zz", "a b"},
		"a parent behind":       {"a<b b c<b", "a"},
		"parallel calls":        {"u a1#g<u a2#g<a1 *r1<a1 *r2<a2 v<r2", ""},
		"parallel, first last":  {"u a1#g<u a2#g<a1 *r2<a2 *r1<a1 v<r1", ""},
		"results not all there": {"u a1#g<u a2#g<a1 *r1<a1", ""},
		"notices":               {"u *n<u a<u *m<a *o<m v<a", ""},
		"a late result":         {"u a#g<u v<a *r<a", ""},
		"a result edited away":  {"u a#g<u *r<a v<r w<u", "a r v"},
	} {
		// Every way to come by in two readings must agree with one reading.
		records := strings.Fields(x.records)
		whole, relabel := runTree(newTree(treeState{}), records)
		if relabel {
			t.Errorf("%s: a first reading relabels", name)
		}
		if d := cmp.Diff(x.off, strings.Join(whole, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		for cut := 1; cut < len(records); cut++ {
			head := newTree(treeState{})
			before, _ := runTreeIn(&head, records[:cut])
			tail := newTree(head.state())
			after, relabel := runTreeIn(&tail, records[cut:])
			if got := strings.Join(append(before, after...), " "); got != x.off && !relabel {
				t.Errorf("%s, cut at %d: off %q, want %q", name, cut, got, x.off)
			}
		}
	}
}

func runTree(tr tree, records []string) ([]string, bool) { return runTreeIn(&tr, records) }

func runTreeIn(tr *tree, records []string) (off []string, relabel bool) {
	var ids []string
	for _, r := range records {
		var n node
		r, n.side = strings.CutPrefix(r, "*")
		id, parent, _ := strings.Cut(r, "<")
		id, n.group, _ = strings.Cut(id, "#")
		tr.emitted(tr.add(id, parent, n))
		ids = append(ids, id)
	}
	bits, relabel := tr.labels()
	for i, id := range ids {
		if bits.Has(i) {
			off = append(off, id)
		}
	}
	return off, relabel
}

// A long session keeps a small state.
func TestStateStaysSmall(t *testing.T) {
	var b strings.Builder
	parent := "null"
	for i := range 20_000 {
		b.WriteString(claudeLine(i, parent, "turn "+strings.Repeat("x", i%50)) + "\n")
		parent = fmt.Sprintf("u%d", i)
		if i%3 == 0 {
			fmt.Fprintf(&b, `{"type":"progress","uuid":"p%d","parentUuid":"u%d"}`+"\n", i, i)
		}
	}
	got, err := read(claudeFile, []byte(b.String()), Position{}, nil)
	if err != nil || len(got.all) != 20_000 || len(got.res.State) > 8<<10 {
		t.Errorf("%d entries, state of %d bytes, %v", len(got.all), len(got.res.State), err)
	}
}

func TestClaudeParts(t *testing.T) {
	for in, want := range map[string]string{
		"just words":                                      "user: just words",
		"<system-reminder>a</system-reminder>":            "system: <system-reminder>a</system-reminder>",
		"words\n<system-reminder>a\n</system-reminder>\n": "user: words | system: <system-reminder>a\n</system-reminder>",
		"<system-reminder>a</system-reminder>\n\nwords":   "user: words | system: <system-reminder>a</system-reminder>",

		"x <system-reminder>1</system-reminder> y <system-reminder>2</system-reminder>": "user: x | user: y | system: <system-reminder>1</system-reminder> | system: <system-reminder>2</system-reminder>",
		"what does `<system-reminder>a</system-reminder>` mean?":                        "user: what does `<system-reminder>a</system-reminder>` mean?",
		"an open <system-reminder> stays":                                               "user: an open <system-reminder> stays",
		"[Request interrupted by user for tool use]":                                    "system: [Request interrupted by user for tool use]",
		"<command-name>/x</command-name> and more":                                      "user: <command-name>/x</command-name> and more",
		"<command-name>/x</command-name>\n <command-args></command-args>":               "system: <command-name>/x</command-name>\n <command-args></command-args>",
		"<bash-input>ls</bash-input>":                                                   "user: <bash-input>ls</bash-input>",
		"<bash-stdout>a < b</bash-stdout><bash-stderr>c</bash-stderr>":                  "tool: <bash-stdout>a < b</bash-stdout><bash-stderr>c</bash-stderr>",
		"<teammate-message id=\"x\">hi</teammate-message>":                              "system: <teammate-message id=\"x\">hi</teammate-message>",
		"<div>mine</div>": "user: <div>mine</div>",
		"<":               "user: <",
		"<bash-input":     "user: <bash-input",
	} {
		var got []string
		for _, p := range claudeParts(in) {
			got = append(got, string(p.role)+": "+p.text)
			if !strings.Contains(in, p.text) {
				t.Errorf("%q: %q is not in it", in, p.text)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " | ")); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
}
