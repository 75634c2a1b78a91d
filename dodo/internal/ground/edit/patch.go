package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// An Action is what a section of a patch does to its file.
type Action string

// The actions.
const (
	Create Action = "create"
	Modify Action = "modify"
	Delete Action = "delete"
)

// Bounds of a patch beside its size, which the caller has bounded.
const (
	maxPatchLines = 1 << 20
	maxMoved      = 200 // hunks of one file that are looked for elsewhere
)

// A FilePatch is the section of a patch for one file.
type FilePatch struct {
	Path   string // as the patch names it, without a/ or b/; the caller's path rules still hold
	Action Action
	Line   int // of the patch, where the section begins

	hunks []hunk
	crlf  bool // the whole patch was typed with CRLF
}

// A hunk is a run of lines with its place.
type hunk struct {
	number int  // in its section, from 1
	line   int  // of the patch
	at     int  // first line of the file it stands for, from 1; 0: not said
	lines  []op // what the file has and what it gets
	marked bool // it says where the file ends without a line break
	noted  bool // its counts were wrong
}

// An op is one line of a hunk, without its LF.
type op struct {
	kind byte // ' ' both, '-' before, '+' after
	text []byte
	bare bool // the file ends here without a line break
}

// ParsePatch reads a unified diff, as git or diff writes it or as a model types it. What
// stands before the first section and between sections, such as a commit message, is
// passed over. Wrong or missing counts in a hunk's header are made good where the lines
// say clearly what is meant: they run to the next header, and lines that must be in the
// file are checked there all the same. It fails with INVALID_INPUT, with the line of the
// patch in its detail; NOT_SUPPORTED for renames, copies, modes and binary content;
// CONFLICT when a path has two sections; RESOURCE_LIMIT above a million lines. The
// sections share the memory of patch.
func ParsePatch(patch []byte) ([]FilePatch, error) {
	if bytes.Count(patch, []byte{'\n'}) >= maxPatchLines {
		return nil, fault.New(contract.ResourceLimit, "the patch has more than %d lines", maxPatchLines).WithHint("send it in parts")
	}
	if !utf8.Valid(patch) {
		return nil, fault.New(contract.InvalidInput, "the patch is not valid UTF-8").WithHint("for files in another encoding use edit_file")
	}
	patch = bytes.TrimPrefix(patch, bomText)
	p := &parser{lines: bytes.Split(patch, []byte{'\n'})}
	if last := len(p.lines) - 1; len(p.lines[last]) == 0 {
		p.lines = p.lines[:last]
	}
	p.crlf = len(p.lines) > 0
	for i, l := range p.lines {
		if !bytes.HasSuffix(l, []byte{'\r'}) && !(i == len(p.lines)-1 && !bytes.HasSuffix(patch, []byte{'\n'})) {
			p.crlf = false
			break
		}
	}
	if p.crlf {
		for i, l := range p.lines {
			p.lines[i] = bytes.TrimSuffix(l, []byte{'\r'})
		}
	}
	for p.n < len(p.lines) {
		if err := p.section(); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		f := fault.New(contract.InvalidInput, "there is no section of a unified diff in the patch").
			WithHint("each file begins with a line --- a/PATH and a line +++ b/PATH, then hunks that begin with @@ -LINE,COUNT +LINE,COUNT @@")
		if bytes.HasPrefix(bytes.TrimSpace(patch), []byte("*** ")) {
			f = f.WithHint("this is another format of patches; send a unified diff: --- a/PATH, +++ b/PATH, then hunks that begin with @@ -LINE,COUNT +LINE,COUNT @@")
		}
		return nil, f
	}
	paths := map[string]int{}
	for _, f := range p.files {
		if first, dup := paths[f.Path]; dup {
			return nil, fault.New(contract.Conflict, "the patch has two sections for one file").
				WithHint("put all hunks of a file into one section").With("path", f.Path).With("lines", []int{first, f.Line})
		}
		paths[f.Path] = f.Line
	}
	return p.files, nil
}

type parser struct {
	lines [][]byte
	n     int // the line that is next
	crlf  bool
	files []FilePatch
}

// peek is the line k after the next without a CR; nil behind the end.
func (p *parser) peek(k int) []byte {
	if p.n+k >= len(p.lines) {
		return nil
	}
	return bytes.TrimSuffix(p.lines[p.n+k], []byte{'\r'})
}

func (p *parser) invalid(line int, format string, args ...any) *fault.Error {
	return fault.New(contract.InvalidInput, "line %d of the patch: "+format, append([]any{line + 1}, args...)...).With("line", line+1)
}

// section reads from the next line on: a section, or one line that is none.
func (p *parser) section() error {
	l := p.peek(0)
	switch {
	case bytes.HasPrefix(l, []byte("diff --git ")):
		return p.gitSection()
	case p.atNames(0):
		return p.hunks(&FilePatch{Line: p.n + 1, crlf: p.crlf})
	case bytes.HasPrefix(l, []byte("@@ ")) || bytes.Equal(l, []byte("@@")):
		return p.invalid(p.n, "a hunk without a file before it").WithHint("begin the section with --- a/PATH and +++ b/PATH")
	case bytes.HasPrefix(l, []byte("Binary files ")), bytes.Equal(l, []byte("GIT binary patch")):
		return notSupported(p.n, "binary content")
	}
	p.n++
	return nil
}

// atNames reports whether the two names of a section stand k lines on.
func (p *parser) atNames(k int) bool {
	return bytes.HasPrefix(p.peek(k), []byte("--- ")) && bytes.HasPrefix(p.peek(k+1), []byte("+++ "))
}

func notSupported(line int, what string) error {
	return fault.New(contract.NotSupported, "line %d of the patch: %s is not supported", line+1, what).
		WithHint("patches change, create and delete text files; use move_path to rename").With("line", line+1)
}

// gitSection reads the header that git writes before the names, or instead of them.
func (p *parser) gitSection() error {
	f := &FilePatch{Line: p.n + 1, crlf: p.crlf}
	header := p.n
	name, named := gitName(string(p.peek(0)[len("diff --git "):]))
	p.n++
	for ; p.n < len(p.lines); p.n++ {
		key, value := extended(string(p.peek(0)))
		switch key {
		case "new file mode":
			f.Action = Create
			if value != "100644" {
				return notSupported(p.n, "a file mode other than 100644")
			}
		case "deleted file mode":
			f.Action = Delete
			if value == "120000" || value == "160000" {
				return notSupported(p.n, "a link")
			}
		case "old mode", "new mode":
			return notSupported(p.n, "a change of the file mode")
		case "rename from", "rename to", "rename old", "rename new":
			return notSupported(p.n, "a rename")
		case "copy from", "copy to":
			return notSupported(p.n, "a copy")
		case "index", "similarity index", "dissimilarity index":
		default:
			l := p.peek(0)
			if bytes.HasPrefix(l, []byte("Binary files ")) || bytes.Equal(l, []byte("GIT binary patch")) {
				return notSupported(p.n, "binary content")
			}
			if p.atNames(0) {
				return p.hunks(f)
			}
			return p.withoutNames(f, header, name, named)
		}
	}
	return p.withoutNames(f, header, name, named)
}

// withoutNames ends a section that has no names: an empty file comes or goes.
func (p *parser) withoutNames(f *FilePatch, header int, name string, named bool) error {
	if !named {
		return p.invalid(header, "the name of the file cannot be read").WithHint("write the lines --- a/PATH and +++ b/PATH")
	}
	if f.Action == "" {
		return p.invalid(header, "the section changes nothing").WithHint("write the lines --- a/PATH and +++ b/PATH and the hunks behind them")
	}
	f.Path = name
	p.files = append(p.files, *f)
	return nil
}

// extended parts a line of git's header.
func extended(l string) (key, value string) {
	for _, k := range []string{"new file mode", "deleted file mode", "old mode", "new mode", "rename from", "rename to", "rename old", "rename new",
		"copy from", "copy to", "index", "similarity index", "dissimilarity index"} {
		if v, ok := strings.CutPrefix(l, k+" "); ok {
			return k, strings.TrimSpace(v)
		}
	}
	return "", ""
}

// hunks reads the names and the hunks of a section.
func (p *parser) hunks(f *FilePatch) error {
	from, fromEpoch, ok1 := fileName(string(p.peek(0)[4:]))
	to, toEpoch, ok2 := fileName(string(p.peek(1)[4:]))
	start := p.n
	if !ok1 || !ok2 {
		return p.invalid(start, "the name of the file cannot be read")
	}
	p.n += 2
	for {
		// Blank lines between the names or hunks and the next hunk mean nothing.
		k := 0
		for p.n+k < len(p.lines) && len(bytes.TrimSpace(p.peek(k))) == 0 {
			k++
		}
		if l := p.peek(k); !bytes.HasPrefix(l, []byte("@@")) {
			break
		}
		p.n += k
		h, err := p.hunk(len(f.hunks) + 1)
		if err != nil {
			return err
		}
		f.hunks = append(f.hunks, h)
	}
	switch {
	case from == devNull && to == devNull:
		return p.invalid(start, "both names are /dev/null")
	case from == devNull:
		f.Action, f.Path = Create, strings.TrimPrefix(to, "b/")
	case to == devNull:
		f.Action, f.Path = Delete, strings.TrimPrefix(from, "a/")
	default:
		name, same := common(from, to)
		if !same {
			return fault.New(contract.NotSupported, "line %d of the patch: the two names of the section differ, and a rename is not supported", start+1).
				WithHint("give one path on both lines, --- a/PATH and +++ b/PATH; use move_path to rename").
				With("line", start+1).With("names", []string{from, to})
		}
		f.Path = name
		if f.Action == "" {
			f.Action = Modify
			// diff -N marks a file that is not there by the beginning of time.
			if len(f.hunks) == 1 && fromEpoch && !f.hunks[0].has('-') {
				f.Action = Create
			}
			if len(f.hunks) == 1 && toEpoch && !f.hunks[0].has('+') {
				f.Action = Delete
			}
		}
	}
	if f.Path == "" {
		return p.invalid(start, "the name of the file is empty")
	}
	if len(f.hunks) == 0 && f.Action != Create && f.Action != Delete {
		return p.invalid(start, "the section has no hunk").WithHint("a hunk begins with @@ -LINE,COUNT +LINE,COUNT @@ on the line behind +++")
	}
	for _, h := range f.hunks {
		if f.Action == Create && h.has('-') {
			return p.invalid(h.line-1, "a new file has no old lines")
		}
		if f.Action == Delete && h.has('+') {
			return p.invalid(h.line-1, "a deleted file has no new lines")
		}
		if f.Action == Modify && h.noted && !h.has('-') {
			return p.invalid(h.line-1, "the counts of the hunk are wrong, and it has no old line by which its place could be known").
				WithHint("give at least one line of the file before or behind the new ones")
		}
	}
	p.files = append(p.files, *f)
	return nil
}

// has reports whether the hunk has lines of the side before ('-') or after ('+').
func (h *hunk) has(side byte) bool {
	for _, l := range h.lines {
		if l.kind == ' ' || l.kind == side {
			return true
		}
	}
	return false
}
