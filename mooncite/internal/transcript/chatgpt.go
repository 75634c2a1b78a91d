package transcript

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"localmcp/mooncite/internal/evidence"
)

var chatgptFormat = format{
	origin:  evidence.ChatGPT,
	shape:   chatgptShape,
	descend: func(string) bool { return true },
	open:    openChatGPT,
	decode:  decodeChatGPT,
}

// A Skipper is a parser that can pass over records unread: those for which the
// function says true are counted and give no entries. The parser of ChatGPT
// exports is one, so that unchanged conversations cost no parsing. A record gives the
// same entries whatever other ones the file has, or none: of several conversations of
// one id only the first is read, and the function is not asked about the others.
type Skipper interface {
	SetSkip(func(*Record) bool)
}

// chatgptShape takes the three names that exports use.
func chatgptShape(rel string) Shape {
	base := rel[strings.LastIndexByte(rel, '/')+1:]
	if base == "conversation.json" || base == "conversations.json" {
		return Document
	}
	n, ok := strings.CutPrefix(base, "conversations-")
	if !ok {
		return None
	}
	if n, ok = strings.CutSuffix(n, ".json"); !ok || n == "" || strings.Trim(n, "0123456789") != "" {
		return None
	}
	return Document
}

func openChatGPT(_ File, state []byte) (Parser, error) {
	if state != nil {
		return nil, ErrRestart
	}
	return &chatgptParser{met: make(map[string]evidence.Digest)}, nil
}

func decodeChatGPT(_ File, r *Record) ([]Entry, error) {
	c := readChat(r)
	if !c.read(r) {
		return nil, nil
	}
	out, _ := c.entries()
	return out, nil
}

// A chatgptParser reads the conversations of one export file.
type chatgptParser struct {
	tally
	skip func(*Record) bool
	met  map[string]evidence.Digest // conversations of the file, by id
	good int64                      // of them
	info Info
}

// SetSkip says which conversations are passed over.
func (p *chatgptParser) SetSkip(skip func(*Record) bool) { p.skip = skip }

// Damaged counts what holds no conversation.
func (p *chatgptParser) Damaged(_, _, _ int64, oversized bool) { p.damaged(oversized) }

// Record takes the next conversation.
func (p *chatgptParser) Record(r *Record, emit func(*Record, *Entry) error) error {
	p.n.Records++
	c := readChat(r)
	if sum, again := p.met[c.id]; again {
		if sum == r.Digest {
			p.duplicate()
		} else {
			p.malformed() // its text is nowhere else, and it has no identity of its own
		}
		return nil
	}
	if p.skip != nil && p.skip(r) {
		p.take(c, r)
		p.info = Info{}
		return nil
	}
	if !c.read(r) {
		p.malformed()
		return nil
	}
	p.take(c, r)
	p.n.Records += int64(len(c.nodes))
	r.Parts = 1 + int64(len(c.nodes))
	for _, name := range c.unknown {
		p.unknown(name)
	}
	entries, again := c.entries()
	for range again {
		p.n.Eligible++
		p.duplicate()
	}
	p.info = Info{Session: c.id, Project: c.project(), Title: c.title, LastEntry: c.leaf}
	for i := range entries {
		p.n.Eligible++
		if err := emit(r, &entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *chatgptParser) take(c *chat, r *Record) {
	p.good++
	p.met[c.id] = r.Digest
}

// Finish gives the result. Only a file of one conversation has a session of its
// own; the entries of others carry theirs.
func (p *chatgptParser) Finish(func(*Record, *Entry) error) (Result, error) {
	if p.good == 0 && p.n.Records > 0 {
		return Result{}, &ErrUnsupported{Reason: "objects, but none is a conversation"}
	}
	res := Result{Counts: p.n}
	if p.good == 1 {
		res.Info = p.info
	}
	return res, nil
}

var (
	_ Parser  = (*chatgptParser)(nil)
	_ Skipper = (*chatgptParser)(nil)
)

// A chat is one conversation taken apart.
type chat struct {
	id, title, current string // id is "" when there is no acceptable one
	mapping            value
	nodes              []chatNode
	unknown            []string // content types, one for each message of an unknown one
	leaf               string   // id of the last entry of the current branch
}

// A chatNode is one node of the mapping.
type chatNode struct {
	key, parent string
	entry       Entry // without spans when the node says nothing
}

func (c *chat) project() string {
	t := c.title
	if strings.TrimSpace(t) == "" {
		t = "ChatGPT"
	}
	return ProjectID(t, t)
}

// readChat looks at a conversation from above. That the record is JSON is not checked
// yet.
func readChat(r *Record) *chat {
	c := &chat{}
	var id, conversationID value
	for name, v := range value(trim(r.Bytes)).members() {
		switch string(name) {
		case "title":
			c.title = v.str()
		case "id":
			id = v
		case "conversation_id":
			conversationID = v
		case "current_node", "currentNode":
			if v.isString() {
				c.current = v.str()
			}
		case "mapping":
			c.mapping = v
		}
	}
	for _, v := range []value{conversationID, id} {
		if s := v.str(); c.id == "" && evidence.IsIdentifier(s) {
			c.id = s
		}
	}
	return c
}

// read reads the messages. false: the record is not a conversation.
func (c *chat) read(r *Record) bool {
	if _, ok := r.object(); !ok || !c.mapping.isObject() || c.id == "" {
		return false
	}
	for name, v := range c.mapping.members() {
		key := string(name)
		if !utf8.ValidString(key) {
			key = string([]rune(key)) // as [value.str] makes a parent's valid
		}
		c.nodes = append(c.nodes, chatNode{key: key})
		c.node(v, &c.nodes[len(c.nodes)-1])
	}
	return true
}

func (c *chat) node(node value, n *chatNode) {
	for name, v := range node.members() {
		switch string(name) {
		case "parent":
			n.parent = v.str()
		case "message":
			if v.isObject() {
				c.message(v, n)
			}
		}
	}
}

// A chatMessage is a message's raw fields.
type chatMessage struct {
	id, role, time, recipient                        value
	kind, text, parts                                value
	title, snippet, result, summary, name            value
	profile, instructions, modelContext, contextData value
	hidden, userSystem                               bool
}

func (c *chat) message(message value, n *chatNode) {
	var m chatMessage
	for name, v := range message.members() {
		switch string(name) {
		case "id":
			m.id = v
		case "create_time":
			m.time = v
		case "recipient":
			m.recipient = v
		case "author":
			m.role = v.member("role")
		case "content":
			for name, v := range v.members() {
				if to := m.contentField(name); to != nil {
					*to = v
				}
			}
		case "metadata":
			m.metadata(v)
		}
	}
	id := m.id.str()
	if !evidence.IsIdentifier(id) || !evidence.IsIdentifier(n.key) {
		return
	}
	n.entry = Entry{ID: id, Kind: "message", Time: chatTime(m.time)}
	if k := m.kind.str(); evidence.IsKind(k) {
		n.entry.Kind = k
	}
	n.entry.Spans = c.spans(&m, n.entry.Kind)
}

// metadata looks for the few members that count; most messages have none of them.
func (m *chatMessage) metadata(v value) {
	if !bytes.Contains(v, []byte("is_visually_hidden_from")) && !bytes.Contains(v, []byte("is_user_system_")) &&
		!bytes.Contains(v, []byte("user_context_message_")) {
		return
	}
	for name, v := range v.members() {
		switch string(name) {
		case "is_visually_hidden_from_conversation":
			m.hidden = v.isTrue()
		case "is_user_system_message":
			m.userSystem = v.isTrue()
		case "user_context_message_data":
			m.contextData = v
		}
	}
}

func (m *chatMessage) contentField(name []byte) *value {
	switch string(name) {
	case "content_type":
		return &m.kind
	case "text":
		return &m.text
	case "parts":
		return &m.parts
	case "title":
		return &m.title
	case "snippet":
		return &m.snippet
	case "result":
		return &m.result
	case "summary":
		return &m.summary
	case "name":
		return &m.name
	case "user_profile":
		return &m.profile
	case "user_instructions":
		return &m.instructions
	case "model_set_context":
		return &m.modelContext
	}
	return nil
}

// spans gives what a message says. The earlier program took text, multimodal_text
// and code of user and assistant; those keep their ordinals, the rest follows.
func (c *chat) spans(m *chatMessage, kind string) []Span {
	var sp spanner
	said := m.role.str()
	role, _ := evidence.ParseRole(said)
	class := evidence.Dialogue
	switch {
	case role == evidence.System || role == evidence.Developer:
		class = evidence.Boilerplate
	case role == evidence.Tool || role == evidence.ToolResult:
		role, class = evidence.Tool, evidence.ToolTraffic
	case role == evidence.Assistant && isToolName(m.recipient.str()):
		class = evidence.ToolTraffic
	}
	if m.hidden || m.userSystem {
		class = evidence.Boilerplate
		if role == evidence.User {
			role = evidence.System
		}
	}
	old := said == "user" || said == "assistant"
	add := func(v value) {
		t := v.str()
		switch {
		case isPacked(t):
		case old:
			sp.dialogue(t, role, class)
		case role == evidence.Tool:
			sp.toolOutput(t, role)
		default:
			sp.extra(t, role, "", class)
		}
	}
	more := func(raws ...value) {
		for _, raw := range raws {
			t := raw.str()
			switch {
			case isPacked(t):
			case class == evidence.Boilerplate:
				sp.extra(t, role, "", class)
			default:
				sp.toolOutput(t, evidence.Tool)
			}
		}
	}
	context := func(raws ...value) {
		for _, raw := range raws {
			sp.extra(raw.str(), evidence.System, "", evidence.Boilerplate)
		}
	}
	switch kind {
	case "text", "multimodal_text", "code", "message":
		if kind == "code" && class == evidence.Dialogue {
			class = evidence.ToolTraffic
		}
		if kind == "message" {
			old = false // the earlier program wanted a content type
		}
		if m.text.isString() {
			add(m.text)
		}
		var prompts []string
		chatParts(m.parts, add, func(prompt string) { prompts = append(prompts, prompt) })
		for _, t := range prompts {
			sp.extra(t, role, evidence.KindToolInput, max(class, evidence.ToolTraffic))
		}
		if strings.HasPrefix(m.recipient.str(), "canmore.") {
			canvas(&sp, m, role)
		}
	case "execution_output", "citable_code_output", "computer_output":
		more(m.text)
	case "tether_quote", "sonic_webpage":
		more(m.title, m.text, m.snippet)
	case "tether_browsing_display":
		more(m.result, m.summary)
	case "system_error":
		more(m.name, m.text)
	case "user_editable_context":
		context(m.profile, m.instructions)
	case "model_editable_context":
		context(m.modelContext)
	case "thoughts", "reasoning_recap", "super_widget", "app_pairing_content":
	default:
		c.unknown = append(c.unknown, kind)
	}
	left := evidence.MaxToolInputs
	if !m.contextData.isObject() {
		return sp.spans()
	}
	m.contextData.strings(func(t string) bool {
		if t == "" {
			return true
		}
		if left == 0 {
			sp.cut(evidence.System)
			return false
		}
		left--
		sp.extra(t, evidence.System, "", evidence.Boilerplate)
		return true
	})
	return sp.spans()
}

// isToolName reports whether a recipient is a tool.
func isToolName(recipient string) bool {
	return recipient != "" && recipient != "all" && recipient != "user" && recipient != "assistant"
}

// chatParts gives the texts of a content's parts in order, and the prompts of
// pictures that were made.
func chatParts(parts value, text func(value), prompt func(string)) {
	for part := range parts.elements() {
		if part.isString() {
			text(part)
			continue
		}
		if t := part.member("text"); t.isString() {
			text(t)
		}
		if p := part.member("metadata").member("dalle").member("prompt").str(); p != "" {
			prompt(p)
		}
	}
}

// canvas adds the document that stands as JSON in a message to the canvas tool.
func canvas(sp *spanner, m *chatMessage, role evidence.Role) {
	input := func(v value) { sp.extra(v.str(), role, evidence.KindToolInput, evidence.ToolTraffic) }
	add := func(text value) {
		text.inside(func(document value) {
			input(document.member("name"))
			input(document.member("content"))
			for update := range document.member("updates").elements() {
				input(update.member("replacement"))
			}
		})
	}
	add(m.text)
	chatParts(m.parts, add, func(string) {})
}

// chatTime reads float seconds.
func chatTime(raw value) int64 {
	if len(raw) == 0 || len(raw) > 64 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return evidence.NoTime
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) > 8.64e12 {
		return evidence.NoTime
	}
	return int64(math.Round(f * 1000))
}

// entries gives the entries in the mapping's order, with parents and branch, and how
// many there were of an id that came before.
func (c *chat) entries() (out []Entry, again int) {
	at := make(map[string]int, len(c.nodes))
	for i := range c.nodes {
		at[c.nodes[i].key] = i
	}
	on, leaf := c.branch(at)
	project := c.project()
	above := c.ancestors(at)
	if leaf >= 0 && len(c.nodes[leaf].entry.Spans) == 0 {
		leaf = above[leaf]
	}
	if leaf >= 0 {
		c.leaf = c.nodes[leaf].entry.ID
	}
	have := make(map[string]bool, len(c.nodes))
	for i := range c.nodes {
		e := c.nodes[i].entry
		if len(e.Spans) == 0 {
			continue
		}
		if have[e.ID] {
			again++
			continue
		}
		have[e.ID] = true
		e.Session, e.Project, e.Off = c.id, project, !on[i]
		if a := above[i]; a >= 0 && c.nodes[a].entry.ID != e.ID {
			e.Parent = c.nodes[a].entry.ID
		}
		out = append(out, e)
	}
	return out, again
}

// up gives the parent of a node, or -1.
func (c *chat) up(at map[string]int, i int) int {
	if p := c.nodes[i].parent; p != "" {
		if j, ok := at[p]; ok && j != i {
			return j
		}
	}
	return -1
}

// ancestors gives for every node the nearest one above it that says something, or
// -1. Every node is walked over once, however deep the tree; a cycle ends a walk.
func (c *chat) ancestors(at map[string]int) []int {
	const open, none = -2, -1
	found := make([]int, len(c.nodes))
	for i := range found {
		found[i] = open
	}
	var path []int
	for i := range c.nodes {
		path = path[:0]
		j, result := i, none
		for found[j] == open {
			found[j] = none // met again: a cycle
			path = append(path, j)
			k := c.up(at, j)
			if k < 0 {
				break
			}
			j = k
		}
		// From the top down; the top's own answer is known or none.
		if n := len(path); n > 0 && j != path[n-1] {
			result = found[j]
			if len(c.nodes[j].entry.Spans) > 0 {
				result = j
			}
		}
		for n := len(path) - 1; n >= 0; n-- {
			found[path[n]] = result
			if len(c.nodes[path[n]].entry.Spans) > 0 {
				result = path[n]
			}
		}
	}
	return found
}

// branch marks the nodes from the current one up to the root. When the current one
// is not told or not there, the newest leaf counts as it; -1 when there is none.
func (c *chat) branch(at map[string]int) (on []bool, leaf int) {
	on = make([]bool, len(c.nodes))
	leaf, ok := at[c.current]
	if c.current == "" || !ok {
		inner := make([]bool, len(c.nodes))
		for i := range c.nodes {
			if len(c.nodes[i].entry.Spans) == 0 {
				continue
			}
			for j := c.up(at, i); j >= 0 && !inner[j]; j = c.up(at, j) {
				inner[j] = true
			}
		}
		leaf = -1
		for _, all := range []bool{false, true} { // in a cycle nothing is a leaf
			for i := range c.nodes {
				e := &c.nodes[i].entry
				if len(e.Spans) == 0 || inner[i] && !all {
					continue
				}
				if leaf < 0 || e.Time >= c.nodes[leaf].entry.Time {
					leaf = i
				}
			}
			if leaf >= 0 {
				break
			}
		}
	}
	for i := leaf; i >= 0 && !on[i]; i = c.up(at, i) {
		on[i] = true
	}
	return on, leaf
}
