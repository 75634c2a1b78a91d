package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"localmcp/internal/op"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/transcript"
)

// The window: relations, order, size; both forms of a citation.
func TestInspectWindow(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "one"}, say{"assistant", "two"}, say{"user", "three marzipan"}, say{"assistant", "four"}, say{"user", "five"}, say{"user", "six"})
			c := w.one("marzipan")
			for _, id := range []string{c.EvidenceID, c.EvidenceURI, "\t" + c.EvidenceID + "\n"} {
				got := w.verified(id)
				var texts, relations []string
				for _, s := range got.Window {
					texts, relations = append(texts, s.Text), append(relations, s.Relation)
				}
				if strings.Join(texts, "|") != "one|two|three marzipan|four|five" || strings.Join(relations, " ") != "before before target after after" {
					t.Errorf("%q %q", texts, relations)
				}
				if got.EvidenceID != c.EvidenceID || got.Message != "" || got.Next != nil || got.Masked != 0 {
					t.Errorf("%+v", got)
				}
				l := got.Locator
				record := w.read(rel)[l.ByteStart:l.ByteEnd]
				sum := sha256.Sum256([]byte(record))
				if l.RecordDigest != hex.EncodeToString(sum[:]) || !strings.Contains(record, "three marzipan") || strings.Count(w.read(rel)[:l.ByteStart], "\n") != int(l.Line)-1 || l.SpanOrdinal != 0 || l.EntryID != c.EntryID || l.SessionID != c.SessionID {
					t.Errorf("%+v", l)
				}
				if prefix := sha256.Sum256([]byte(w.read(rel))); l.PrefixDigest != hex.EncodeToString(prefix[:]) {
					t.Errorf("prefix digest %s", l.PrefixDigest)
				}
			}
			for window, n := range map[int]int{0: 1, 1: 3, 10: 6, 99: 6, -1: 1} {
				got, err := w.e().Inspect(t.Context(), engine.InspectIn{EvidenceID: c.EvidenceID, Window: &window})
				if err != nil || len(got.Window) != n {
					t.Errorf("window %d: %d spans", window, len(got.Window))
				}
			}
		})
	}
}

// Long texts are cut at characters, and can be read on.
func TestInspectLongText(t *testing.T) {
	w := newWorld(t)
	text := "marzipan " + strings.Repeat("日本語の文 ", 800)
	w.session("claude-code", "s1", say{"user", strings.Repeat("ä", 600)}, say{"user", text})
	c := w.one("marzipan")
	got := w.verified(c.EvidenceID)
	if n := len(got.Target.Text); n > 4096 || n < 4090 || got.Target.OmittedBytes != len(text)-n || !strings.HasPrefix(text, got.Target.Text) {
		t.Errorf("%d bytes, %d omitted", n, got.Target.OmittedBytes)
	}
	if b := got.Window[0]; len(b.Text) != 512 || b.OmittedBytes != 1200-512 {
		t.Errorf("neighbour: %d bytes, %d omitted", len(b.Text), b.OmittedBytes)
	}
	var all strings.Builder
	for all.Len() < len(text) {
		got, err := w.e().Inspect(t.Context(), engine.InspectIn{EvidenceID: c.EvidenceID, TextOffset: all.Len()})
		if err != nil || got.Outcome != engine.Verified || got.Target.Text == "" {
			t.Fatal(err, got.Text())
		}
		all.WriteString(got.Target.Text)
	}
	if all.String() != text {
		t.Error("read on gives another text")
	}
	// Behind the end there is nothing to verify, whatever became of the source.
	behind := func(what string) {
		t.Helper()
		for _, offset := range []int{len(text), len(text) + 1, math.MaxInt} {
			_, err := w.e().Inspect(t.Context(), engine.InspectIn{EvidenceID: c.EvidenceID, TextOffset: offset})
			if want := fmt.Sprintf("text_offset must be less than %d, where the text ends, not %d", len(text), offset); !errors.Is(err, op.InvalidArgument) || err.Error() != want {
				t.Errorf("%s: offset %d: %v", what, offset, err)
			}
		}
	}
	behind("verified")
	w.remove(place("claude-code", "s1"))
	behind("missing")
}

// Each outcome that is not verified.
func TestInspectOutcomes(t *testing.T) {
	for _, o := range []string{"omp", "claude-code", "codex"} {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "one"}, say{"user", "two marzipan"}, say{"user", "three"})
			whole := w.read(rel)
			id := w.one("marzipan").EvidenceID
			expect := func(name, outcome string, target bool, change func()) {
				t.Helper()
				change()
				got := w.inspect(id)
				if got.Outcome != outcome || got.Conclusive != (outcome == engine.Verified) || (got.Target != nil) != target || outcome != engine.Verified && len(got.Window) != 0 {
					t.Errorf("%s: %s", name, got.Text())
				}
				if target && got.Target.Text != "two marzipan" {
					t.Errorf("%s: target %q", name, got.Target.Text)
				}
				if got.Next != nil && got.Next.Target == "mooncite rebuild" {
					t.Errorf("%s: a rebuild is advised", name)
				}
			}
			expect("edited", engine.Stale, true, func() { w.overwrite(rel, strings.Replace(whole, "marzipan", "walnutty", 1)) })
			expect("as it was", engine.Verified, true, func() { w.overwrite(rel, whole); w.recall("marzipan") })
			expect("cut", engine.Stale, true, func() { w.overwrite(rel, whole[:len(whole)/3]) })
			expect("not JSON", engine.Corrupt, false, func() { w.overwrite(rel, whole); w.recall("marzipan"); w.overwrite(rel, damage(whole, "marzipan")) })
			expect("another file", engine.Stale, true, func() {
				w.overwrite(rel, whole)
				w.recall("marzipan")
				w.overwrite(rel, strings.Repeat("x", len(whole)))
			})
			expect("gone", engine.Missing, true, func() { w.overwrite(rel, whole); w.recall("marzipan"); w.remove(rel) })
			expect("back", engine.Verified, true, func() { w.Write(t, rel, whole) })
			// Text before it: the record is found where it is now.
			expect("moved", engine.Verified, true, func() {
				moved := strings.Replace(whole, `"one"`, `"one and much more"`, 1)
				if o == "codex" {
					moved = strings.Replace(whole, `one"`, `one and much more"`, 1)
				}
				w.overwrite(rel, moved)
			})
			got := w.inspect(id)
			record := w.read(rel)[got.Locator.ByteStart:got.Locator.ByteEnd]
			if !strings.Contains(record, "marzipan") {
				t.Errorf("the place is another's: %q", record)
			}
		})
	}
	w := newWorld(t)
	w.session("pi", "s1", say{"user", "one"})
	good := w.one("one").EvidenceID
	for _, id := range []string{"", "x", "mooncite:pi:00", good + "0", strings.Replace(good, ":0", ":1", 1), strings.Replace(good, "pi", "omp", 1), "mooncite://pi/x/y/z/0"} {
		if got := w.inspect(id); got.Outcome != engine.Unavailable || got.Target != nil || got.Next == nil || got.Next.Target != engine.ToolRecall {
			t.Errorf("%q: %s", id, got.Text())
		}
	}
}

// damage makes the line that holds a word no JSON and keeps its length.
func damage(text, word string) string {
	at := strings.Index(text, word)
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := at + strings.IndexByte(text[at:], '\n')
	return text[:from] + strings.Repeat("x", to-from) + text[to:]
}

// A changed neighbour is left out and named; the target stands.
func TestChangedNeighbour(t *testing.T) {
	w := newWorld(t)
	rel := w.session("claude-code", "s1", say{"user", "one"}, say{"user", "two marzipan"}, say{"user", "three"})
	id := w.one("marzipan").EvidenceID
	w.overwrite(rel, strings.Replace(w.read(rel), "three", "THREE", 1))
	got := w.verified(id)
	if len(got.Window) != 2 || got.Window[0].Text != "one" || !strings.Contains(got.Message, "1 neighbouring span") {
		t.Errorf("%s", got.Text())
	}
}

// A record that was written anew with the same text is found again.
func TestRecordWrittenAnew(t *testing.T) {
	w := newWorld(t)
	rel := place("claude-code", "s1")
	w.Write(t, rel, lines(claudeRecord("u1", 1, "one marzipan", nil), claudeRecord("u2", 2, "two", nil)))
	id := w.one("marzipan").EvidenceID
	w.overwrite(rel, lines(claudeRecord("u1", 1, "one marzipan", obj{"gitBranch": "main"}), claudeRecord("u2", 2, "two", nil)))
	if got := w.verified(id); got.Target.Text != "one marzipan" {
		t.Errorf("%s", got.Text())
	}
}

// Packed rollouts are read, inspected and told from their plain form.
func TestPackedRollout(t *testing.T) {
	w := newWorld(t)
	text := header("codex", "a") + turns("codex", "", 0, say{"user", "the amber lantern"}, say{"assistant", "marzipan"})
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	rel := codexDir + "rollout-a.jsonl.zst"
	w.Write(t, rel, b.String())
	c := w.one("amber lantern")
	got := w.verified(c.EvidenceID)
	if record := text[got.Locator.ByteStart:got.Locator.ByteEnd]; !strings.Contains(record, "amber lantern") || len(got.Window) != 2 {
		t.Errorf("%s", got.Text())
	}
	w.absent("zeppelin")
	// A plain file of the same name wins; its citations are its own.
	w.Write(t, codexDir+"rollout-a.jsonl", text)
	out := w.recall("amber lantern")
	if len(out.Candidates) != 1 {
		t.Errorf("%s", out.Text())
	}
	w.verified(out.Candidates[0].EvidenceID)
	// A damaged one is named.
	w.Write(t, codexDir+"rollout-b.jsonl.zst", b.String()[:b.Len()/2])
	w.one("amber lantern")
	if st := w.status(); len(st.Problems) != 1 || st.Problems[0].Name != "rollout-b.jsonl.zst" {
		t.Errorf("%s", st.Text())
	}
}

// Secrets are masked in excerpts and windows, never in the source, and are counted.
func TestSecretsAreMasked(t *testing.T) {
	w := newWorld(t)
	key := "sk-ant-" + "api03-" + strings.Repeat("aB3x", 22)
	rel := w.session("claude-code", "s1", say{"user", "my key is " + key + " for marzipan"}, say{"assistant", "do not say " + key})
	before := testenv.Fingerprint(t, w.Path(claudeDir))
	out := w.recall("marzipan")
	got := w.verified(out.Candidates[0].EvidenceID)
	if out.Masked != 1 || out.Candidates[0].Masked != 1 || got.Masked != 2 || got.Target.Masked != 1 {
		t.Errorf("masked %d, %d", out.Masked, got.Masked)
	}
	for _, text := range []string{whole(t, out), whole(t, got)} {
		if strings.Contains(text, key[10:40]) || !strings.Contains(text, "[masked: anthropic key]") {
			t.Errorf("%s", text)
		}
	}
	if !strings.Contains(w.read(rel), key) || testenv.Fingerprint(t, w.Path(claudeDir)) != before {
		t.Error("the source was changed")
	}
	// Text that speaks of keys.
	w.session("claude-code", "s2", say{"user", "the walrus pastes -----BEGIN RSA PRIVATE KEY----- and no more"})
	if c := w.one("walrus"); !strings.HasSuffix(c.Excerpt, "and no more") {
		t.Errorf("%q", c.Excerpt)
	}
}

// An export: conversations added, changed, moved and taken away.
func TestExport(t *testing.T) {
	w := newWorld(t)
	rel := place("chatgpt", "x")
	a := conversation("c1", say{"user", "alpha one"}, say{"assistant", "beta two"})
	b := conversation("c2", say{"user", "gamma three"})
	w.Write(t, rel, export(a, b))
	alpha, gamma := w.one("alpha"), w.one("gamma")
	if alpha.RecordProvenance != "copy" || alpha.CompactionState != "none" || alpha.EventTimestamp == nil || *alpha.EventTimestamp != "2031-05-01T10:00:00.000Z" {
		t.Errorf("%+v", alpha)
	}
	if !strings.HasSuffix(gamma.SessionID, ":c2") {
		t.Errorf("session %s", gamma.SessionID)
	}
	if out := w.ask(engine.RecallIn{Query: "gamma", SessionID: "c2"}); len(out.Candidates) != 1 {
		t.Errorf("a bare conversation id: %s", out.Text())
	}
	got := w.verified(alpha.EvidenceID)
	var whole map[string]any
	if record := w.read(rel)[got.Locator.ByteStart:got.Locator.ByteEnd]; json.Unmarshal([]byte(record), &whole) != nil || whole["conversation_id"] != "c1" || len(got.Window) != 2 {
		t.Errorf("%s", got.Text())
	}
	// Both moved, one new in front, one changed.
	b2 := conversation("c2", say{"user", "gamma three"}, say{"assistant", "delta four"})
	w.Write(t, rel, export(conversation("c0", say{"user", "omega zero"}), b2, a))
	if got := w.verified(alpha.EvidenceID); got.Target.Text != "alpha one" {
		t.Errorf("moved: %s", got.Text())
	}
	if got := w.verified(gamma.EvidenceID); got.Target.Text != "gamma three" {
		t.Errorf("grown conversation: %s", got.Text())
	}
	for _, word := range []string{"omega", "delta", "alpha", "beta", "gamma"} {
		w.verified(w.one(word).EvidenceID)
	}
	if st := w.status(); st.EvidenceSpans != 5 || st.SourceFiles != 1 || st.Outcome != engine.Ready {
		t.Errorf("%s", st.Text())
	}
	w.Write(t, rel, export(b2))
	w.absent("alpha")
	w.absent("omega")
	if got := w.inspect(alpha.EvidenceID); got.Outcome != engine.Unavailable {
		t.Errorf("%s", got.Text())
	}
	st := w.status()
	if st.EvidenceSpans != 2 {
		t.Errorf("%s", st.Text())
	}
	if again := w.rebuild(); again.Generation != st.Generation || again.EvidenceSpans != 2 || again.Records != st.Records {
		t.Errorf("%s\n%s", st.Text(), again.StatusOut.Text())
	}
}

// Branches of a conversation are found and marked.
func TestExportBranches(t *testing.T) {
	w := newWorld(t)
	c := conversation("c1", say{"user", "alpha one"}, say{"assistant", "beta two"})
	m := c["mapping"].(obj)
	m["other"] = obj{"id": "other", "parent": "c1-n0", "children": []any{}, "message": obj{"id": "m9", "author": obj{"role": "assistant"}, "create_time": 1.5, "content": obj{"content_type": "text", "parts": []any{"an earlier marzipan answer"}}}}
	w.Write(t, place("chatgpt", "x"), export(c))
	if got := w.one("marzipan"); got.BranchState != "off_branch" || *got.EventTimestamp != "1970-01-01T00:00:01.500Z" {
		t.Errorf("%+v", got)
	}
	if got := w.one("beta"); got.BranchState != "current" {
		t.Errorf("%+v", got)
	}
}

// Branches and compaction of a growing Pi session: earlier spans are labelled anew.
func TestBranchSwitchRelabels(t *testing.T) {
	w := newWorld(t)
	rel := w.session("pi", "s1", say{"user", "alpha root"}, say{"assistant", "beta old branch"})
	if c := w.one("beta"); c.BranchState != "current" || c.CompactionState != "none" {
		t.Errorf("%+v", c)
	}
	w.append(rel, lines(obj{"type": "message", "id": "n1", "parentId": "s1-0", "timestamp": at(7), "message": obj{"role": "assistant", "content": "gamma new branch"}}))
	if c := w.one("gamma"); c.BranchState != "current" {
		t.Errorf("%+v", c)
	}
	if c := w.one("beta"); c.BranchState != "off_branch" {
		t.Errorf("%+v", c)
	}
	w.append(rel, lines(obj{"type": "compaction", "id": "k1", "parentId": "n1", "timestamp": at(8), "summary": "what was said of marzipan"},
		obj{"type": "message", "id": "n2", "parentId": "k1", "timestamp": at(9), "message": obj{"role": "user", "content": "delta after"}}))
	for query, want := range map[string]string{"marzipan": "summary", "delta": "kept_after_compaction", "gamma": "pre_compaction"} {
		if c := w.one(query); c.CompactionState != want {
			t.Errorf("%s: %s", query, c.CompactionState)
		}
	}
	labels := func() (all []string) {
		for _, query := range []string{"alpha", "beta", "gamma", "marzipan", "delta"} {
			c := w.one(query)
			all = append(all, c.EvidenceID+c.BranchState+c.CompactionState)
		}
		return all
	}
	grown := labels()
	w.rebuild()
	if fresh := labels(); !slices.Equal(grown, fresh) {
		t.Errorf("grown %q\nread whole %q", grown, fresh)
	}
}

// Every candidate of any recall, inspected at once, is verified, and its text is part
// of a decoded value of the record's bytes. Over all fixtures of all formats and the
// sample histories.
func TestEveryCandidateVerifies(t *testing.T) {
	for name, fill := range map[string]func(w *world){
		"samples": func(w *world) { copyTree(t, "../../../samples/home", w.Dir) },
		"fixtures": func(w *world) {
			for origin, dir := range map[string]string{"pi": ".pi/agent/sessions", "omp": ".omp/agent/sessions", "claude-code": ".claude/projects", "codex": ".codex/sessions", "chatgpt": "incoming/chatgpt-share-archive"} {
				copyTree(t, filepath.Join("../transcript/testdata", origin), w.Path(dir))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fill(w)
			before := testenv.Fingerprint(t, w.Path(".claude")) + testenv.Fingerprint(t, w.Path(".codex"))
			n, first := w.checkAll()
			if n < 20 {
				t.Errorf("only %d candidates", n)
			}
			if testenv.Fingerprint(t, w.Path(".claude"))+testenv.Fingerprint(t, w.Path(".codex")) != before {
				t.Error("a history was touched")
			}
			w.reopen()
			w.Set("MOONCITE_STATE_DIR", w.Path("another-state"))
			if _, second := w.checkAll(); !slices.Equal(first, second) {
				t.Errorf("%d citations, then %d: they differ", len(first), len(second))
			}
		})
	}
}

// checkAll asks for words of every origin and role and inspects every candidate.
func (w *world) checkAll() (n int, all []string) {
	w.t.Helper()
	seen := map[string]bool{}
	for _, o := range evidence.Origins() {
		for _, order := range []string{"oldest", "newest"} {
			for _, query := range []string{"the", "a", "of to in", "is it", "and", "i", "you", "we", "file go test", "error", "1 2 3 4 5", "の", "/"} {
				cursor := ""
				for range 3 {
					out := w.ask(engine.RecallIn{Query: query, SourceOrigin: string(o), Order: order, Limit: 20, Cursor: cursor})
					if strings.Contains(whole(w.t, out), w.Dir) {
						w.t.Errorf("%s %q: a path is shown", o, query)
					}
					for _, c := range out.Candidates {
						if !seen[c.EvidenceID] {
							seen[c.EvidenceID] = true
							all = append(all, c.EvidenceID)
							w.check(&c)
							n++
						}
					}
					if out.NextCursor == nil {
						break
					}
					cursor = *out.NextCursor
				}
			}
		}
	}
	slices.Sort(all)
	return n, all
}

func (w *world) check(c *engine.Candidate) {
	w.t.Helper()
	got := w.inspect(c.EvidenceID)
	if got.Outcome != engine.Verified {
		w.t.Errorf("%s: %s", c.EvidenceID, got.Text())
		return
	}
	if byURI := w.inspect(c.EvidenceURI); byURI.Outcome != engine.Verified || byURI.EvidenceID != c.EvidenceID {
		w.t.Errorf("%s: %s", c.EvidenceURI, byURI.Text())
	}
	text := got.Target.Text
	if got.Target.Masked > 0 {
		return
	}
	l := got.Locator
	data := w.bytesOf(l)
	if l.ByteEnd > int64(len(data)) {
		w.t.Errorf("%s: bytes [%d,%d) of %d", c.EvidenceID, l.ByteStart, l.ByteEnd, len(data))
		return
	}
	record := data[l.ByteStart:l.ByteEnd]
	if sum := sha256.Sum256(record); hex.EncodeToString(sum[:]) != l.RecordDigest {
		w.t.Errorf("%s: the record's digest is another", c.EvidenceID)
	}
	if !holds(record, text) {
		w.t.Errorf("%s: no value of %.300q holds %.200q", c.EvidenceID, record, text)
	}
}

// bytesOf reads the file a citation names, whichever root it is below.
func (w *world) bytesOf(l *engine.Place) []byte {
	w.t.Helper()
	for _, root := range w.places().Resolve().Roots {
		if string(root.Origin) != l.SourceOrigin {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root.Dir, filepath.FromSlash(l.RelativePath)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && strings.HasSuffix(l.RelativePath, ".zst") {
			var z io.ReadCloser
			if z, err = transcript.Unpack(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(z)
			}
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return data
	}
	w.t.Fatalf("no file of %+v", l)
	return nil
}

// holds reports whether a string of a JSON value holds text, as answers show text. A
// string that is JSON itself is looked into.
func holds(record []byte, text string) bool {
	dec := json.NewDecoder(bytes.NewReader(record))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return false
	}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case string:
			if strings.Contains(evidence.Visible(v), text) {
				return true
			}
			return strings.HasPrefix(strings.TrimSpace(v), "{") && holds([]byte(v), text)
		case []any:
			return slices.ContainsFunc(v, walk)
		case map[string]any:
			for _, x := range v {
				if walk(x) {
					return true
				}
			}
		}
		return false
	}
	return walk(v)
}
