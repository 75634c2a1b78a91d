package transcript

import (
	"bytes"

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
func codexArguments(sp *spanner, arguments value) {
	if !arguments.inside(func(v value) { toolValues(sp, v) }) {
		codexInput(sp, arguments.str())
	}
}

// toolValues adds the strings in a value.
func toolValues(sp *spanner, v value) {
	inputs(sp, func(add func(string) bool) { v.strings(add) })
}

// codexAction adds the words of an action: its command, else the strings in its members
// but the type.
func codexAction(sp *spanner, action value) {
	if command := action.member("command"); command.isArray() || command.isString() {
		toolValues(sp, command)
		return
	}
	inputs(sp, func(add func(string) bool) {
		for name, v := range action.members() {
			if string(name) != "type" && string(name) != "status" && !v.strings(add) {
				return
			}
		}
	})
}

// inputs adds the strings that each gives, at most [evidence.MaxToolInputs].
func inputs(sp *spanner, each func(add func(string) bool)) {
	left := evidence.MaxToolInputs
	each(func(s string) bool {
		if !keepArgument(s) {
			return true
		}
		if left == 0 {
			sp.cut(evidence.Assistant)
			return false
		}
		left--
		sp.toolInput(s)
		return true
	})
}

// toolOutputs adds a tool's answer in any of its forms.
func toolOutputs(sp *spanner, answer value) {
	switch {
	case answer.isString():
		codexOutput(sp, answerText(answer))
	case answer.isArray():
		for _, t := range codexTexts(answer) {
			codexOutput(sp, t)
		}
	case answer.isObject():
		if texts := codexTexts(answer.member("content")); len(texts) > 0 {
			for _, t := range texts {
				codexOutput(sp, t)
			}
		} else if out := answer.member("output"); out.isString() {
			toolOutputs(sp, out)
		}
	}
}

// answerText gives the text of an answer that is a string: of one that is JSON text and
// begins with its output, that.
func answerText(answer value) (text string) {
	const begin, escape = 64, 6 // characters looked at, and what one can take
	found := false
	if bytes.Contains(answer[:min(len(answer), begin*escape)], []byte("output")) {
		answer.inside(func(v value) {
			if out := v.member("output"); out.isString() && bytes.Contains(v[:min(len(v), begin)], []byte(`"output"`)) {
				text, found = out.str(), true
			}
		})
	}
	if !found {
		text = answer.str()
	}
	return text
}

// toolResult adds an MCP result: {content: [...]}, also inside {"Ok": ...}.
func toolResult(sp *spanner, result value) {
	if !result.isObject() {
		toolOutputs(sp, result)
		return
	}
	for name, v := range result.members() {
		switch string(name) {
		case "Ok", "Err", "content":
			toolOutputs(sp, v)
		}
	}
}

func codexOutput(sp *spanner, t string) {
	if !isPacked(t) {
		sp.toolOutput(t, evidence.Tool)
	}
}
