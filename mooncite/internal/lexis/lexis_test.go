package lexis_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/lexis"
)

func TestDocument(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"The retries were running", "the retri were run"},
		{"one\ntwo\r\nthree", "one two three"},
		{"parseConfigFile", "pars config file ⸺ parseconfigfile"},
		{"getHTTPResponse v2", "get http respons v2 ⸺ gethttpresponse"},
		{"snake_case-name src/app/main.go", "snake case name src app main go"},
		{"C++ and C# --no-verify 3.14.15", "c and c no verifi 3 14 15 ⸺ c＋＋ c＃"},
		{"naïve café GRÖSSE größe", "naiv cafe gross gross"},
		{"проверка Индекса", "проверка индекса"},
		{"日本語のtest", "日 本 語 の test ⸺ 日本 本語 語の"},
		{"issue化", "issu 化"},
		{"ｆｕｌｌｗｉｄｔｈ", "fullwidth"},
		{"=> && ::", ""},
		{"SHA256 E0382 utf8", "sha256 e0382 utf8"},
		{"bad\xff\xfeutf", "bad utf"},
		{"ภาษา", "ภ า ษ า ⸺ ภา าษ ษา"},
		{strings.Repeat("x", 100), strings.Repeat("x", 64)},
	} {
		var tk lexis.Tokenizer
		got, n := tk.Document(nil, c.text)
		if string(got) != c.want {
			t.Errorf("Document(%q)\n got %q\nwant %q", c.text, got, c.want)
		}
		running, _, _ := strings.Cut(string(got), "⸺")
		if len(strings.Fields(running)) != n {
			t.Errorf("Document(%q): %d running tokens, said %d", c.text, len(strings.Fields(running)), n)
		}
	}
}

func TestQuery(t *testing.T) {
	for _, c := range []struct {
		text string
		want []lexis.Term
	}{
		{"=> &&", nil},
		{"C++", []lexis.Term{{Text: "c++", Tokens: []string{"c"}, Whole: "c＋＋", Exact: true}}},
		{"the db", []lexis.Term{{Text: "the", Tokens: []string{"the"}, Stop: true}, {Text: "db", Tokens: []string{"db"}}}},
		{"parseConfig, parseconfig", []lexis.Term{
			{Text: "parseconfig", Tokens: []string{"pars", "config"}, Whole: "parseconfig"}}},
		{"索", []lexis.Term{{Text: "索", Tokens: []string{"索"}}}},
		{"検索 x", []lexis.Term{{Text: "検索", Tokens: []string{"検", "索"}, Pairs: []string{"検索"}}, {Text: "x", Tokens: []string{"x"}}}},
		{"src/a_b.go:12", []lexis.Term{{Text: "src/a_b.go:12", Tokens: []string{"src", "a", "b", "go", "12"}, Fields: []lexis.Field{{"src", "src"}, {"a", "a"}, {"b", "b"}, {"go", "go"}, {"12", "12"}}}}},
		{"GitHub.com/acme,", []lexis.Term{{Text: "github.com/acme", Tokens: []string{"git", "hub", "com", "acm"}, Fields: []lexis.Field{{"github", "github"}, {"com", "com"}, {"acme", "acm"}}}}},
		{"macos", []lexis.Term{{Text: "macos", Tokens: []string{"maco"}, Whole: "macos"}}},
		{"issue化", []lexis.Term{{Text: "issue", Tokens: []string{"issu"}, Whole: "issue"}, {Text: "化", Tokens: []string{"化"}}}},
	} {
		var tk lexis.Tokenizer
		if diff := cmp.Diff(c.want, tk.Query(c.text)); diff != "" {
			t.Errorf("Query(%q) (-want +got)\n%s", c.text, diff)
		}
	}
}

// A phrase of the text must be a phrase of its tokens, whatever stands around it.
func FuzzPhrase(f *testing.F) {
	f.Add("before the ", "parseConfigFile 日本", " after C++")
	f.Add("x", "naïve ½ café", "\xff")
	f.Fuzz(func(t *testing.T, before, phrase, after string) {
		var tk lexis.Tokenizer
		doc, n := tk.Document(nil, before+" "+phrase+" "+after)
		running, _, _ := strings.Cut(string(doc), "⸺")
		if got := len(strings.Fields(running)); got != n {
			t.Fatalf("%d running tokens, said %d", got, n)
		}
		if !utf8.Valid(doc) {
			t.Fatalf("token text is not UTF-8: %q", doc)
		}
		want := strings.Join(tk.Tokens(phrase), " ")
		if !strings.Contains(" "+strings.TrimSpace(running)+" ", " "+want+" ") && want != "" {
			t.Errorf("tokens %q of %q are not in %q", want, phrase, running)
		}
	})
}
