package web

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// longestLink is how long a link's address may be to be shown beside its text, in bytes.
const longestLink = 300

// readable is the text of an HTML page: its blocks on lines of their own, headings and list
// entries marked, links as text (address). It reads tags as they come and builds no tree,
// so no page makes it slow or large; what browsers would move elsewhere stays where it is.
func readable(page string, at *url.URL) string {
	r := reader{page: at, base: at}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken: // the end
			return r.String()
		case html.TextToken:
			if r.skipped == 0 {
				r.say(z.Text())
			}
		case html.StartTagToken:
			r.tag(z, true)
		case html.SelfClosingTagToken:
			r.tag(z, false)
		case html.EndTagToken:
			name, _ := z.TagName()
			r.end(string(name))
		}
	}
}

// reader gathers text.
type reader struct {
	out  strings.Builder
	page *url.URL
	base *url.URL // where relative links start: page, or what the page says

	breaks  int    // line breaks that are due before the next text
	space   bool   // a space is, too
	mark    string // what the next text begins with: "- ", "## "
	exact   int    // how many elements that keep their spaces are open
	skip    string // an element whose content is left out
	skipped int    // how many of its kind are open in it
	link    *link
}

// link is the element a that is open.
type link struct {
	address string
	at      int // where its text begins
}

// What elements do. What is not listed is part of the line it stands in.
var (
	leftOut = words("script style noscript template svg math iframe object canvas audio video select datalist noembed noframes")
	blocks  = words("address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form " +
		"head header hgroup hr html legend li main menu nav ol p pre section summary table tbody tfoot thead title tr ul caption option")
	apart = words("p blockquote pre ul ol dl table h1 h2 h3 h4 h5 h6 title figure hr") // with an empty line around
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// tag begins an element. open says that its end comes, too.
func (r *reader) tag(z *html.Tokenizer, open bool) {
	raw, more := z.TagName()
	name := string(raw)
	if r.skipped > 0 {
		if open && name == r.skip {
			r.skipped++
		}
		return
	}
	attributes := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if k := string(key); k == "href" || k == "alt" {
			if _, twice := attributes[k]; !twice {
				attributes[k] = string(value)
			}
		}
	}
	r.around(name)
	switch name {
	case "br":
		r.breaks = max(r.breaks, 1)
	case "li":
		r.mark = "- "
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.mark = strings.Repeat("#", int(name[1]-'0')) + " "
	case "td", "th":
		if r.out.Len() > 0 && r.breaks == 0 {
			r.say([]byte(" | "))
		}
	case "img":
		if alt := strings.TrimSpace(attributes["alt"]); alt != "" {
			r.say([]byte("[" + alt + "]"))
		}
	case "base":
		if u, err := r.base.Parse(attributes["href"]); err == nil && r.base == r.page {
			r.base = u
		}
	case "a":
		r.endLink()
		if open {
			r.link = &link{attributes["href"], r.out.Len()}
		}
	case "pre", "textarea":
		if open {
			r.exact++
		}
	default:
		if open && leftOut[name] {
			r.skip, r.skipped = name, 1
		}
	}
}

// end ends an element.
func (r *reader) end(name string) {
	if r.skipped > 0 {
		if name == r.skip {
			r.skipped--
		}
		return
	}
	switch name {
	case "a":
		r.endLink()
	case "pre", "textarea":
		r.exact = max(r.exact-1, 0)
	case "li", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6":
		r.mark = "" // what it was for is empty
	}
	r.around(name)
}

// around breaks the line around a block.
func (r *reader) around(name string) {
	switch {
	case apart[name]:
		r.breaks = 2
	case blocks[name]:
		r.breaks = max(r.breaks, 1)
	}
}

// endLink writes where a link leads, when that says more than its text does.
func (r *reader) endLink() {
	l := r.link
	if r.link = nil; l == nil {
		return
	}
	said := strings.TrimSpace(r.out.String()[l.at:])
	to := r.address(l.address)
	if to == "" || said == "" || strings.Contains(said, to) {
		return
	}
	r.out.WriteString(" (" + to + ")")
}

// address is where a link leads, as short as it can be said; empty when it is no page that
// could be fetched.
func (r *reader) address(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' {
		return ""
	}
	u, err := r.base.Parse(href)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return ""
	}
	to := u.String()
	if u.Scheme == r.page.Scheme && u.Host == r.page.Host {
		to = strings.TrimPrefix(to, u.Scheme+"://"+u.Host)
	}
	if len(to) > longestLink {
		return ""
	}
	return to
}

// layout are characters that only say where a line may be broken.
var layout = strings.NewReplacer("\u00ad", "", "\u200b", "")

// say writes text. Outside of what keeps its spaces, those become one.
func (r *reader) say(b []byte) {
	s := string(b)
	if bytes.ContainsAny(b, "\u00ad\u200b") {
		s = layout.Replace(s)
	}
	if r.exact > 0 {
		r.sayExactly(s)
		return
	}
	for i, word := range strings.FieldsFunc(s, unicode.IsSpace) {
		if i > 0 || startsWithSpace(s) {
			r.space = true
		}
		r.begin()
		r.out.WriteString(word)
	}
	if endsWithSpace(s) {
		r.space = true
	}
}

func startsWithSpace(s string) bool { return s != strings.TrimLeftFunc(s, unicode.IsSpace) }

func endsWithSpace(s string) bool { return s != strings.TrimRightFunc(s, unicode.IsSpace) }

func (r *reader) sayExactly(s string) {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if r.breaks > 0 { // the break behind the tag itself is not of the text
		s = strings.TrimLeft(s, "\n")
	}
	if s == "" {
		return
	}
	r.space = false
	r.begin()
	trimmed := strings.TrimRight(s, "\n")
	r.out.WriteString(trimmed)
	if trimmed != s {
		r.breaks = min(len(s)-len(trimmed), 2)
	}
}

// begin writes what is due before text.
func (r *reader) begin() {
	switch {
	case r.out.Len() == 0:
	case r.breaks > 0:
		r.out.WriteString("\n\n"[:r.breaks])
	case r.space:
		r.out.WriteByte(' ')
	}
	r.out.WriteString(r.mark)
	r.breaks, r.space, r.mark = 0, false, ""
}

// String is the text, with a break at its end.
func (r *reader) String() string {
	r.endLink()
	if r.out.Len() == 0 {
		return ""
	}
	return r.out.String() + "\n"
}
