package transcript

import (
	"path"
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// claudeFormat: <project>/<session>.jsonl; sub-agents beside it as agent-<id>.jsonl
// (old) or in <project>/<session>/subagents/, also below workflows/ (new).
var claudeFormat = format{
	origin: evidence.Claude,
	shape: func(rel string) Shape {
		part := strings.Split(rel, "/")
		name := part[len(part)-1]
		switch {
		case !strings.HasSuffix(name, ".jsonl") || name == ".jsonl":
			return None
		case len(part) == 2 && name != "history.jsonl":
			return Lines
		case len(part) > 3 && claudeAgents(part[2]) && strings.HasPrefix(name, "agent-"):
			return Lines
		}
		return None
	},
	descend: func(rel string) bool {
		part := strings.Split(rel, "/")
		switch len(part) {
		case 1:
			return true
		case 2:
			return part[1] != "tool-results" && part[1] != "memory"
		}
		return len(part) <= 12 && claudeAgents(part[2])
	},
	open:   openClaude,
	decode: decodeClaude,
}

func claudeAgents(dir string) bool { return dir == "subagents" || dir == "workflows" }

type claudeParser struct {
	tally
	file   File
	tree   tree
	s      claudeState
	held   int    // size of all held turns
	rawCwd string // the cwd member read last, to know when it changes
}

type claudeState struct {
	Version    int        `json:"v"`
	Tree       treeState  `json:"tree"`
	Project    string     `json:"project"` // of the next record
	First      string     `json:"first,omitempty"`
	Parent     string     `json:"parent,omitempty"`
	Title      string     `json:"title,omitempty"`
	Named      bool       `json:"named,omitempty"` // the title was given by a person
	Compaction int64      `json:"compaction,omitempty"`
	Queue      []heldTurn `json:"queue,omitempty"`   // still waiting
	Removed    []heldTurn `json:"removed,omitempty"` // taken out, not yet surely gone
}

func openClaude(f File, state []byte) (Parser, error) {
	if !evidence.IsIdentifier(claudeSession(f)) {
		return nil, &ErrUnsupported{"the file name cannot be a session id"}
	}
	p := &claudeParser{file: f}
	if state != nil {
		if err := loadState(state, &p.s, &p.s.Version); err != nil {
			return nil, err
		}
	} else {
		dir, _, _ := strings.Cut(f.Rel, "/")
		p.s.Project = ProjectID(dir, "claude-project")
	}
	p.s.Version = stateVersion
	p.tree = newTree(p.s.Tree)
	for _, list := range [][]heldTurn{p.s.Queue, p.s.Removed} {
		for i := range list {
			p.held += list[i].size()
		}
	}
	return p, nil
}

func claudeSession(f File) string { return strings.TrimSuffix(path.Base(f.Rel), ".jsonl") }

func claudeSubagent(f File) bool {
	return strings.HasPrefix(path.Base(f.Rel), "agent-")
}

// claudeRecord is what is read of one record's envelope.
type claudeRecord struct {
	kind, subtype, id, parent, logical string
	badParent, meta, summary           bool
	hiddenOnly, sub                    bool
	time                               int64
	cwd, session, fork                 value
	message, result                    value // message and toolUseResult
	raw                                value

	group   string // message.id of an answer
	results bool   // nothing but tool results
}

func readClaude(raw value) claudeRecord {
	m := claudeRecord{raw: raw, time: evidence.NoTime}
	for name, v := range raw.members() {
		switch string(name) {
		case "type":
			m.kind = v.str()
		case "subtype":
			m.subtype = v.str()
		case "uuid":
			m.id = v.str()
		case "parentUuid":
			m.parent = v.str()
			m.badParent = !v.isNull() && !evidence.IsIdentifier(m.parent)
		case "logicalParentUuid":
			m.logical = v.str()
		case "timestamp":
			m.time = ParseTime(v.str())
		case "cwd":
			m.cwd = v
		case "sessionId":
			m.session = v
		case "forkedFrom":
			m.fork = v
		case "isMeta":
			m.meta = v.isTrue()
		case "isCompactSummary":
			m.summary = v.isTrue()
		case "isVisibleInTranscriptOnly":
			m.hiddenOnly = v.isTrue()
		case "isSidechain":
			m.sub = v.isTrue()
		case "message":
			m.message = v
		case "toolUseResult":
			m.result = v
		}
	}
	if m.parent == "" && evidence.IsIdentifier(m.logical) {
		m.parent = m.logical
	}
	return m
}

// entry gives the record's entry without session and project; false when it has no
// text. Records without an id of their own are known by their line.
func (m *claudeRecord) entry(r *Record) (Entry, bool) {
	e := Entry{ID: m.id, Parent: m.parent, Kind: m.kind, Time: m.time}
	var s spanner
	switch m.kind {
	case "user", "assistant":
		if m.id == "" || m.badParent {
			return e, false
		}
		m.turn(&s)
	case "system":
		m.notice(&s)
	case "attachment":
		m.attachment(&s)
	case "summary":
		e.ID, e.Parent = "", ""
		s.extra(m.raw.member("summary").str(), evidence.Summary, "", evidence.Dialogue)
	case "queue-operation":
		e.ID, e.Parent = "", ""
		if m.raw.member("operation").is("enqueue") {
			eachText(m.raw.member("content"), func(v value) {
				for _, part := range claudeParts(v.str()) {
					s.extra(part.text, part.role, part.kind, part.class)
				}
			})
		}
	}
	if e.ID == "" {
		e.ID = lineID(r.Line, [8]byte(r.Digest[:8]))
	}
	e.Spans = s.spans()
	return e, len(e.Spans) > 0 && evidence.IsIdentifier(e.ID) && evidence.IsKind(e.Kind) && !m.badParent
}

func decodeClaude(_ File, r *Record) ([]Entry, error) {
	raw, ok := r.object()
	if !ok {
		return nil, nil
	}
	m := readClaude(raw)
	e, ok := m.entry(r)
	if !ok {
		return nil, nil
	}
	return []Entry{e}, nil
}

// turn gives the text of a user or an assistant record.
func (m *claudeRecord) turn(s *spanner) {
	var content value
	synthetic := false
	for name, v := range m.message.members() {
		switch string(name) {
		case "content":
			content = v
		case "model":
			synthetic = v.is("<synthetic>")
		case "id":
			if id := v.str(); m.kind == "assistant" && len(id) <= evidence.MaxIdentifier {
				m.group = id
			}
		}
	}
	m.results = m.kind == "user" && content.isArray()
	say := func(v value) {
		switch {
		case m.kind == "assistant" && synthetic:
			s.dialogue(v.str(), evidence.System, evidence.Boilerplate)
		case m.kind == "assistant":
			s.dialogue(v.str(), evidence.Assistant, evidence.Dialogue)
		case m.summary:
			s.dialogue(v.str(), evidence.Summary, evidence.Dialogue)
		case m.meta || m.hiddenOnly:
			s.dialogue(v.str(), evidence.System, evidence.Boilerplate)
		default:
			addClaudeText(s, v.str())
		}
	}
	if content.isString() {
		say(content)
		return
	}
	blocks := 0
	for block := range content.elements() {
		blocks++
		var kind, text, input, inner, source, title value
		for name, v := range block.members() {
			switch string(name) {
			case "type":
				kind = v
			case "text":
				text = v
			case "input":
				input = v
			case "content":
				inner = v
			case "source":
				source = v
			case "title":
				title = v
			}
		}
		m.results = m.results && kind.is("tool_result")
		switch {
		case kind.is("text"):
			if text.isString() {
				say(text)
			}
		case kind.is("tool_use"), kind.is("server_tool_use"), kind.is("mcp_tool_use"):
			addToolInput(s, input)
		case isResult(kind):
			had := len(s.new)
			addResult(s, inner)
			if len(s.new) == had && kind.is("tool_result") {
				// The second, richer form is read only when the block has no text.
				addResult(s, m.result)
				m.result = nil
			}
		case kind.is("document"):
			if source.member("type").is("text") {
				addToolOutput(s, title, evidence.Tool)
				addToolOutput(s, source.member("data"), evidence.Tool)
			}
		}
	}
	m.results = m.results && blocks > 0
}

// isResult reports whether a block's type is one of the kinds of tool results.
func isResult(kind value) bool {
	return kind.isString() && strings.HasSuffix(string(kind[1:len(kind)-1]), "tool_result")
}

// addResult adds the content of a result block: text, the streams of a command, and
// what a web search names.
func addResult(s *spanner, content value) { addResultAt(s, content, 4) }

func addResultAt(s *spanner, content value, depth int) {
	switch {
	case depth == 0:
		if content.isObject() {
			s.cut(evidence.Tool)
		}
	case content.isString():
		addToolOutput(s, content, evidence.Tool)
	case content.isObject():
		for name, m := range content.members() {
			switch string(name) {
			case "stdout", "stderr", "output", "result", "content", "file":
				addResultAt(s, m, depth-1)
			}
		}
	}
	left := evidence.MaxToolInputs
	for block := range content.elements() {
		switch kind := block.member("type"); {
		case kind.is("text"):
			addToolOutput(s, block.member("text"), evidence.Tool)
		case kind.is("web_search_result") && left == 0:
			s.cut(evidence.Tool)
			return
		case kind.is("web_search_result"):
			left--
			addToolOutput(s, block.member("title"), evidence.Tool)
			addToolOutput(s, block.member("url"), evidence.Tool)
		}
	}
}

// notice gives the text of a system record.
func (m *claudeRecord) notice(s *spanner) {
	content := m.raw.member("content")
	if !content.isString() {
		return
	}
	switch m.subtype {
	case "compact_boundary", "microcompact_boundary":
		// A mark with a fixed sentence.
	case "local_command":
		for _, part := range claudeParts(content.str()) {
			role := part.role
			if part.kind == "" { // never a person's own words
				role = evidence.System
			}
			if part.kind == evidence.KindToolOutput {
				s.new = s.headTail(s.new, part.text, Span{Role: role, Kind: part.kind, Class: part.class})
				continue
			}
			s.extra(part.text, role, part.kind, evidence.ToolTraffic)
		}
	case "away_summary":
		s.extra(content.str(), evidence.Summary, "", evidence.Dialogue)
	default:
		s.extra(content.str(), evidence.System, "", evidence.Boilerplate)
	}
}

// attachment gives the text of an attachment: what a person typed while the model
// was busy, files a person pointed at, and what hooks and memory files put in. The
// many others repeat what the program knows by itself.
func (m *claudeRecord) attachment(s *spanner) {
	a := m.raw.member("attachment")
	switch kind := a.member("type").str(); {
	case kind == "queued_command":
		eachText(a.member("prompt"), func(v value) {
			if m.meta {
				s.extra(v.str(), evidence.System, "", evidence.Boilerplate)
				return
			}
			for _, part := range claudeParts(v.str()) {
				s.extra(part.text, part.role, part.kind, part.class)
			}
		})
	case kind == "file", kind == "edited_text_file", kind == "selected_lines_in_ide":
		addToolOutput(s, a.member("filename"), evidence.Tool)
		addToolOutput(s, a.member("snippet"), evidence.Tool)
		addResult(s, a.member("content"))
	case kind == "nested_memory", strings.HasPrefix(kind, "hook_"):
		left := evidence.MaxToolInputs
		for _, name := range []string{"content", "stdout", "stderr"} {
			texts(a.member(name), &left, structural, func(v value) {
				toolText(v, func(t string) {
					s.new = s.headTail(s.new, t, Span{Role: evidence.System, Class: evidence.Boilerplate})
				})
			})
		}
		if left < 0 {
			s.cut(evidence.System)
		}
	}
}

// side reports whether nobody speaks in the record: see [tree]. It is known once
// the text was read.
func (m *claudeRecord) side() bool {
	switch m.kind {
	case "assistant":
		return false
	case "user":
		return m.meta || m.results
	case "system":
		return m.subtype != "compact_boundary"
	}
	return true
}

func (p *claudeParser) Damaged(_, _, _ int64, oversized bool) {
	p.damaged(oversized)
	p.tree.gap = true
}

func (p *claudeParser) Record(r *Record, emit func(*Record, *Entry) error) error {
	raw, ok := r.object()
	if !ok {
		p.Damaged(r.Line, r.Start, int64(len(r.Bytes)), false)
		return nil
	}
	p.n.Records++
	m := readClaude(raw)
	p.place(&m)
	if m.id == "" || !evidence.IsIdentifier(m.id) {
		return p.loose(r, &m, emit)
	}
	known := claudeKnown(m.kind)
	if known == noNode {
		return p.loose(r, &m, emit)
	}
	if !evidence.IsKind(m.kind) || m.badParent {
		p.malformed()
		return nil
	}
	if p.tree.known(m.id) {
		p.duplicate()
		return nil
	}
	if known == notKnown {
		p.unknown(m.kind)
	}
	p.n.Eligible++
	parent := m.parent
	boundary := m.kind == "system" && m.subtype == "compact_boundary"
	if boundary || m.kind == "user" && m.summary {
		p.s.Compaction = r.Line
		p.tree.doubt(m.id)
	}
	if boundary {
		parent = p.tree.goingOn(parent)
	}
	e, ok := m.entry(r)
	at := p.tree.add(m.id, parent, node{group: m.group, side: m.side(), sub: m.sub && !claudeSubagent(p.file)})
	if p.held > 0 {
		if p.tree.relabel {
			return ErrRestart // a record may have come again, which settles nothing
		}
		if err := p.settle(m.kind, &e, emit); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	return p.give(r, &e, m.fork.isObject(), at, emit)
}

func (p *claudeParser) give(r *Record, e *Entry, copied bool, at int32, emit func(*Record, *Entry) error) error {
	e.Session, e.Copy = claudeSession(p.file), copied
	if e.Project == "" {
		e.Project = p.s.Project
	}
	p.tree.emitted(at)
	return emit(r, e)
}

// place takes from a record where the session stands: project and parent.
func (p *claudeParser) place(m *claudeRecord) {
	if len(m.cwd) > 0 && string(m.cwd) != p.rawCwd {
		p.rawCwd = string(m.cwd)
		if cwd := m.cwd.str(); strings.TrimSpace(cwd) != "" {
			p.s.Project = ProjectID(cwd, cwd)
			if p.s.First == "" {
				p.s.First = p.s.Project
			}
		}
	}
	if p.s.Parent != "" {
		return
	}
	if m.fork.isObject() {
		if id := m.fork.member("sessionId").str(); evidence.IsIdentifier(id) {
			p.s.Parent = id
			return
		}
	}
	if claudeSubagent(p.file) {
		id := ""
		if part := strings.Split(p.file.Rel, "/"); len(part) > 3 {
			id = part[1]
		} else {
			id = m.session.str()
		}
		if evidence.IsIdentifier(id) {
			p.s.Parent = id
		}
	}
}

// loose takes a record that has no place in the tree.
func (p *claudeParser) loose(r *Record, m *claudeRecord, emit func(*Record, *Entry) error) error {
	switch m.kind {
	case "user", "assistant":
		p.malformed()
	case "custom-title":
		if t := m.raw.member("customTitle").str(); t != "" {
			p.s.Title, p.s.Named = clip(t, 256), true
		}
	case "ai-title":
		if t := m.raw.member("aiTitle").str(); t != "" && !p.s.Named {
			p.s.Title = clip(t, 256)
		}
	case "last-prompt":
		if id := m.raw.member("leafUuid").str(); evidence.IsIdentifier(id) {
			p.tree.choose(id)
		}
	case "summary":
		if e, ok := m.entry(r); ok {
			p.n.Eligible++
			return p.give(r, &e, false, -1, emit)
		}
	case "queue-operation":
		return p.queue(r, m, emit)
	default:
		if claudeKnown(m.kind) == notKnown {
			p.unknown(m.kind)
		}
	}
	return nil
}

func (p *claudeParser) Finish(emit func(*Record, *Entry) error) (Result, error) {
	var res Result
	if err := p.release(true, emit); err != nil {
		return res, err
	}
	res.OffBranch, res.Relabel = p.tree.labels()
	p.s.Tree = p.tree.state()
	if p.held <= maxHeldState {
		res.State = saveState(&p.s)
	}
	res.Counts = p.n
	res.Info = Info{
		Session: claudeSession(p.file), Project: p.s.First, Subagent: claudeSubagent(p.file),
		Parent: p.s.Parent, Title: p.s.Title, LastEntry: p.tree.leaf, CompactionLine: p.s.Compaction,
	}
	if res.Info.Project == "" {
		res.Info.Project = p.s.Project
	}
	return res, nil
}

// What is known of a record type.
const (
	notKnown = iota
	hasNode  // part of the tree when it has a uuid
	noNode   // bookkeeping, or a copy of what stands elsewhere
)

func claudeKnown(kind string) int {
	switch kind {
	case "user", "assistant", "system", "attachment", "progress":
		return hasNode
	case "summary", "file-history-snapshot", "file-history-delta", "queue-operation", "custom-title", "ai-title",
		"agent-name", "agent-setting", "agent-color", "pr-link", "last-prompt", "mode", "permission-mode",
		"worktree-state", "tag", "task-summary", "content-replacement", "attribution-snapshot", "speculation-accept",
		"atis-latch", "tools-used", "cost-state", "api-request", "api-request-shape", "api-request-blob":
		return noNode
	}
	if strings.HasPrefix(kind, "marble-origami-") {
		return noNode
	}
	return notKnown
}
