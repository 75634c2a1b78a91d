package keyshape

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Shapes of keys that services publish, so that a leaked one can be recognised. A
// text must begin or follow a character that cannot be part of the key.
var shapes = []*shape{
	shapeOf("private key", "PRIVATE KEY-----", `-----BEGIN [A-Z ]{0,24}PRIVATE KEY-----(?:\s|\\[nr]|[A-Za-z0-9+/=]{20,}|(?:Proc-Type|DEK-Info):[^\n\\]{0,100})*(?:[A-Za-z0-9+/=]{0,20}(?:\s|\\[nr])*-----END [A-Z ]{0,24}PRIVATE KEY-----)?`),
	shapeOf("aws key", "AKIA", `\bAKIA[0-9A-Z]{16}\b`),
	shapeOf("aws key", "ASIA", `\bASIA[0-9A-Z]{16}\b`),
	shapeOf("aws secret", "ws_secret_access_key", `(?i)aws_secret_access_key["']?\s*[=:]\s*["']?[A-Za-z0-9/+=]{40}\b`),
	shapeOf("aws secret", "WS_SECRET_ACCESS_KEY", `(?i)aws_secret_access_key["']?\s*[=:]\s*["']?[A-Za-z0-9/+=]{40}\b`),
	shapeOf("github token", "gh", `\bgh[pousr]_[A-Za-z0-9]{36,255}\b`),
	shapeOf("github token", "github_pat_", `\bgithub_pat_[A-Za-z0-9_]{22,255}\b`),
	shapeOf("gitlab token", "glpat-", `\bglpat-[A-Za-z0-9_-]{20,64}`),
	shapeOf("anthropic key", "sk-ant-", `\bsk-ant-[A-Za-z0-9_-]{20,255}`),
	shapeOf("openai key", "sk-", `\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,255}`),
	shapeOf("google key", "AIza", `\bAIza[0-9A-Za-z_-]{35}`),
	shapeOf("slack token", "xox", `\bxox[abeoprs]-[A-Za-z0-9-]{10,250}`),
	shapeOf("slack hook", "hooks.slack.com/services/", `hooks\.slack\.com/services/T[A-Za-z0-9_]{6,}/B[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{20,}`),
	shapeOf("stripe key", "k_live_", `\b[rsp]k_live_[0-9A-Za-z]{16,128}\b`),
	shapeOf("npm token", "npm_", `\bnpm_[A-Za-z0-9]{36}\b`),
	shapeOf("pypi token", "pypi-", `\bpypi-[A-Za-z0-9_-]{50,255}`),
	shapeOf("sendgrid key", "SG.", `\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`),
	shapeOf("hugging face token", "hf_", `\bhf_[A-Za-z0-9]{30,64}\b`),
	shapeOf("twilio key", "SK", `\bSK[0-9a-f]{32}\b`),
	shapeOf("json web token", "eyJ", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
	shapeOf("password in address", "://", `\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@"'<>]{1,128}:[^\s/@"'<>]{3,128}@`),
	shapeOf("bearer token", "earer ", `\b[Bb]earer [A-Za-z0-9._~+/-]{24,}=*`),
}

type shape struct {
	kind  string
	near  string // a part every match has, looked for first
	match func() *regexp.Regexp
}

// shapeOf compiles an expression when it is first needed: start-up stays short.
func shapeOf(kind, near, expression string) *shape {
	return &shape{kind, near, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// reach is how far before and behind a piece of text a key that touches it can
// reach, in bytes.
const reach = 8 << 10

// A Key is where a text has what has the shape of one.
type Key struct {
	From, To int // bytes of the text
	Kind     string
}

// Find finds key shapes in a text, in order and without overlap.
func Find(text string) []Key {
	var all []Key
	for _, k := range shapes {
		if !strings.Contains(text, k.near) {
			continue
		}
		for _, m := range k.match().FindAllStringIndex(text, -1) {
			all = append(all, Key{m[0], m[1], k.kind})
		}
	}
	slices.SortStableFunc(all, func(a, b Key) int { return a.From - b.From })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Mask returns text[from:to] with key shapes replaced, whole ones also where the piece cuts
// them, and how many there were.
func Mask(text string, from, to int) (string, int) {
	low, high := max(0, from-reach), min(len(text), to+reach)
	var b strings.Builder
	n, at := 0, from
	for _, k := range Find(text[low:high]) {
		begin, end := k.From+low, k.To+low
		if end <= from || begin >= to {
			continue
		}
		b.WriteString(text[at:max(at, begin)])
		b.WriteString("[masked: " + k.Kind + "]")
		at = min(to, end)
		n++
	}
	if n == 0 {
		return text[from:to], 0
	}
	b.WriteString(text[at:to])
	return b.String(), n
}
