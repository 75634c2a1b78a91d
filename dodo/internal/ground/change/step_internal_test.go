package change

import (
	"strings"
	"testing"
)

// TestStanding: what is judged of a step from what is on the disk. old and new are the bytes of
// the plan, "?" others, "-" nothing, "d" a directory.
func TestStanding(t *testing.T) {
	sees := func(word string) seen {
		switch word {
		case "-":
			return seen{}
		case "d":
			return seen{what: directory}
		}
		return seen{what: file, hash: word}
	}
	names := map[standing]string{unclear: "unclear", before: "before", after: "after", robbed: "robbed", foreign: "foreign"}
	for action, table := range map[Action]string{
		// path, stage: standing
		Create: `- -: before, - new: before, - ?: robbed, - d: robbed, new -: after, new new: foreign, new ?: unclear,
			? new: foreign, ? -: unclear, ? ?: unclear, d new: foreign, d -: unclear`,
		Modify: `old -: before, old new: before, old old: before, old ?: unclear, old d: unclear, new old: after, new -: after, new new: foreign, new ?: robbed,
			? new: foreign, ? -: foreign, - new: foreign, - -: foreign, ? old: unclear, ? ?: unclear, - old: unclear, d old: unclear`,
		Delete: `old -: before, - old: after, - ?: robbed, - -: foreign, ? -: foreign, d -: foreign,
			? old: unclear, old old: unclear, ? ?: unclear`,
		MakeDir: `- -: before, d -: after, ? -: foreign`,
		// path, destination: standing
		Move: `old -: before, - old: after, - ?: robbed, ? -: foreign, - -: foreign, old ?: foreign, old old: unclear, ? old: unclear, ? ?: unclear`,
	} {
		st := step{action: action, before: "old", after: "new"}
		if action == Move {
			st.after = "old"
		}
		for row := range strings.SplitSeq(table, ",") {
			w := strings.Fields(strings.ReplaceAll(row, ":", ""))
			v := sight{path: sees(w[0])}
			if action == Move {
				v.dest = sees(w[1])
			} else {
				v.stage = sees(w[1])
			}
			if got := names[st.standing(v)]; got != w[2] {
				t.Errorf("%s with %s and %s is %s, want %s", action, w[0], w[1], got, w[2])
			}
		}
	}
}

func TestJudge(t *testing.T) {
	for want, cases := range map[verdict][][]standing{
		complete: {{}, {after}, {after, after}},
		takeBack: {{before}, {after, before}, {foreign}, {robbed, after}},
		ask:      {{unclear}, {after, unclear}, {unclear, before, robbed}},
	} {
		for _, c := range cases {
			if got := judge(c); got != want {
				t.Errorf("judge(%v) = %d, want %d", c, got, want)
			}
		}
	}
}

func TestSearchable(t *testing.T) {
	for text, want := range map[string]string{
		"word": "word", "a\nlonger\nb": "longer", "\n\r\n": "", "x\r\ny": "x",
		strings.Repeat("é", 600): strings.Repeat("é", 512), "\nlast": "last",
	} {
		if got := searchable(text); got != want {
			t.Errorf("searchable(%.20q) = %.20q, want %.20q", text, got, want)
		}
	}
}
