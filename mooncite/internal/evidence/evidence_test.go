package evidence_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

// The expected values were computed from the published formulas with sha256sum, not
// with this package: citations of the earlier program must stay valid.
func TestIdentityDigests(t *testing.T) {
	const root = "/home/mara/.pi/agent/sessions"
	const (
		wantConfigured = "1e439051edac5eae5aafaf5101f80d161561d40cfa8e29e4a24ed7c5c8560942"
		wantAutomatic  = "a72021a59b6696cd922bf8b682e7e971dc2e6f70b5816270a834c34dc8371be7"
		wantNamespace  = "53439fa6878f1223f2d00f97"
		wantShort      = "84da32a6"
		wantID         = "mooncite:pi:53439fa6878f1223f2d00f97:6a840baf5d8c3ff241688aeb:2c3a4249d77070058649dbd8:0"
	)
	configured := evidence.RootDigest(root, false)
	if configured != wantConfigured {
		t.Errorf("configured root: %s", configured)
	}
	if got := evidence.RootDigest(root, true); got != wantAutomatic {
		t.Errorf("automatic root: %s", got)
	}
	stored := evidence.StoredPath(evidence.Pi, configured, "--w-app--/a.jsonl")
	if stored != "pi/"+wantConfigured+"/--w-app--/a.jsonl" {
		t.Errorf("stored path: %s", stored)
	}
	ns := evidence.Namespace(configured, stored)
	if ns != wantNamespace {
		t.Errorf("namespace: %s", ns)
	}
	if got := evidence.ShortName(stored); got != wantShort {
		t.Errorf("short name: %s", got)
	}
	if got := evidence.EvidenceID(evidence.Pi, ns, "s-1", "a2", 0); got != wantID {
		t.Errorf("evidence id: %s", got)
	}
	if got, want := evidence.EvidenceURI(evidence.Pi, ns, "s-1", "a/2 é", 3), "mooncite://pi/"+wantNamespace+"/s-1/a%2F2%20%C3%A9/3"; got != want {
		t.Errorf("evidence URI: %s", got)
	}
	if got, want := evidence.QualifiedSession(evidence.Claude, configured, "a:b"), "claude-code:"+wantConfigured+":a:b"; got != want {
		t.Errorf("session: %s", got)
	}
	o, digest, raw, ok := evidence.ParseQualifiedSession("claude-code:" + wantConfigured + ":a:b")
	if o != evidence.Claude || digest != wantConfigured || raw != "a:b" || !ok {
		t.Errorf("session: %s %s %s %t", o, digest, raw, ok)
	}
	for _, bad := range []string{"", "pi", "pi:x:y", "pi:" + wantConfigured + ":", "pi:" + strings.ToUpper(wantConfigured) + ":s", "xx:" + wantConfigured + ":s"} {
		if _, _, _, ok := evidence.ParseQualifiedSession(bad); ok {
			t.Errorf("%q is a session", bad)
		}
	}
}

func TestEscapeComponent(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"azAZ09-_.!~*'()": "azAZ09-_.!~*'()",
		" /?#[]@:&=+$,;%": "%20%2F%3F%23%5B%5D%40%3A%26%3D%2B%24%2C%3B%25",
		"é日\U0001f600":    "%C3%A9%E6%97%A5%F0%9F%98%80",
		"\"<>\\^`{|}":     "%22%3C%3E%5C%5E%60%7B%7C%7D",
	} {
		if got := evidence.EscapeComponent(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestParseLocator(t *testing.T) {
	ns := strings.Repeat("0a", 12)
	id := evidence.EvidenceID(evidence.Codex, ns, "s 1", "line-3-00ff", 12)
	uri := evidence.EvidenceURI(evidence.Codex, ns, "s 1", "line-3-00ff", 12)
	a, ok := evidence.ParseLocator(id)
	b, okb := evidence.ParseLocator(uri)
	want := evidence.Locator{Origin: evidence.Codex, Namespace: ns, Session: evidence.IDPart("s 1"), Entry: evidence.IDPart("line-3-00ff"), Ordinal: 12}
	if !ok || !okb || a != want || b != want {
		t.Errorf("%+v %t\n%+v %t", a, ok, b, okb)
	}
	part := strings.Repeat("1b", 12)
	for _, bad := range []string{
		"", "mooncite", "mooncite:", "mooncite://", "MOONCITE:codex:" + ns + ":" + part + ":" + part + ":0",
		"mooncite:codex:" + ns + ":" + part + ":" + part, "mooncite:codex:" + ns + ":" + part + ":" + part + ":0:0",
		"mooncite:codex:" + ns + ":" + part + ":" + part + ":00", "mooncite:codex:" + ns + ":" + part + ":" + part + ":-1", "mooncite:codex:" + ns + ":" + part + ":" + part + ":+1",
		"mooncite:codex:" + ns + ":" + part + ":" + part + ":99999999999999999999", "mooncite:codex:" + ns + ":" + part + ":" + part + ":",
		"mooncite:codex:" + strings.ToUpper(ns) + ":" + part + ":" + part + ":0", "mooncite:codex:" + ns[1:] + ":" + part + ":" + part + ":0",
		"mooncite:claude:" + ns + ":" + part + ":" + part + ":0", " mooncite:codex:" + ns + ":" + part + ":" + part + ":0", "mooncite:codex:" + ns + ":" + part + ":" + part + ":0\n",
		"mooncite://codex/" + ns + "//e/0", "mooncite://codex/" + ns + "/s//0", "mooncite://codex/" + ns + "/s/e", "mooncite://codex/" + ns + "/s/e/0/0", "mooncite://codex/" + ns + "/s/e/0?x",
		// Only what EvidenceURI writes: nothing else may name the same thing.
		"mooncite://codex/" + ns + "/s s/e/0", "mooncite://codex/" + ns + "/%73/e/0", "mooncite://codex/" + ns + "/%c3%a9/e/0", "mooncite://codex/" + ns + "/s%2/e/0", "mooncite://codex/" + ns + "/s%zz/e/0", "mooncite://codex/" + ns + "/é/e/0",
		"mooncite://codex/" + ns + "/s%+1/e/0",
		"mooncite://codex/" + ns + "/" + strings.Repeat("s", evidence.MaxLocator) + "/e/0",
	} {
		if l, ok := evidence.ParseLocator(bad); ok {
			t.Errorf("%.80q is %+v", bad, l)
		}
	}
}

func FuzzParseLocator(f *testing.F) {
	ns := strings.Repeat("0a", 12)
	f.Add(evidence.EvidenceID(evidence.Pi, ns, "s", "e", 0), "s", "e", 1)
	f.Add(evidence.EvidenceURI(evidence.ChatGPT, ns, "s/é", "%", 7), "s/é", "\xff", 1<<40)
	f.Add("mooncite://codex/"+ns+"/%73/e/0", "a b", "ü", 0)
	f.Fuzz(func(t *testing.T, s, session, entry string, ordinal int) {
		if l, ok := evidence.ParseLocator(s); ok {
			canonical := "mooncite:" + string(l.Origin) + ":" + l.Namespace + ":" + l.Session + ":" + l.Entry + ":"
			if again, ok := evidence.ParseLocator(canonical + s[strings.LastIndexAny(s, ":/")+1:]); !ok || again != l {
				t.Errorf("%q is %+v, in its other form %+v", s, l, again)
			}
		}
		if session == "" || entry == "" || ordinal < 0 {
			return
		}
		for _, o := range evidence.Origins() {
			a, ok := evidence.ParseLocator(evidence.EvidenceID(o, ns, session, entry, ordinal))
			if !ok || a.Ordinal != ordinal || a.Origin != o {
				t.Fatalf("%+v %t", a, ok)
			}
			uri := evidence.EvidenceURI(o, ns, session, entry, ordinal)
			if b, ok := evidence.ParseLocator(uri); len(uri) <= evidence.MaxLocator && (!ok || a != b) {
				t.Errorf("%q is %+v, want %+v", uri, b, a)
			}
		}
	})
}

func TestIsControl(t *testing.T) {
	want := func(r rune) bool {
		for _, x := range [][2]rune{{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}} {
			if r >= x[0] && r <= x[1] {
				return true
			}
		}
		return false
	}
	for r := rune(0); r < 0x11000; r++ {
		if evidence.IsControl(r) != want(r) {
			t.Errorf("%U", r)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é日":         "plain é日",
		"a\nb\tc":          "a\nb\tc",
		"a\rb\x00\x1b[1m":  `a\u{d}b\u{0}\u{1b}[1m`,
		"\u202eevil\u2066": `\u{202e}evil\u{2066}`,
		"\u0085\u009f\x7f": `\u{85}\u{9f}\u{7f}`,
		"bad\xffend\xc3":   "bad\ufffdend\ufffd",
		"\u200b\ufeff":     "\u200b\ufeff",
	} {
		if got := evidence.Visible(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := evidence.Visible(s)
		if !utf8.ValidString(got) || evidence.Visible(got) != got {
			t.Errorf("%q gives %q", s, got)
		}
		n := 0
		for _, r := range s {
			n += evidence.EscapedLen(r)
			if r == '\n' || r == '\t' {
				n += 1 - evidence.EscapedLen(r)
			}
		}
		if len(got) != n {
			t.Errorf("%q: %d bytes, EscapedLen says %d", s, len(got), n)
		}
		for _, r := range got {
			if evidence.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("%q still holds %U", s, r)
			}
		}
	})
}

func TestIdentifiers(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "": false, strings.Repeat("a", 256): true, strings.Repeat("a", 257): false, "a b": true, "a\nb": false, "a\u202eb": false, "\xff": false,
		strings.Repeat("é", 128): true, strings.Repeat("é", 129): false,
	} {
		if evidence.IsIdentifier(s) != want {
			t.Errorf("%.20q: %t", s, !want)
		}
	}
	if !evidence.IsKind(strings.Repeat("k", 64)) || evidence.IsKind(strings.Repeat("k", 65)) || evidence.IsKind("") {
		t.Error("the bounds of a kind")
	}
}

func TestWords(t *testing.T) {
	for _, o := range evidence.Origins() {
		if got, ok := evidence.ParseOrigin(string(o)); got != o || !ok {
			t.Error(o)
		}
	}
	for _, r := range evidence.Roles() {
		if got, ok := evidence.ParseRole(string(r)); got != r || !ok {
			t.Error(r)
		}
	}
	if _, ok := evidence.ParseOrigin("claude"); ok {
		t.Error("claude is an origin")
	}
	if r, ok := evidence.ParseRole("tool_result"); ok || r != evidence.Unknown {
		t.Error("tool_result is a role")
	}
}

func TestIsProject(t *testing.T) {
	const hex = "-0123456789abcdef"
	for s, want := range map[string]bool{
		"project:app" + hex: true, "project:a.b_c-d%20~" + hex: true, "project:" + strings.Repeat("x", 160) + hex: true, "project:" + strings.Repeat("x", 161) + hex: false,
		"project:" + hex: false, "project:app-0123456789abcdeF": false, "project:app-0123456789abcde": false, "project:app" + hex + "0": false, "project:a/b" + hex: false,
		"project:é" + hex: false, "Project:app" + hex: false, "": false, "/srv/app": false, "project:app" + hex + "\n": false,
	} {
		if evidence.IsProject(s) != want {
			t.Errorf("%q: %t", s, !want)
		}
	}
}

// The context of an anchor is what must not change; what a conversation that goes on
// changes is not part of it. The expected value was computed with sha256sum.
func TestAnchorContext(t *testing.T) {
	a := evidence.Anchor{Origin: evidence.Pi, Root: "r", Project: "p", Session: "s", Role: evidence.User, Kind: "message"}
	const want = "30b78cb40efd6d3091c42af949df34d65edb6699a089b911bfdf7e4eb5d1e31b"
	if got := a.Context(); got != want {
		t.Errorf("%s", got)
	}
	a.Parent, a.Branch, a.Compaction, a.Record, a.Span = "x", "off_branch", "summary", "y", "z"
	if got := a.Context(); got != want {
		t.Errorf("a conversation that goes on: %s", got)
	}
}
