package lexis_test

import (
	"slices"
	"strings"
	"testing"

	"localmcp/mooncite/internal/lexis"
)

// What a person types must meet what was written, and nothing that only looks alike.
func TestQueryMeetsDocument(t *testing.T) {
	var tk lexis.Tokenizer
	meets := func(query, text string) bool {
		line, _ := tk.Document(nil, text)
		doc := " " + string(line) + " "
		terms := tk.Query(query)
		return len(terms) > 0 && !slices.ContainsFunc(terms, func(t lexis.Term) bool {
			run := !t.Exact && strings.Contains(doc, " "+strings.Join(t.Tokens, " ")+" ")
			return !run && (t.Whole == "" || !strings.Contains(doc, " "+t.Whole+" "))
		})
	}
	for _, c := range []struct {
		query, text string
		want        bool
	}{
		{"study", "her studies", true}, {"studies", "a study", true}, {"running", "it runs", true}, {"art", "start", false}, {"start", "art", false},
		{"parse config", "parseConfigFile", true}, {"parseconfigfile", "parseConfigFile", true}, {"PARSE_CONFIG", "parseConfigFile", true}, {"configParse", "parseConfigFile", false},
		{"C++", "in C++ and", true}, {"c++", "C++", true}, {"C++", "plain C", false}, {"C#", "C++", false}, {"C", "C++", true},
		{"--no-verify", "git commit --no-verify", true}, {"no-verify", "verify no", false}, {"3.14.15", "v3.14.15", false}, {"3.14.15", "go 3.14.15.", true}, {"3.14", "3.14.15", true}, {"3.15", "3.14.15", false},
		{"db", "the DB", true}, {"go", "Go", true}, {"x", "x", true}, {"検", "日本語の検索", true}, {"検索", "日本語の検索テスト", true}, {"索検", "日本語の検索", false}, {"テスト", "検索テスト", true},
		{"issue", "issue化", true}, {"issue化", "issue化する", true}, {"ภาษา", "พูดภาษาไทย", true}, {"한국", "한국어", true}, {"naive", "naïve", true}, {"größe", "GROESSE", false}, {"groesse", "größe", false}, {"grosse", "größe", true},
		{"ｆｕｌｌ", "full", true}, {"src/app/main.go", "src/app/main.go:12", true}, {"main.go", "src/app/main.go", true}, {"user@example.org", "mail user@example.org now", true},
		{"e0382", "error[E0382]: borrow", true}, {"don't", "don't", true}, {"O'Brien", "O'Brien", true}, {"", "x", false}, {"=>", "a => b", false},
	} {
		if got := meets(c.query, c.text); got != c.want {
			t.Errorf("%q meets %q: %t", c.query, c.text, got)
		}
	}
}
