package evidence

import "strings"

// MaxAnchors bounds what is resolved in one call.
const MaxAnchors = 256

// An Anchor is what is known of a span that something else rests on: which one it is,
// and what it says, as digests. It holds no text.
type Anchor struct {
	ID, URI    string // the two forms of its citation
	Origin     Origin
	Root       string // root digest
	Project    string // "" when the span has none
	Session    string // qualified
	Record     string // SHA-256 of its record's bytes in hex; 32 digits where only the index was asked
	Span       string // SHA-256 of its text in hex
	Role       Role
	Kind       string
	Parent     string // raw entry id, or ""
	Branch     string // current or off_branch
	Compaction string // none, pre_compaction, summary or kept_after_compaction
}

// Context is a digest of where an anchor stands: what must not change for it to be the
// same piece of evidence. Branch, compaction and parent are not part of it, because a
// conversation that goes on changes them (decision 2.10).
func (a *Anchor) Context() string {
	return hexSum(strings.Join([]string{"anchor-context-v2", string(a.Origin), a.Root, a.Project, a.Session, string(a.Role), a.Kind}, "\x00"))
}

// A Ref asks for a span as it is now. Session is its qualified session where that is
// known from before, so that a withdrawn source can be told from a lost one.
type Ref struct {
	Locator string // evidence id or URI
	Session string
}

// A Resolution is what the index says of a [Ref].
type Resolution struct {
	Withdrawn bool    // its root is not authorized any more, or it was forgotten
	Anchor    *Anchor // nil when the index has no such span
	LastGood  bool    // the index may be behind the source: it is gone, cannot be read or is still being read
	Pending   bool    // histories are still being read
	Echo      bool    // it is mooncite's own answer, stored by a client
}

// A Projection says how the index stands to the histories.
type Projection struct {
	Freshness string // current, last_good or unavailable
	Trust     string // full_verified or append_trusted
	Coverage  string // complete or partial
}

// A Proof is what a physical inspection of one span found.
type Proof struct {
	Outcome string // as inspect says it: verified, stale, missing, excluded, corrupt or unavailable
	Meaning string
	ID      string // the canonical evidence id
	Record  string // SHA-256 of the record's present bytes in hex, when verified
	Window  []Quote
}

// A Quote is a span's text as an inspection shows it: escaped, masked and cut.
type Quote struct {
	Relation string // before, target or after
	ID       string
	Role     string
	Time     string // RFC 3339, or ""
	Text     string
	Omitted  int // bytes of the span's text that are not shown
}

// IsProject reports whether s has the form of a project identity: a label of 1 to 160
// plain characters and 16 hex digits.
func IsProject(s string) bool {
	rest, ok := strings.CutPrefix(s, "project:")
	if !ok || len(rest) < 18 || len(rest) > 160+17 {
		return false
	}
	label, hex := rest[:len(rest)-17], rest[len(rest)-17:]
	if hex[0] != '-' || !isHex(hex[1:], 16) {
		return false
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._%~-", rune(c)) {
			return false
		}
	}
	return true
}
