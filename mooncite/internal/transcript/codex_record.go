package transcript

import (
	"localmcp/mooncite/internal/evidence"
)

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
	if ts := l.top[cxTimestamp]; ts.isString() && len(ts) <= 66 {
		e.Time = ParseTime(ts.str())
	}
	var sp spanner
	if l.hasPayload {
		e.envelope(l, &sp)
	} else {
		e.bare(l, &sp)
	}
	e.Spans = sp.spans()
	if len(e.Spans) > 0 {
		e.ID = lineID(r.Line, [8]byte(r.Digest[:8]))
	} else {
		e.rank, e.keys, e.user = 0, nil, false
	}
	return e
}

// envelope reads eras C and E.
func (e *codexEntry) envelope(l *codexLine, sp *spanner) {
	p := &l.payload
	e.name = l.top[cxType].str()
	e.Kind = e.name
	switch e.name {
	case "session_meta":
		e.note = cxHeader
		text := p[cxInstructions].str()
		if b := p[cxBaseInstructions]; b.isString() {
			text = b.str()
		} else if b.isObject() {
			text = b.member("text").str()
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
		sp.extra(p[cxMessage].str(), evidence.Summary, "", evidence.Dialogue)
	case "inter_agent_communication":
		for _, t := range codexTexts(p[cxContent]) {
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
	case t[cxType].isString():
		switch string(t[cxType]) {
		case `"session_meta"`:
			e.note, e.Kind = cxHeader, "session_meta"
		case `"turn_context"`, `"compacted"`, `"event_msg"`, `"world_state"`:
		case `"user_message"`:
			e.event(t, &l.item, sp)
		case `"agent_message"`:
			if t[cxMessage].isString() {
				e.event(t, &l.item, sp)
				break
			}
			fallthrough
		default:
			if string(t[cxType]) == `"message"` && !t[cxRole].isString() {
				e.name, e.note = "message", cxUnknown // another client's
			} else {
				e.item(t, sp, false)
			}
			e.foreign = e.note == cxUnknown
		}
	case t[cxRecordType].isString():
	case t[cxID].isString() && (t[cxTimestamp].isString() || t[cxInstructions] != nil):
		e.note, e.Kind = cxHeader, "session_meta"
		instructions(sp, t[cxInstructions].str())
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
	e.name = p[cxType].str()
	e.Kind = e.name
	switch e.name {
	case "message":
		role := p[cxRole].str()
		texts := codexTexts(p[cxContent])
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
		if a := p[cxArguments]; a.isString() {
			codexArguments(sp, a)
		} else if a != nil {
			toolValues(sp, a)
		}
		if in := p[cxInput]; in.isString() {
			codexInput(sp, in.str())
		} else if in != nil {
			toolValues(sp, in)
		}
		codexAction(sp, p[cxAction])
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		toolOutputs(sp, p[cxOutput])
		if enveloped {
			e.rank, e.keys = rankStrong, callKey(p[cxCallID])
		}
	case "image_generation_call":
		codexInput(sp, p[cxRevisedPrompt].str())
	case "agent_message":
		for _, t := range codexTexts(p[cxContent]) {
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
	e.name = p[cxType].str()
	e.Kind = e.name
	switch e.name {
	case "user_message", "agent_message":
		if !p[cxMessage].isString() {
			return
		}
		t := p[cxMessage].str()
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
		toolValues(sp, p[cxCommand])
		if out := p[cxAggregated]; out.isString() && len(out) > 2 {
			toolOutputs(sp, out)
		} else {
			toolOutputs(sp, p[cxStdout])
			toolOutputs(sp, p[cxStderr])
		}
		e.rank, e.keys = rankWeak, callKey(p[cxCallID])
	case "mcp_tool_call_end":
		toolValues(sp, p[cxInvocation].member("arguments"))
		toolResult(sp, p[cxResult])
		e.rank, e.keys = rankWeak, callKey(p[cxCallID])
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
	e.name = f[cxType].str()
	if evidence.IsKind(e.name) {
		e.Kind = e.name
	}
	switch e.name {
	case "UserMessage", "AgentMessage":
		texts := codexTexts(f[cxContent])
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
		sp.extra(f[cxText].str(), evidence.Assistant, "", evidence.Dialogue)
	case "CommandExecution":
		toolValues(sp, f[cxCommand])
		if out := f[cxAggregated]; out.isString() && len(out) > 2 {
			toolOutputs(sp, out)
		} else {
			toolOutputs(sp, f[cxOutput])
			toolOutputs(sp, f[cxStdout])
			toolOutputs(sp, f[cxStderr])
		}
		e.rank, e.keys = rankWeak, callKey(f[cxID], f[cxCallID])
	case "McpToolCall":
		if a := f[cxArguments]; a.isString() {
			codexArguments(sp, a)
		} else if a != nil {
			toolValues(sp, a)
		}
		toolResult(sp, f[cxResult])
		e.rank, e.keys = rankWeak, callKey(f[cxID], f[cxCallID])
	case "ContextCompaction":
		e.note = cxCompacted
	case "CollabAgentToolCall", "Reasoning", "FileChange", "WebSearch", "ImageView", "ImageGeneration",
		"HookPrompt", "EnteredReviewMode", "ExitedReviewMode", "DynamicToolCall", "SubAgentActivity", "Sleep":
	default:
		e.note = cxUnknown
	}
}

// codexTexts gives the texts of a content: a string, or parts with a text.
func codexTexts(content value) (out []string) {
	if content.isString() {
		return []string{content.str()}
	}
	for part := range content.elements() {
		if !part.isString() {
			part = part.member("text")
		}
		if part.isString() {
			out = append(out, part.str())
		}
	}
	return out
}
