package transcript

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
	cxPayload
	cxFields
)

// codexFields are the members of an object that are looked at; of two of one name the
// last.
type codexFields [cxFields]value

// read takes the members of an object.
func (f *codexFields) read(object value) {
	*f = codexFields{}
	for name, v := range object.members() {
		if k := codexField(name); k >= 0 {
			f[k] = v
		}
	}
}

// codexLine is one record taken apart: the top level, its payload, and the
// payload's item. In eras without an envelope the top level is the payload.
type codexLine struct {
	top, payload, item codexFields
	hasPayload         bool
}

// read takes a record apart.
func (l *codexLine) read(record value) {
	l.top.read(record)
	if l.hasPayload = l.top[cxPayload].isObject(); l.hasPayload {
		l.payload.read(l.top[cxPayload])
		l.item.read(l.payload[cxItem])
		return
	}
	l.payload, l.item = codexFields{}, codexFields{}
}

func codexField(name []byte) int {
	switch string(name) {
	case "type":
		return cxType
	case "id":
		return cxID
	case "timestamp":
		return cxTimestamp
	case "record_type":
		return cxRecordType
	case "role":
		return cxRole
	case "content":
		return cxContent
	case "message":
		return cxMessage
	case "text":
		return cxText
	case "call_id":
		return cxCallID
	case "arguments":
		return cxArguments
	case "input":
		return cxInput
	case "output":
		return cxOutput
	case "action":
		return cxAction
	case "command":
		return cxCommand
	case "aggregated_output":
		return cxAggregated
	case "stdout":
		return cxStdout
	case "stderr":
		return cxStderr
	case "invocation":
		return cxInvocation
	case "result":
		return cxResult
	case "revised_prompt":
		return cxRevisedPrompt
	case "session_id":
		return cxSessionID
	case "cwd":
		return cxCwd
	case "source":
		return cxSource
	case "parent_thread_id":
		return cxParentThread
	case "forked_from_id":
		return cxForkedFrom
	case "instructions":
		return cxInstructions
	case "base_instructions":
		return cxBaseInstructions
	case "history_mode":
		return cxHistoryMode
	case "turn_id":
		return cxTurnID
	case "num_turns":
		return cxNumTurns
	case "thread_name":
		return cxThreadName
	case "item":
		return cxItem
	case "payload":
		return cxPayload
	}
	return -1
}
