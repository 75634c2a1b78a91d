package transcript

import (
	"strings"

	"localmcp/mooncite/internal/evidence"
)

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
		if vs, more, ok := stringsIn([]byte(t), evidence.MaxToolInputs, keepArgument); ok {
			inputs(sp, vs, more)
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
	vs, more, _ := stringsIn(raw, evidence.MaxToolInputs, keepArgument)
	inputs(sp, vs, more)
}

func inputs(sp *spanner, values []string, more bool) {
	for _, v := range values {
		sp.toolInput(v)
	}
	if more {
		sp.cut(evidence.Assistant)
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
