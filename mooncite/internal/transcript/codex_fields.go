package transcript

import (
	"math"
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
