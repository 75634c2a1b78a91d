package transcript

import (
	"bytes"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// Fields of a rollout line that are looked at, on any level of it.
const (
	cxType = iota
	cxID
	cxTimestamp
	cxRecordType
	cxRole
	cxContent
	cxMessage
	cxText
	cxCallID
	cxArguments
	cxInput
	cxOutput
	cxAction
	cxCommand
	cxAggregated
	cxStdout
	cxStderr
	cxInvocation
	cxResult
	cxRevisedPrompt
	cxSessionID
	cxCwd
	cxSource
	cxParentThread
	cxForkedFrom
	cxInstructions
	cxBaseInstructions
	cxHistoryMode
	cxTurnID
	cxNumTurns
	cxThreadName
	cxItem
	cxFields
)

// codexFields are places in a record, not slices: a line has a hundred of them, and
// places cost the collector nothing.
type codexFields struct {
	src   []byte
	at    [cxFields][2]int32
	texts [][2]int32 // of the parts of content, when it is a list
}

// of gives a field's raw value, nil when it is not there.
func (f *codexFields) of(k int) []byte {
	if at := f.at[k]; at[1] > 0 {
		return f.src[at[0]:at[1]:at[1]]
	}
	return nil
}

// read takes the value that comes next as a field, or passes over it.
func (f *codexFields) read(w *rawWalk, k int) {
	if k == cxContent && w.dec.PeekKind() == '[' {
		f.readContent(w)
		return
	}
	v := w.value()
	if end := w.offset(); k >= 0 && k < cxFields && !w.bad {
		f.at[k] = [2]int32{int32(end - len(v)), int32(end)}
	}
}

// codexLine is one record taken apart: the top level, its payload, and the
// payload's item. In eras without an envelope the top level is the payload.
type codexLine struct {
	top, payload, item codexFields
	hasPayload         bool
}

// readContent takes the texts of a content's parts in passing: strings, and the
// member text of objects.
func (f *codexFields) readContent(w *rawWalk) {
	f.texts = f.texts[:0]
	f.at[cxContent] = [2]int32{}
	w.enter('[')
	for w.more() {
		if w.dec.PeekKind() == '"' {
			v := w.value()
			f.texts = append(f.texts, [2]int32{int32(w.offset() - len(v)), int32(w.offset())})
			continue
		}
		if !w.enter('{') {
			w.value()
			continue
		}
		var text [2]int32
		for w.more() {
			isText := string(plainName(w.value())) == `"text"`
			if v := w.value(); isText {
				text = [2]int32{}
				if isString(v) {
					text = [2]int32{int32(w.offset() - len(v)), int32(w.offset())}
				}
			}
		}
		if text[1] > 0 {
			f.texts = append(f.texts, text)
		}
	}
}

// contents gives the texts of content.
func (f *codexFields) contents() []string {
	if c := f.of(cxContent); c != nil {
		return codexTexts(c)
	}
	if len(f.texts) == 0 {
		return nil
	}
	out := make([]string, len(f.texts))
	for i, at := range f.texts {
		out[i] = unquote(f.src[at[0]:at[1]])
	}
	return out
}

func codexField(name []byte) int {
	switch string(name) {
	case `"type"`:
		return cxType
	case `"id"`:
		return cxID
	case `"timestamp"`:
		return cxTimestamp
	case `"record_type"`:
		return cxRecordType
	case `"role"`:
		return cxRole
	case `"content"`:
		return cxContent
	case `"message"`:
		return cxMessage
	case `"text"`:
		return cxText
	case `"call_id"`:
		return cxCallID
	case `"arguments"`:
		return cxArguments
	case `"input"`:
		return cxInput
	case `"output"`:
		return cxOutput
	case `"action"`:
		return cxAction
	case `"command"`:
		return cxCommand
	case `"aggregated_output"`:
		return cxAggregated
	case `"stdout"`:
		return cxStdout
	case `"stderr"`:
		return cxStderr
	case `"invocation"`:
		return cxInvocation
	case `"result"`:
		return cxResult
	case `"revised_prompt"`:
		return cxRevisedPrompt
	case `"session_id"`:
		return cxSessionID
	case `"cwd"`:
		return cxCwd
	case `"source"`:
		return cxSource
	case `"parent_thread_id"`:
		return cxParentThread
	case `"forked_from_id"`:
		return cxForkedFrom
	case `"instructions"`:
		return cxInstructions
	case `"base_instructions"`:
		return cxBaseInstructions
	case `"history_mode"`:
		return cxHistoryMode
	case `"turn_id"`:
		return cxTurnID
	case `"num_turns"`:
		return cxNumTurns
	case `"thread_name"`:
		return cxThreadName
	case `"item"`:
		return cxItem
	case `"payload"`:
		return cxFields
	}
	return -1
}

// parseCodex takes a record apart in one pass. false: not a JSON object.
func parseCodex(src []byte, l *codexLine) bool {
	if len(src) > math.MaxInt32 {
		return false
	}
	for _, f := range []*codexFields{&l.top, &l.payload, &l.item} {
		*f = codexFields{src: src, texts: f.texts[:0]}
	}
	l.hasPayload = false
	w := newRawWalk(src)
	defer w.free()
	if !w.enter('{') {
		return false
	}
	for w.more() {
		switch k := codexField(plainName(w.value())); {
		case k == cxFields && w.dec.PeekKind() == '{':
			l.hasPayload = true
			w.dec.ReadToken()
			for w.more() {
				if k := codexField(plainName(w.value())); k == cxItem && w.dec.PeekKind() == '{' {
					codexMembers(w, &l.item)
				} else {
					l.payload.read(w, k)
				}
			}
		default:
			l.top.read(w, k)
		}
	}
	return w.done()
}

// codexMembers reads the object that comes next.
func codexMembers(w *rawWalk, to *codexFields) {
	if !w.enter('{') {
		w.value()
		return
	}
	for w.more() {
		to.read(w, codexField(plainName(w.value())))
	}
}

// codexParse is codexMembers over a raw value.
func codexParse(raw []byte) (f codexFields) {
	w := newRawWalk(raw)
	defer w.free()
	f.src = raw
	codexMembers(w, &f)
	return f
}

// What a record means to the parser, beside its entry.
type codexNote int

const (
	cxNothing   codexNote = iota // known, nothing to tell
	cxUnknown                    // a type nobody knows
	cxHeader                     // session_meta, or the first line of a bare rollout
	cxTurn                       // carries a turn id
	cxTurnEnd                    // a turn ended
	cxRollback                   // turns were undone
	cxCompacted                  // a compaction
	cxTitle                      // the thread got a name
)

// Ranks of records that tell the same thing; of several the highest is cited.
// Zero has no double.
const (
	rankWeak   = 1 + iota // response_item message; tool event or item
	rankMiddle            // item_completed message
	rankStrong            // event_msg message; response_item tool output
)

// codexEntry is what one record says, without regard to its neighbours.
type codexEntry struct {
	Entry
	note    codexNote
	name    string // the type, for counting unknown ones
	rank    int
	keys    []uint64 // a double shares one of them
	user    bool     // starts a user turn
	foreign bool     // of no known era
	cwd     string   // working directory told by an environment context
}

// readCodex gives the meaning of a record. The line is wanted only for the id.
func readCodex(l *codexLine, r *Record) codexEntry {
	e := codexEntry{Entry: Entry{Time: evidence.NoTime}}
	if ts := l.top.of(cxTimestamp); isString(ts) && len(ts) <= 66 {
		e.Time = ParseTime(unquote(ts))
	}
	var sp spanner
	if l.hasPayload {
		e.envelope(l, &sp)
	} else {
		e.bare(l, &sp)
	}
	e.Spans = sp.spans()
	if len(e.Spans) > 0 {
		e.ID = lineID(r.Line, r.Digest)
	} else {
		e.rank, e.keys, e.user = 0, nil, false
	}
	return e
}

// envelope reads eras C and E.
func (e *codexEntry) envelope(l *codexLine, sp *spanner) {
	p := &l.payload
	e.name = unquote(l.top.of(cxType))
	e.Kind = e.name
	switch e.name {
	case "session_meta":
		e.note = cxHeader
		text := unquote(p.of(cxInstructions))
		if b := p.of(cxBaseInstructions); isString(b) {
			text = unquote(b)
		} else if isObject(b) {
			f := codexParse(b)
			text = unquote(f.of(cxText))
		}
		instructions(sp, text)
	case "response_item":
		e.item(p, sp, true)
	case "event_msg":
		e.event(p, &l.item, sp)
	case "turn_context":
		e.note = cxTurn
	case "compacted":
		e.note = cxCompacted
		sp.extra(unquote(p.of(cxMessage)), evidence.Summary, "", evidence.Dialogue)
	case "inter_agent_communication":
		for _, t := range p.contents() {
			sp.extra(t, evidence.Assistant, "", evidence.Dialogue)
		}
	case "world_state", "inter_agent_communication_metadata", "token_usage_record", "thread_settings_applied":
	default:
		e.note, e.foreign = cxUnknown, true
	}
}

// bare reads eras A, B and D, where the top level is the item.
func (e *codexEntry) bare(l *codexLine, sp *spanner) {
	t := &l.top
	switch {
	case isString(t.of(cxType)):
		switch string(t.of(cxType)) {
		case `"session_meta"`:
			e.note, e.Kind = cxHeader, "session_meta"
		case `"turn_context"`, `"compacted"`, `"event_msg"`, `"world_state"`:
		case `"user_message"`:
			e.event(t, &l.item, sp)
		case `"agent_message"`:
			if isString(t.of(cxMessage)) {
				e.event(t, &l.item, sp)
				break
			}
			fallthrough
		default:
			if string(t.of(cxType)) == `"message"` && !isString(t.of(cxRole)) {
				e.name, e.note = "message", cxUnknown // another client's
			} else {
				e.item(t, sp, false)
			}
			e.foreign = e.note == cxUnknown
		}
	case isString(t.of(cxRecordType)):
	case isString(t.of(cxID)) && (isString(t.of(cxTimestamp)) || t.of(cxInstructions) != nil):
		e.note, e.Kind = cxHeader, "session_meta"
		instructions(sp, unquote(t.of(cxInstructions)))
	default:
		e.note, e.foreign = cxUnknown, true
	}
}

// instructions adds a system prompt: one span, so that its size is bounded.
func instructions(sp *spanner, text string) {
	sp.extra(text, evidence.System, "", evidence.Boilerplate)
	if len(sp.new) > 1 {
		sp.new = sp.new[:1:1]
	}
}

// item reads a response item. enveloped says that an event may tell the same.
func (e *codexEntry) item(p *codexFields, sp *spanner, enveloped bool) {
	e.name = unquote(p.of(cxType))
	e.Kind = e.name
	switch e.name {
	case "message":
		role := unquote(p.of(cxRole))
		texts := p.contents()
		for _, t := range texts {
			switch role {
			case "user":
				if isImageMark(t) {
					continue
				}
				if e.cwd == "" {
					e.cwd = contextCwd(t)
				}
				if userText(sp, t, enveloped) {
					e.user = true
				}
			case "assistant":
				sp.dialogue(t, evidence.Assistant, evidence.Dialogue)
			case "developer":
				sp.extra(t, evidence.Developer, "", evidence.Boilerplate)
			case "system":
				sp.extra(t, evidence.System, "", evidence.Boilerplate)
			default:
				sp.dialogue(t, evidence.Unknown, evidence.Dialogue)
			}
		}
		if enveloped && (role == "user" || role == "assistant") {
			e.rank = rankWeak
			e.keys = turnKeys(role, texts)
		}
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call":
		if a := p.of(cxArguments); isString(a) {
			codexArguments(sp, unquote(a))
		} else if a != nil {
			toolValues(sp, a)
		}
		if in := p.of(cxInput); isString(in) {
			codexInput(sp, unquote(in))
		} else if in != nil {
			toolValues(sp, in)
		}
		if a := p.of(cxAction); isObject(a) {
			toolValues(sp, codexAction(a))
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		toolOutputs(sp, p.of(cxOutput))
		if enveloped {
			e.rank, e.keys = rankStrong, callKey(p.of(cxCallID))
		}
	case "image_generation_call":
		codexInput(sp, unquote(p.of(cxRevisedPrompt)))
	case "agent_message":
		for _, t := range p.contents() {
			sp.extra(t, evidence.Assistant, "", evidence.Dialogue)
		}
	case "reasoning", "additional_tools", "compaction", "compaction_summary", "context_compaction",
		"compaction_trigger", "ghost_snapshot", "other":
	default:
		e.note = cxUnknown
	}
}

// event reads an event_msg.
func (e *codexEntry) event(p, item *codexFields, sp *spanner) {
	e.name = unquote(p.of(cxType))
	e.Kind = e.name
	switch e.name {
	case "user_message", "agent_message":
		if !isString(p.of(cxMessage)) {
			return
		}
		t := unquote(p.of(cxMessage))
		e.rank = rankStrong
		if e.name == "user_message" {
			e.user = userText(sp, t, false)
			e.keys = turnKeys("user", []string{t})
		} else {
			sp.dialogue(t, evidence.Assistant, evidence.Dialogue)
			e.keys = turnKeys("assistant", []string{t})
		}
	case "item_completed":
		e.turnItem(item, sp)
	case "exec_command_end":
		toolValues(sp, p.of(cxCommand))
		if out := p.of(cxAggregated); isString(out) && len(out) > 2 {
			toolOutputs(sp, out)
		} else {
			toolOutputs(sp, p.of(cxStdout))
			toolOutputs(sp, p.of(cxStderr))
		}
		e.rank, e.keys = rankWeak, callKey(p.of(cxCallID))
	case "mcp_tool_call_end":
		if isObject(p.of(cxInvocation)) {
			f := codexParse(p.of(cxInvocation))
			toolValues(sp, f.of(cxArguments))
		}
		toolResult(sp, p.of(cxResult))
		e.rank, e.keys = rankWeak, callKey(p.of(cxCallID))
	case "task_started", "turn_started":
		e.note = cxTurn
	case "task_complete", "turn_complete", "turn_aborted":
		e.note = cxTurnEnd
	case "thread_rolled_back":
		e.note = cxRollback
	case "context_compacted":
		e.note = cxCompacted
	case "thread_name_updated":
		e.note = cxTitle
	default:
		if !codexEvents[e.name] {
			e.note = cxUnknown
		}
	}
}

// codexEvents are events that hold no words of their own.
var codexEvents = map[string]bool{
	"agent_reasoning": true, "agent_reasoning_raw_content": true, "agent_reasoning_section_break": true,
	"token_count": true, "thread_goal_updated": true, "thread_settings_applied": true,
	"entered_review_mode": true, "exited_review_mode": true, "patch_apply_begin": true, "patch_apply_end": true,
	"mcp_tool_call_begin": true, "web_search_begin": true, "web_search_end": true, "image_generation_begin": true,
	"image_generation_end": true, "sub_agent_activity": true, "exec_command_begin": true, "item_started": true,
	"error": true, "warning": true, "view_image_tool_call": true, "collab_agent_spawn_end": true,
	"collab_agent_interaction_end": true, "collab_waiting_end": true, "collab_close_end": true,
	"collab_resume_end": true, "dynamic_tool_call_request": true, "dynamic_tool_call_response": true,
	"session_configured": true, "plan_update": true, "turn_diff": true, "token_usage_record": true,
	"background_event": true, "stream_error": true, "shutdown_complete": true,
}

// turnItem reads the item of an item_completed event.
func (e *codexEntry) turnItem(f *codexFields, sp *spanner) {
	e.name = unquote(f.of(cxType))
	if evidence.IsKind(e.name) {
		e.Kind = e.name
	}
	switch e.name {
	case "UserMessage", "AgentMessage":
		texts := f.contents()
		role := "assistant"
		if e.name == "UserMessage" {
			role = "user"
		}
		for _, t := range texts {
			if role == "user" {
				e.user = userText(sp, t, false) || e.user
			} else {
				sp.dialogue(t, evidence.Assistant, evidence.Dialogue)
			}
		}
		e.rank, e.keys = rankMiddle, turnKeys(role, texts)
	case "Plan":
		sp.extra(unquote(f.of(cxText)), evidence.Assistant, "", evidence.Dialogue)
	case "CommandExecution":
		toolValues(sp, f.of(cxCommand))
		if out := f.of(cxAggregated); isString(out) && len(out) > 2 {
			toolOutputs(sp, out)
		} else {
			toolOutputs(sp, f.of(cxOutput))
			toolOutputs(sp, f.of(cxStdout))
			toolOutputs(sp, f.of(cxStderr))
		}
		e.rank, e.keys = rankWeak, callKey(f.of(cxID), f.of(cxCallID))
	case "McpToolCall":
		if a := f.of(cxArguments); isString(a) {
			codexArguments(sp, unquote(a))
		} else if a != nil {
			toolValues(sp, a)
		}
		toolResult(sp, f.of(cxResult))
		e.rank, e.keys = rankWeak, callKey(f.of(cxID), f.of(cxCallID))
	case "ContextCompaction":
		e.note = cxCompacted
	case "CollabAgentToolCall", "Reasoning", "FileChange", "WebSearch", "ImageView", "ImageGeneration",
		"HookPrompt", "EnteredReviewMode", "ExitedReviewMode", "DynamicToolCall", "SubAgentActivity", "Sleep":
	default:
		e.note = cxUnknown
	}
}

// codexTexts gives the texts of a content: a string, or parts with a text.
func codexTexts(raw []byte) []string {
	if isString(raw) {
		return []string{unquote(raw)}
	}
	if !isArray(raw) {
		return nil
	}
	var out []string
	w := newRawWalk(raw)
	defer w.free()
	w.enter('[')
	for w.more() {
		if w.dec.PeekKind() == '"' {
			out = append(out, unquote(w.value()))
			continue
		}
		if !w.enter('{') {
			w.value()
			continue
		}
		var text []byte
		for w.more() {
			if string(plainName(w.value())) == `"text"` {
				text = w.value()
			} else {
				w.value()
			}
		}
		if isString(text) {
			out = append(out, unquote(text))
		}
	}
	return out
}

// userText adds what stands in the user's chair; it reports whether a person spoke.
// warnings says that the client's own warnings may stand there too.
func userText(sp *spanner, t string, warnings bool) bool {
	if isMachineText(t) || warnings && isClientWarning(t) {
		sp.dialogue(t, evidence.System, evidence.Boilerplate)
		return false
	}
	if i := ideRequest(t); i >= 0 {
		if strings.TrimSpace(t[i:]) == "" {
			sp.dialogue(t, evidence.System, evidence.Boilerplate)
			return false
		}
		sp.dialogue(t[i:], evidence.User, evidence.Dialogue)
		sp.extra(t[:i], evidence.System, "", evidence.Boilerplate)
		return true
	}
	n := len(sp.old)
	sp.dialogue(t, evidence.User, evidence.Dialogue)
	return len(sp.old) > n
}

// ideRequest gives where the request begins in a prompt that an editor wrapped in
// its context, or -1.
func ideRequest(t string) int {
	if !strings.HasPrefix(t, "# ") {
		return -1
	}
	const head = "\n## My request for Codex:"
	i := strings.Index(t, head)
	if i < 0 {
		return -1
	}
	i += len(head)
	for i < len(t) && (t[i] == ' ' || t[i] == '\t' || t[i] == '\r' || t[i] == '\n') {
		i++
	}
	return i
}

// machineTags are elements clients put into the user's chair.
var machineTags = []string{
	"environment_context", "user_instructions", "INSTRUCTIONS", "permissions instructions",
	"collaboration_mode", "apps_instructions", "skill", "turn_aborted", "user_shell_command",
	"subagent_notification", "user_action", "skills_instructions", "plugins_instructions", "model_switch",
}

// isMachineText reports whether t is wholly made of such elements. A person may
// quote them beside own words.
func isMachineText(t string) bool {
	t = strings.TrimSpace(t)
	if t == "" || t[0] != '<' && t[0] != '#' {
		return false
	}
	for t != "" {
		if strings.HasPrefix(t, "# AGENTS.md instructions") {
			i := strings.Index(t, "<INSTRUCTIONS>")
			if i < 0 || i > 4096 {
				return false
			}
			t = t[i:]
		}
		tag := ""
		for _, m := range machineTags {
			if rest, ok := strings.CutPrefix(t, "<"+m); ok && rest != "" && (rest[0] == '>' || rest[0] == ' ') {
				tag = m
				break
			}
		}
		if tag == "" {
			return false
		}
		end := "</" + tag + ">"
		i := strings.Index(t, end)
		if i < 0 {
			return false
		}
		rest := strings.TrimSpace(t[i+len(end):])
		if rest != "" && !machineStart(rest) {
			return strings.HasSuffix(t, end) // it quotes its own end
		}
		t = rest
	}
	return true
}

// machineStart reports whether another such element comes next.
func machineStart(t string) bool {
	t = strings.TrimSpace(t)
	if strings.HasPrefix(t, "# AGENTS.md instructions") {
		return true
	}
	for _, m := range machineTags {
		if strings.HasPrefix(t, "<"+m) {
			return true
		}
	}
	return false
}

// isClientWarning knows the one-line warnings a client gives the model in the
// user's chair. Typed prompts have an event, so only response items are asked.
func isClientWarning(t string) bool {
	return strings.HasPrefix(t, "Warning: ") && len(t) < 1024 && !strings.Contains(strings.TrimSpace(t), "\n")
}

func isImageMark(t string) bool {
	t = strings.TrimSpace(t)
	return t == "</image>" || strings.HasPrefix(t, "<image") && strings.HasSuffix(t, ">") && strings.Count(t, "<") == 1
}

// contextCwd finds the working directory in an environment context.
func contextCwd(t string) string {
	if !strings.HasPrefix(strings.TrimSpace(t), "<environment_context>") {
		return ""
	}
	_, rest, ok := strings.Cut(t, "<cwd>")
	if !ok {
		return ""
	}
	cwd, _, ok := strings.Cut(rest, "</cwd>")
	if !ok || len(cwd) > 4096 {
		return ""
	}
	return strings.TrimSpace(cwd)
}

// codexInput adds one argument, unless it is packed bytes or the shell's own words.
func codexInput(sp *spanner, t string) {
	if keepArgument(t) {
		sp.toolInput(t)
	}
}

func keepArgument(t string) bool {
	switch t {
	case "", "bash", "sh", "zsh", "-lc", "-c", "-l", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh":
		return false
	}
	return !isPacked(t)
}

// codexArguments adds arguments that are a string: JSON, broken JSON or plain text.
func codexArguments(sp *spanner, t string) {
	if s := strings.TrimSpace(t); s != "" && (s[0] == '{' || s[0] == '[') {
		if vs, ok := stringsIn([]byte(t), evidence.MaxToolInputs, keepArgument); ok {
			for _, v := range vs {
				sp.toolInput(v)
			}
			return
		}
	}
	codexInput(sp, t)
}

// toolValues adds the text values of a raw JSON value.
func toolValues(sp *spanner, raw []byte) {
	if len(raw) == 0 {
		return
	}
	vs, _ := stringsIn(raw, evidence.MaxToolInputs, keepArgument)
	for _, v := range vs {
		sp.toolInput(v)
	}
}

// codexAction gives the part of an action that holds words: its command, else
// its members but the type.
func codexAction(raw []byte) []byte {
	if f := codexParse(raw); isArray(f.of(cxCommand)) || isString(f.of(cxCommand)) {
		return f.of(cxCommand)
	}
	w := newRawWalk(raw)
	defer w.free()
	out := []byte{'['}
	w.enter('{')
	for w.more() {
		name := string(plainName(w.value()))
		v := w.value()
		if name == `"type"` || name == `"status"` || len(v) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// toolOutputs adds a tool's answer in any of its forms.
func toolOutputs(sp *spanner, raw []byte) {
	switch {
	case isString(raw):
		t := unquote(raw)
		if s := strings.TrimSpace(t); strings.HasPrefix(s, "{") && strings.Contains(s[:min(len(s), 64)], `"output"`) {
			b := []byte(t)
			w := newRawWalk(b)
			f := codexFields{src: b}
			codexMembers(w, &f)
			ok := w.done()
			w.free()
			if ok && isString(f.of(cxOutput)) {
				t = unquote(f.of(cxOutput))
			}
		}
		codexOutput(sp, t)
	case isArray(raw):
		for _, t := range codexTexts(raw) {
			codexOutput(sp, t)
		}
	case isObject(raw):
		f := codexParse(raw)
		if texts := f.contents(); len(texts) > 0 {
			for _, t := range texts {
				codexOutput(sp, t)
			}
		} else if isString(f.of(cxOutput)) {
			toolOutputs(sp, f.of(cxOutput))
		}
	}
}

// toolResult adds an MCP result: {content: [...]}, also inside {"Ok": ...}.
func toolResult(sp *spanner, raw []byte) {
	if !isObject(raw) {
		toolOutputs(sp, raw)
		return
	}
	w := newRawWalk(raw)
	defer w.free()
	w.enter('{')
	for w.more() {
		name := string(plainName(w.value()))
		v := w.value()
		switch name {
		case `"Ok"`, `"Err"`, `"content"`:
			toolOutputs(sp, v)
		}
	}
}

func codexOutput(sp *spanner, t string) {
	if !isPacked(t) {
		sp.toolOutput(t, evidence.Tool)
	}
}

// turnKeys gives the digests by which doubles of a message are known: of all its
// texts together, of each alone, and of an answer without the elements that its
// event leaves out. White space at the ends does not count.
func turnKeys(role string, texts []string) []uint64 {
	var keys []uint64
	add := func(t string) {
		if t = strings.TrimSpace(t); t != "" {
			if k := textKey(role, t); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	together := func(texts []string) {
		add(strings.Join(texts, ""))
		if len(texts) > 1 {
			add(strings.Join(texts, "\n"))
		}
	}
	together(texts)
	if len(texts) > 1 && len(texts) <= 16 {
		// Of an answer every part may have its event; of a prompt one part is the
		// person's, and the others must be the client's, or text would be lost.
		own := -1
		for i, t := range texts {
			switch {
			case role == "assistant":
				add(t)
			case isImageMark(t) || isMachineText(t):
			case own >= 0:
				own = len(texts)
			default:
				own = i
			}
		}
		if own >= 0 && own < len(texts) {
			add(texts[own])
		}
	}
	if role == "assistant" {
		cut := make([]string, len(texts))
		same := true
		for i, t := range texts {
			cut[i] = without(without(t, "oai-mem-citation"), "proposed_plan")
			same = same && len(cut[i]) == len(t)
		}
		if !same {
			together(cut)
		}
	}
	return keys
}

// without leaves out every element of that name.
func without(t, tag string) string {
	open, end := "<"+tag+">", "</"+tag+">"
	i := strings.Index(t, open)
	if i < 0 {
		return t
	}
	var b strings.Builder
	for i >= 0 {
		j := strings.Index(t[i:], end)
		if j < 0 {
			break
		}
		b.WriteString(t[:i])
		t = t[i+j+len(end):]
		i = strings.Index(t, open)
	}
	b.WriteString(t)
	return b.String()
}

// textKey is a digest of a text that means the same in every process, since it is
// saved. It only has to tell texts of one turn apart.
func textKey(role, t string) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(t))*k0 ^ uint64(role[0])
	mix := func(v uint64) {
		hi, lo := bits.Mul64(h^v^k0, k1)
		h = hi ^ lo
	}
	for len(t) >= 8 {
		mix(uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56)
		t = t[8:]
	}
	var v uint64
	for i := range len(t) {
		v |= uint64(t[i]) << (8 * i)
	}
	mix(v)
	mix(k1)
	return h
}

// callKey gives the keys of a tool call's ids.
func callKey(raws ...[]byte) []uint64 {
	var keys []uint64
	for _, raw := range raws {
		if isString(raw) && len(raw) > 2 {
			h := fnv.New64a()
			h.Write([]byte("call"))
			h.Write(bytes.TrimSpace(raw))
			keys = append(keys, h.Sum64())
		}
	}
	return keys
}
