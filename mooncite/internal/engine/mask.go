package engine

import (
	"regexp"
	"slices"
	"strings"
)

// Shapes of keys that services publish, so that a leaked one can be recognised. A
// text must begin or follow a character that cannot be part of the key.
var secretShapes = []struct {
	kind  string
	near  string // a part every match has, looked for first
	shape *regexp.Regexp
}{
	{"private key", "PRIVATE KEY-----", regexp.MustCompile(`-----BEGIN [A-Z ]{0,24}PRIVATE KEY-----[\s\S]{0,8192}?(?:-----END [A-Z ]{0,24}PRIVATE KEY-----|\z)`)},
	{"aws key", "AKIA", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{"aws key", "ASIA", regexp.MustCompile(`\bASIA[0-9A-Z]{16}\b`)},
	{"aws secret", "ws_secret_access_key", regexp.MustCompile(`(?i)aws_secret_access_key["']?\s*[=:]\s*["']?[A-Za-z0-9/+=]{40}\b`)},
	{"github token", "gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,255}\b`)},
	{"github token", "github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{22,255}\b`)},
	{"gitlab token", "glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,64}`)},
	{"anthropic key", "sk-ant-", regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]{20,255}`)},
	{"openai key", "sk-", regexp.MustCompile(`\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,255}`)},
	{"google key", "AIza", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	{"slack token", "xox", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,250}`)},
	{"slack hook", "hooks.slack.com/services/", regexp.MustCompile(`hooks\.slack\.com/services/T[A-Za-z0-9_]{6,}/B[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{20,}`)},
	{"stripe key", "k_live_", regexp.MustCompile(`\b[rsp]k_live_[0-9A-Za-z]{16,128}\b`)},
	{"npm token", "npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{"pypi token", "pypi-", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{50,255}`)},
	{"sendgrid key", "SG.", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`)},
	{"hugging face token", "hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,64}\b`)},
	{"twilio key", "SK", regexp.MustCompile(`\bSK[0-9a-f]{32}\b`)},
	{"json web token", "eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	{"password in address", "://", regexp.MustCompile(`\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@"'<>]{1,128}:[^\s/@"'<>]{3,128}@`)},
	{"bearer token", "earer ", regexp.MustCompile(`\b[Bb]earer [A-Za-z0-9._~+/-]{24,}=*`)},
}

// secretReach is how far before and behind a piece of text a key that touches it can
// reach, in bytes.
const secretReach = 8 << 10

type secret struct {
	from, to int
	kind     string
}

// secrets finds key shapes in text, in order and without overlap.
func secrets(text string) []secret {
	var all []secret
	for i := range secretShapes {
		k := &secretShapes[i]
		if !strings.Contains(text, k.near) {
			continue
		}
		for _, m := range k.shape.FindAllStringIndex(text, -1) {
			all = append(all, secret{m[0], m[1], k.kind})
		}
	}
	slices.SortStableFunc(all, func(a, b secret) int { return a.from - b.from })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// masked returns text[from:to] with key shapes replaced, whole ones also where the
// piece cuts them, and how many there were.
func masked(text string, from, to int) (string, int) {
	low, high := max(0, from-secretReach), min(len(text), to+secretReach)
	var b strings.Builder
	n, at := 0, from
	for _, s := range secrets(text[low:high]) {
		s.from, s.to = s.from+low, s.to+low
		if s.to <= from || s.from >= to {
			continue
		}
		b.WriteString(text[at:max(at, s.from)])
		b.WriteString("[masked: " + s.kind + "]")
		at = min(to, s.to)
		n++
	}
	if n == 0 {
		return text[from:to], 0
	}
	b.WriteString(text[at:to])
	return b.String(), n
}
