package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// Both forms of a citation resolve to one anchor: ids and digests, no text, no path.
func TestResolveAnchors(t *testing.T) {
	w := newWorld(t)
	const text = "The amber lantern hangs in the porch."
	const record = `{"type":"user","uuid":"u1","parentUuid":null,"cwd":"/w/app","timestamp":"2031-05-01T10:00:01Z","message":{"role":"user","content":"` + text + `"}}`
	w.Write(t, claudeDir+"s1.jsonl", record+"\n")
	c := w.one("amber lantern")
	now, all, err := w.e().ResolveAnchors(t.Context(), []evidence.Ref{{Locator: c.EvidenceID}, {Locator: c.EvidenceURI, Session: c.SessionID}, {Locator: "nonsense"},
		{Locator: "mooncite:pi:000000000000000000000000:000000000000000000000000:000000000000000000000000:0"}, {Locator: c.EvidenceID, Session: "pi:" + strings.Repeat("0", 64) + ":s1"}})
	if err != nil {
		t.Fatal(err)
	}
	if now != (evidence.Projection{Freshness: "current", Trust: "full_verified", Coverage: "complete"}) {
		t.Errorf("%+v", now)
	}
	sum := func(s string) string { d := sha256.Sum256([]byte(s)); return hex.EncodeToString(d[:]) }
	want := &evidence.Anchor{ID: c.EvidenceID, URI: c.EvidenceURI, Origin: evidence.Claude, Root: strings.Split(c.SessionID, ":")[1], Project: c.Project, Session: c.SessionID,
		Record: sum(record)[:32], Span: sum(text), Role: evidence.User, Kind: c.SourceKind, Branch: "current", Compaction: "none"}
	for i, r := range all[:2] {
		if diff := cmp.Diff(evidence.Resolution{Anchor: want}, r); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	for i, r := range all[2:4] {
		if r != (evidence.Resolution{}) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if !all[4].Withdrawn || all[4].Anchor != nil {
		t.Errorf("a root that is not authorized: %+v", all[4])
	}
	if shown := fmt.Sprintf("%+v", *all[0].Anchor); strings.Contains(shown, "lantern") || strings.Contains(shown, w.Dir) {
		t.Errorf("text or a path: %s", shown)
	}
	proof, err := w.e().Prove(t.Context(), c.EvidenceURI, 0)
	if err != nil || proof.Outcome != engine.Verified || proof.ID != c.EvidenceID || proof.Record != sum(record) || len(proof.Window) != 1 || proof.Window[0].Text != text {
		t.Errorf("%+v, %v", proof, err)
	}
	if _, _, err := w.e().ResolveAnchors(t.Context(), make([]evidence.Ref, evidence.MaxAnchors+1)); !errors.Is(err, fault.Internal) {
		t.Errorf("more than %d: %v", evidence.MaxAnchors, err)
	}
	// A source that is gone keeps its text; what is forgotten does not.
	if err := os.Remove(w.Path(claudeDir + "s1.jsonl")); err != nil {
		t.Fatal(err)
	}
	resolve := func() evidence.Resolution {
		t.Helper()
		_, all, err := w.e().ResolveAnchors(t.Context(), []evidence.Ref{{Locator: c.EvidenceID, Session: c.SessionID}})
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	if r := resolve(); !r.LastGood || r.Withdrawn || r.Anchor == nil || r.Anchor.Span != sum(text) {
		t.Errorf("gone: %+v", r)
	}
	if proof, err := w.e().Prove(t.Context(), c.EvidenceID, 0); err != nil || proof.Outcome != engine.Missing || proof.Record != "" {
		t.Errorf("%+v, %v", proof, err)
	}
	plan, err := w.e().PlanForget(t.Context(), "", c.EvidenceID)
	if err == nil {
		_, err = w.e().Forget(t.Context(), plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := resolve(); !r.Withdrawn || r.Anchor != nil {
		t.Errorf("forgotten: %+v", r)
	}
}
