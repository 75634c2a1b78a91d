package engine

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// echoWindow is how much of a text is looked at for Mooncite's own output.
const echoWindow = 4096

// Headings of rendered answers, this program's and the earlier one's. Each is the
// whole grammar of a heading, so that a text which only names one is no echo.
var echoHeadings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^[ \t>]*|"text":\s?")(?:` + strings.Join([]string{
		`Mooncite recall: (?:matches|weak_leads|no_match|inconclusive|invalid_scope|unavailable); conclusive=(?:true|false);`,
		`Mooncite inspection: (?:verified|stale|missing|excluded|corrupt|unavailable);`,
		`Mooncite status: (?:ready|degraded|unavailable);`,
		`(?:Weak evidence leads|Evidence) for “[^”]*”: ?\[(?:full_verified|append_trusted); (?:complete|partial) coverage`,
		`No evidence matched “[^”]*”\. ?\[(?:full_verified|append_trusted); (?:complete|partial) coverage`,
		`Mooncite evidence is unavailable for “[^”]*”\.`,
		`Verified evidence mooncite:(?:pi|omp|claude-code|codex|chatgpt):[0-9a-f:]+:$`,
		`Evidence mooncite:\S+: (?:stale|missing|excluded|corrupt|unavailable)\.`,
		`Mooncite is (?:ready|unavailable) \((?:current|last_good|unavailable), `,
		`Mooncite learned-memory (?:recall|inspection|write|delete|status)(?: failed\.|:)`,
		`Derived Mooncite memories for “[^”]*” \(interpretations, not source evidence\):`,
		`(?:Derived memory|Stored derived memory|Deleted derived memory) mooncite-memory:[0-9a-f-]{36}`,
	}, "|") + `)`)
})

// Structured answers as clients store them, with their fields in the order in which
// this program writes them or in that of the alphabet.
var echoStructures = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*\{\s*(?:` + strings.Join([]string{
		`"outcome":\s*"[a-z_]+",\s*"conclusive":\s*(?:true|false),\s*"meaning":\s*"[\s\S]*?"(?:lexicalTerms|evidenceId)":`,
		`"outcome":\s*"[a-z_]+",\s*"meaning":\s*"[\s\S]*?"freshness":`,
		`"candidates":\s*\[(?:\],\s*"conclusive":|\s*\{\s*"branchState":[\s\S]*?"evidenceId":\s*"mooncite:)`,
		`"conclusive":\s*(?:true|false),\s*"evidenceId":\s*"mooncite:`,
		`"coverage":\s*"(?:complete|partial)",\s*"eligibleRecords":`,
		`"(?:[\s\S]*?")?kind":\s*"(?:derived_memory|skill_candidate)[a-z_]*"`,
		`"anchors":\s*\[\s*\{\s*"current":\s*(?:null|\{\s*"branchState":)`,
	}, "|") + `)`)
})

// echoHints are parts of which every echo has one, looked for first.
var echoHints = []string{"Mooncite", "mooncite:", `"lexicalTerms":`, `"freshness":`, `"candidates":`, `"eligibleRecords":`, `"derived_memory`, `"skill_candidate`, `"anchors":`, "vidence for “", "vidence leads for “", "vidence matched “"}

// escapes are line breaks as rendered answers show them, or as JSON strings hold them.
var escapes = strings.NewReplacer(`\u{a}`, "\n", `\u{d}`, "\n", `\n`, "\n")

// isEcho reports whether a span's text is Mooncite's own output, stored by a client.
func isEcho(text string) bool {
	if len(text) > echoWindow {
		n := echoWindow
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	if !slices.ContainsFunc(echoHints, func(hint string) bool { return strings.Contains(text, hint) }) {
		return false
	}
	if echoStructures().MatchString(text) {
		return true
	}
	return echoHeadings().MatchString(text) || strings.Contains(text, `\`) && echoHeadings().MatchString(escapes.Replace(text))
}
