package transcript

import (
	"path"
	"strconv"
	"strings"

	"localmcp/mooncite/internal/evidence"
)

var piFormat = format{
	origin: evidence.Pi,
	shape: func(rel string) Shape {
		if strings.HasSuffix(rel, ".jsonl") {
			return Lines
		}
		return None
	},
	descend: func(rel string) bool { return depth(rel) <= 64 },
	open:    openPi,
	decode:  decodePi,
}

// depth counts the directories in the path of a directory below the root.
func depth(rel string) int {
	if rel == "" || rel == "." {
		return 0
	}
	return 1 + strings.Count(rel, "/")
}

// piParser reads Pi and OMP session files, versions 1 to 3. OMP's differ in a title
// line before the header and in a few more entry types and message roles; both are
// read in both.
type piParser struct {
	tally
	file File
	tree tree
	s    piState
}

type piState struct {
	Version    int       `json:"v"`
	Tree       treeState `json:"tree"`
	Session    string    `json:"session,omitempty"`
	Project    string    `json:"project,omitempty"`
	Parent     string    `json:"parent,omitempty"`
	Title      string    `json:"title,omitempty"`
	Began      int64     `json:"began"`            // time of the header
	Header     bool      `json:"header,omitempty"` // the header was met
	Linear     bool      `json:"linear,omitempty"` // version 1: no ids, no parents
	Compaction int64     `json:"compaction,omitempty"`
}

func openPi(f File, state []byte) (Parser, error) {
	p := &piParser{file: f}
	p.s.Began = evidence.NoTime
	if state != nil {
		if err := loadState(state, &p.s, &p.s.Version); err != nil {
			return nil, err
		}
	}
	p.s.Version = stateVersion
	p.tree = newTree(p.s.Tree)
	return p, nil
}

// piRecord is what is read of one record.
type piRecord struct {
	kind, id, parent string
	hasID            bool
	badParent        bool
	time             int64
	raw              value
	message          value
	entry            Entry
}

// readPi reads a record's envelope, and its entry when text is wanted.
func readPi(r *Record, raw value) piRecord {
	m := piRecord{raw: raw, time: evidence.NoTime}
	for name, v := range raw.members() {
		switch string(name) {
		case "type":
			m.kind = v.str()
		case "id":
			m.id, m.hasID = v.str(), !v.isNull()
		case "parentId":
			m.parent = v.str()
			m.badParent = !v.isNull() && !evidence.IsIdentifier(m.parent)
		case "timestamp":
			m.time = ParseTime(v.str())
		case "message":
			m.message = v
		}
	}
	if !m.hasID {
		m.id = lineID(r.Line, [8]byte(r.Digest[:8]))
	}
	m.entry = Entry{ID: m.id, Parent: m.parent, Kind: m.kind, Time: m.time}
	return m
}

func decodePi(_ File, r *Record) ([]Entry, error) {
	raw, ok := r.object()
	if !ok {
		return nil, nil
	}
	m := readPi(r, raw)
	if !m.acceptable() || m.kind == "session" || m.kind == "title" {
		return nil, nil
	}
	if m.entry.Spans = m.spans(); len(m.entry.Spans) == 0 {
		return nil, nil
	}
	return []Entry{m.entry}, nil
}

func (m *piRecord) acceptable() bool {
	return evidence.IsKind(m.kind) && evidence.IsIdentifier(m.id) && !m.badParent
}

// spans gives the text of a record. Kinds that are only bookkeeping give none.
func (m *piRecord) spans() []Span {
	var s spanner
	switch m.kind {
	case "message":
		m.messageSpans(&s)
	case "compaction", "branch_summary":
		s.dialogue(m.raw.member("summary").str(), evidence.Summary, evidence.Dialogue)
		s.extra(m.raw.member("shortSummary").str(), evidence.Summary, "", evidence.Dialogue)
	case "custom_message":
		eachText(m.raw.member("content"), func(v value) {
			s.extra(v.str(), evidence.System, "", evidence.ToolTraffic)
		})
	case "session_init":
		s.extra(m.raw.member("task").str(), evidence.User, "", evidence.Dialogue)
		s.extra(m.raw.member("systemPrompt").str(), evidence.System, "", evidence.Boilerplate)
	}
	return s.spans()
}

// eachText gives the texts of a content: a string, or the text blocks of an array.
func eachText(content value, add func(value)) {
	eachBlock(content, func(kind, text, _ value) {
		if kind.is("text") {
			add(text)
		}
	})
}

// eachBlock gives the blocks of a content by type, text and arguments, each in one
// pass; a content that is a string comes as a text block.
func eachBlock(content value, do func(kind, text, arguments value)) {
	if content.isString() {
		do(value(`"text"`), content, nil)
		return
	}
	for block := range content.elements() {
		var kind, text, arguments value
		for name, v := range block.members() {
			switch string(name) {
			case "type":
				kind = v
			case "text":
				text = v
			case "arguments":
				arguments = v
			}
		}
		do(kind, text, arguments)
	}
}

func (m *piRecord) messageSpans(s *spanner) {
	msg := m.message
	if !msg.isObject() {
		return
	}
	var role string
	var content, nested, failed value
	for name, v := range msg.members() {
		switch string(name) {
		case "role":
			role = v.str()
		case "content":
			content = v
		case "nestedCalls":
			nested = v
		case "errorMessage":
			failed = v
		}
	}
	say := func(as evidence.Role, class evidence.Class) {
		eachText(content, func(v value) { s.dialogue(v.str(), as, class) })
	}
	switch role {
	case "user":
		say(evidence.User, evidence.Dialogue)
	case "assistant":
		eachBlock(content, func(kind, text, arguments value) {
			switch {
			case kind.is("text"):
				s.dialogue(text.str(), evidence.Assistant, evidence.Dialogue)
			case kind.is("toolCall"):
				addToolInput(s, arguments)
			}
		})
		s.extra(failed.str(), evidence.System, "", evidence.ToolTraffic)
	case "toolResult":
		eachText(content, func(v value) {
			toolText(v, func(t string) { s.toolOld(t, evidence.ToolResult) })
		})
		left := evidence.MaxToolInputs
		texts(nested, &left, structural, func(v value) { addToolOutput(s, v, evidence.ToolResult) })
		if left < 0 {
			s.cut(evidence.ToolResult)
		}
	case "system":
		say(evidence.System, evidence.Boilerplate)
		left := maxSections
		section := func(v value) { s.extra(v.str(), evidence.System, "", evidence.Boilerplate) }
		if content.isObject() {
			texts(content, &left, structural, section)
		}
		texts(msg.member("sections"), &left, structural, section)
		if left < 0 {
			s.cut(evidence.System)
		}
	case "developer":
		say(evidence.Developer, evidence.Boilerplate)
	case "custom", "hookMessage":
		say(evidence.System, evidence.ToolTraffic)
	case "bashExecution", "pythonExecution":
		// The person runs these; the model only gets to see them.
		say(evidence.System, evidence.ToolTraffic)
		for _, name := range []string{"command", "code"} {
			toolText(msg.member(name), func(t string) {
				s.new = s.headTail(s.new, t, Span{Role: evidence.User, Kind: evidence.KindToolInput, Class: evidence.ToolTraffic})
			})
		}
		addToolOutput(s, msg.member("output"), evidence.ToolResult)
	case "branchSummary", "compactionSummary":
		say(evidence.Summary, evidence.Dialogue)
		s.extra(msg.member("summary").str(), evidence.Summary, "", evidence.Dialogue)
	case "fileMention":
		say(evidence.System, evidence.ToolTraffic)
		left := evidence.MaxToolInputs
		texts(msg.member("files"), &left, structural, func(v value) { addToolOutput(s, v, evidence.System) })
		if left < 0 {
			s.cut(evidence.System)
		}
	default:
		as, _ := evidence.ParseRole(role)
		say(as, evidence.ToolTraffic)
	}
}

// maxSections bounds the parts taken of a system prompt.
const maxSections = 64

// addToolInput adds the text values of one tool call's arguments.
func addToolInput(s *spanner, arguments value) {
	left := evidence.MaxToolInputs
	texts(arguments, &left, sealed, func(v value) { toolText(v, s.toolInput) })
	if left < 0 {
		s.cut(evidence.Assistant)
	}
}

func addToolOutput(s *spanner, v value, role evidence.Role) {
	toolText(v, func(t string) { s.toolOutput(t, role) })
}

func (p *piParser) Damaged(_, _, _ int64, oversized bool) {
	p.damaged(oversized)
	p.tree.gap = true
}

func (p *piParser) Record(r *Record, emit func(*Record, *Entry) error) error {
	raw, ok := r.object()
	if !ok {
		p.Damaged(r.Line, r.Start, int64(len(r.Bytes)), false)
		return nil
	}
	p.n.Records++
	m := readPi(r, raw)
	switch {
	case m.kind == "session":
		p.header(raw)
		return nil
	case m.kind == "title":
		p.title(raw.member("title"))
		return nil
	}
	if !p.s.Header && !p.known(m.kind) && !m.hasID && p.tree.leaf == "" {
		return &ErrUnsupported{"the first record is not the header of a session"}
	}
	p.identify()
	if !m.hasID && !p.s.Header {
		p.s.Linear = true // only a damaged header can be missing: this is version 1
	}
	if !m.hasID && !p.s.Linear || !m.acceptable() {
		p.malformed()
		return nil
	}
	if p.tree.known(m.id) {
		p.duplicate()
		return nil
	}
	p.n.Eligible++
	if !p.known(m.kind) {
		p.unknown(m.kind)
	}
	parent := m.parent
	if parent == "" && p.s.Linear {
		if m.hasID {
			p.tree.doubt(m.id)
		}
		if p.tree.relabel {
			return ErrRestart // the leaf, which is to be the parent, may be another one
		}
		parent = p.tree.leaf
		m.entry.Parent = parent
	}
	n := p.tree.add(m.id, parent, node{})
	switch m.kind {
	case "compaction":
		p.s.Compaction = r.Line
		p.tree.doubt(m.id)
	case "session_info":
		p.title(raw.member("name"))
		p.tree.doubt(m.id)
	case "title_change":
		p.title(raw.member("title"))
		p.tree.doubt(m.id)
	}
	if m.entry.Spans = m.spans(); len(m.entry.Spans) == 0 {
		return nil
	}
	m.entry.Session, m.entry.Project = p.s.Session, p.s.Project
	// A fork takes over its parent's entries with their times, which are before its own.
	m.entry.Copy = p.s.Parent != "" && m.time != evidence.NoTime && m.time < p.s.Began
	p.tree.emitted(n)
	return emit(r, &m.entry)
}

func (p *piParser) known(kind string) bool {
	switch kind {
	case "session", "title", "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom",
		"custom_message", "label", "session_info", "service_tier_change", "reset_boundary", "title_change", "ttsr_injection",
		"credential_pin", "session_init", "mode_change", "context_edit", "usage", "context_transform", "ephemeral":
		return true
	}
	return false
}

func (p *piParser) title(v value) {
	if t := v.str(); t != "" {
		p.s.Title = clip(t, 256)
	}
}

// header takes the session record. Only the first one counts: a later one was
// copied from somewhere else.
func (p *piParser) header(raw value) {
	if p.s.Header {
		return
	}
	p.n.Eligible++
	p.s.Header = true
	version := 1
	for name, v := range raw.members() {
		switch string(name) {
		case "version":
			if n, err := strconv.ParseFloat(string(v), 64); err == nil && n == float64(int(n)) {
				version = int(n)
			} else if !v.isNull() {
				version = 0
			}
		case "id":
			if id := v.str(); p.s.Session == "" && evidence.IsIdentifier(id) {
				p.s.Session = id
			}
		case "timestamp":
			p.s.Began = ParseTime(v.str())
		case "cwd":
			if v.isString() && p.s.Project == "" {
				cwd := v.str()
				p.s.Project = ProjectID(cwd, cwd)
			}
		case "parentSession", "branchedFrom":
			p.s.Parent = sessionOf(v.str())
		case "title":
			p.title(v)
		}
	}
	if version < 1 || version > 3 {
		p.unknown("session version " + strconv.Itoa(version))
	}
	p.s.Linear = p.s.Linear || version == 1
	p.identify()
}

// identify sees to it that there are a session and a project: a damaged header
// must not cost the rest of the file.
func (p *piParser) identify() {
	if p.s.Session == "" {
		if p.s.Session = sessionOf(path.Base(p.file.Rel)); p.s.Session == "" {
			p.s.Session = "session"
		}
	}
	if p.s.Project == "" {
		first, _, _ := strings.Cut(p.file.Rel, "/")
		p.s.Project = ProjectID(first, first)
	}
}

// sessionOf gives the session id in a reference to a session: the id itself, or
// the last part of a file name <time>_<id>.jsonl.
func sessionOf(ref string) string {
	ref = strings.ReplaceAll(ref, `\`, "/")
	stem, file := strings.CutSuffix(ref[strings.LastIndexByte(ref, '/')+1:], ".jsonl")
	if file {
		stem = stem[strings.LastIndexByte(stem, '_')+1:]
	}
	if !evidence.IsIdentifier(stem) {
		return ""
	}
	return stem
}

func (p *piParser) Finish(func(*Record, *Entry) error) (Result, error) {
	var res Result
	res.OffBranch, res.Relabel = p.tree.labels()
	p.s.Tree = p.tree.state()
	res.State = saveState(&p.s)
	res.Counts = p.n
	res.Info = Info{
		Session: p.s.Session, Project: p.s.Project, Parent: p.s.Parent, Title: p.s.Title,
		LastEntry: p.tree.leaf, CompactionLine: p.s.Compaction,
	}
	if p.file.Origin == evidence.OMP && depth(p.file.Rel) > 2 {
		res.Info.Subagent = true
		// The directory bears the name of the file of the session that started it.
		if dir := path.Base(path.Dir(p.file.Rel)); res.Info.Parent == "" && strings.Contains(dir, "_") {
			res.Info.Parent = sessionOf(dir + ".jsonl")
		}
	}
	return res, nil
}
