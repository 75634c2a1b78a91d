package web

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"localmcp/internal/op"
)

// FuzzReadable: whatever a page is, its text comes soon, is not much longer than the page,
// and holds nothing of what scripts say.
func FuzzReadable(f *testing.F) {
	for _, s := range []string{
		"<p>a<p>b", "<a href=x>y", "<pre>\n\na\n\n</pre>", "<script><p>no</script>", "<svg><svg></svg>a</svg>b", "<li><li>", "<base href='//x'><a href=y>z", "<td>a<td>b",
		"<h1></h1>x", "&#0;&#xffffffff;", "<textarea><p></textarea>", "<!--", "<![CDATA[x]]>", "<plaintext><p>", "<template><template></template>a",
	} {
		f.Add(s)
	}
	at := &url.URL{Scheme: "https", Host: "page.example.com", Path: "/dir/"}
	f.Fuzz(func(t *testing.T, s string) {
		got := readable(strings.ToValidUTF8(s, "?"), at)
		if !utf8.ValidString(got) || len(got) > 8*len(s)+64 {
			t.Errorf("%q: %q", s, got)
		}
		if inside := readable("before<script>"+strings.ReplaceAll(strings.ToLower(s), "</script", "")+"hidden</script>", at); strings.Contains(inside, "hidden") && !strings.Contains(s, "<!--") {
			t.Errorf("%q: %q", s, inside)
		}
	})
}

// TestReadableIsLinear: pages made to be slow to take apart are not.
func TestReadableIsLinear(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "page.example.com"}
	for _, s := range []string{"<a>", "<a href=x>y", "<b><i><a>", "<table><tr><td>", "<svg>", "<template>", "<", "&", "<!--", "<p ", "</p>", "<li>", "a\u00ad", "<pre>\n", "<div a=b c=d "} {
		begun := time.Now()
		readable(strings.Repeat(s, (128<<10)/len(s)), at)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%q: %s", s, took)
		}
	}
}

func TestFit(t *testing.T) {
	for _, s := range []string{"", "abc", strings.Repeat("ü", 100), strings.Repeat("a\"\n", 100), strings.Repeat("日本\n", 100), strings.Repeat("😀", 50)} {
		for room := -1; room < 700; room += 7 {
			got, cut := fit(s, room)
			if cut != (got != s) && s != "" || !strings.HasPrefix(s, got) || !utf8.ValidString(got) || cut && got != "" && op.EncodedLen(got) > room {
				t.Fatalf("%.20q in %d: %q, %v", s, room, got, cut)
			}
			if cut && room > 20 && op.EncodedLen(got) < room*9/10-8 {
				t.Fatalf("%.20q in %d: only %d", s, room, op.EncodedLen(got))
			}
		}
	}
}
