package keyshape

import (
	"strings"
	"testing"
)

// keys are invented keys of each published shape. They are put together here so that
// no scanner takes this file for a leak.
var keys = map[string][]string{
	"private key":         {"-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEowIBAAKCAQEA", 4)+"\n", 25) + "7Q==\n" + "-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\\nMIIEvQ\\n-----END PRIVATE KEY-----"},
	"aws key":             {"AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"},
	"aws secret":          {"aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
	"github token":        {"ghp_" + strings.Repeat("a1B2", 9), "gho_" + strings.Repeat("x", 36), "github_pat_" + strings.Repeat("Ab1_", 20)},
	"gitlab token":        {"glpat-" + strings.Repeat("x1Y-", 6)},
	"anthropic key":       {"sk-ant-" + "api03-" + strings.Repeat("aB3_", 22)},
	"openai key":          {"sk-" + strings.Repeat("aB3d", 12), "sk-proj-" + strings.Repeat("aB3-", 30)},
	"google key":          {"AIza" + strings.Repeat("Sy4k_", 7)},
	"slack token":         {"xoxb-" + "1234567890-abcdefGHIJ"},
	"slack hook":          {"hooks.slack.com/services/" + "T00000000/B00000000/" + strings.Repeat("X", 24)},
	"stripe key":          {"sk_live_" + strings.Repeat("4eC3", 6), "rk_live_" + strings.Repeat("4eC3", 6)},
	"npm token":           {"npm_" + strings.Repeat("a1B2", 9)},
	"pypi token":          {"pypi-" + strings.Repeat("AgEIcHlwaS5vcmc", 5)},
	"sendgrid key":        {"SG." + strings.Repeat("a", 22) + "." + strings.Repeat("b", 43)},
	"hugging face token":  {"hf_" + strings.Repeat("aBcD", 9)},
	"twilio key":          {"SK" + strings.Repeat("0123abcd", 4)},
	"json web token":      {"eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + "SflKxwRJSMeKKF2QT4fw"},
	"password in address": {"postgres://" + "amber:lantern9@db.example:5432/x"},
	"bearer token":        {"Bearer " + strings.Repeat("abc.DEF-", 5)},
}

func TestMaskShapes(t *testing.T) {
	for _, k := range shapes {
		if keys[k.kind] == nil {
			t.Errorf("no example of %s", k.kind)
		}
	}
	for kind, all := range keys {
		for _, key := range all {
			rest := ""
			if kind == "password in address" {
				rest = key[strings.IndexByte(key, '@')+1:]
			}
			for _, around := range [][2]string{{"", ""}, {"the key is ", " and more"}, {`{"k":"`, `"}`}, {"日本語 ", "\n"}, {"X=", ";"}} {
				text := around[0] + key + around[1]
				got, n := Mask(text, 0, len(text))
				if n != 1 || got != around[0]+"[masked: "+kind+"]"+rest+around[1] {
					t.Errorf("%s: %q gives %q (%d)", kind, text, got, n)
				}
			}
		}
	}
}

// Text that only resembles a key stays.
func TestMaskLeavesText(t *testing.T) {
	for _, text := range []string{
		"sk-short", "the task-force and disk-space", "AKIA is a prefix", "http://example.org:8080/path@2x", "git@github.com:amber/lantern.git", "Bearer of bad news",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "https://user@example.org/", "eyJ is how a token begins", "3f2a" + strings.Repeat("0", 36),
	} {
		if got, n := Mask(text, 0, len(text)); got != text || n != 0 {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

// Wherever a piece of text is cut, no part of a key at its borders is shown.
func TestMaskAtBorders(t *testing.T) {
	for kind, all := range keys {
		key := all[0]
		text := strings.Repeat("plain words ", 40) + key + strings.Repeat(" plain words", 40)
		start, end := 480, 480+len(key)
		if kind == "password in address" {
			end = start + strings.IndexByte(key, '@') + 1
		}
		for from := 0; from < len(text); from += 41 {
			for _, to := range []int{from + 1, from + 5, from + 60, from + 1024, len(text)} {
				if to > len(text) {
					continue
				}
				got, n := Mask(text, from, to)
				touches := from < end && to > start && to > from
				if (n == 1) != touches {
					t.Fatalf("%s: [%d,%d) of a key at [%d,%d): masked %d: %q", kind, from, to, start, end, n, got)
				}
				if !touches && got != text[from:to] {
					t.Fatalf("%s: [%d,%d) changed", kind, from, to)
				}
			}
		}
	}
}

func TestMaskCounts(t *testing.T) {
	a, b := keys["npm token"][0], keys["aws key"][0]
	text := a + " " + b + " " + a
	if got, n := Mask(text, 0, len(text)); n != 3 || got != "[masked: npm token] [masked: aws key] [masked: npm token]" {
		t.Errorf("%q, %d", got, n)
	}
	// A key inside another is one.
	text = "Authorization: Bearer " + keys["anthropic key"][0]
	if got, n := Mask(text, 0, len(text)); n != 1 || strings.Contains(got, "sk-ant") {
		t.Errorf("%q, %d", got, n)
	}
}

func FuzzMask(f *testing.F) {
	for _, all := range keys {
		f.Add("before ", all[0], " after", 3, 40)
	}
	f.Fuzz(func(t *testing.T, before, key, after string, from, n int) {
		text := before + key + after
		from = max(0, min(from, len(text)))
		to := max(from, min(from+max(0, n), len(text)))
		got, count := Mask(text, from, to)
		if count == 0 && got != text[from:to] {
			t.Errorf("changed without a count: %q", got)
		}
		if count > 0 != strings.Contains(got, "[masked: ") && !strings.Contains(text, "[masked: ") {
			t.Errorf("%d masked in %q", count, got)
		}
		// What is masked in the whole text is not shown in a piece of it.
		for _, s := range Find(text) {
			if len(text) <= reach && s.From >= from && s.To <= to && s.To-s.From > 16 && strings.Count(text, text[s.From:s.To]) == 1 && strings.Contains(got, text[s.From:s.To]) {
				t.Errorf("%q shows %q", got, text[s.From:s.To])
			}
		}
	})
}
