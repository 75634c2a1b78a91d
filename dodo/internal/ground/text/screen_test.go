package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestScreen(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nü 日本語\n":                            "plain\ttext\nü 日本語\n",
		"\x1b[1;31mred\x1b[0m and \x1b[38;5;9mmore\x1b[m": "red and more",
		"a\r\nb\r\n":                       "a\nb\n",
		"  0%\r 50%\r100%\n":               "100%\n",
		"a long line\rshort\n":             "shortg line\n",
		"a long line\r\x1b[Kshort\n":       "short\n",
		"a long line\x1b[2K\rshort\n":      "short\n",
		"a long line\x1b[1G\x1b[0Jshort\n": "short\n",
		"abc\x1b[2Dx\n":                    "axc\n",
		"[ OK ]\x1b[10Cdone\n":             "[ OK ] done\n",
		"abc\b\b\bxy\n":                    "xyc\n",
		"passwd\b \b\b \b\n":               "passwd"[:4] + "  \n",
		"\b\b\bx\n":                        "x\n",
		"12345678abc\r\tX\n":               "12345678Xbc\n",
		"\x1b]0;a title\x07text":           "text",
		"\x1b]8;;https://example.org\x1b\\a link\x1b]8;;\x1b\\":       "a link",
		"\x1b]52;c;c2VjcmV0\x07copied":                                "copied",
		"\x1bP$q q\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\": "xyz",
		"\x1b(B\x1b)0\x1b#8\x1b7\x1b8\x1b=\x1b>\x1bM\x1bcx\x0e\x0f":   "x",
		"\x1b[?2004hprompt\x1b[?2004l":                                "prompt",
		"\x1b[200~pasted\x1b[201~":                                    "pasted",
		"\u009b31mC1\u009b0m":                                         "C1",
		"\u009d0;title\u009cC1":                                       "C1",
		"\x9b31mC1 in one byte":                                       "C1 in one byte",
		"caf\xe9 \x9d\n":                                              "caf\uFFFD \uFFFD\n",
		"\x07\x00\x7f\u0085\u202eabc\ufeff":                           `\u{7}\u{0}\u{7f}\u{85}\u{202e}abc\u{feff}`,
		"\x1b]0;never ended\nnext":                                    "\nnext",
		"\x1b]0;cut by\x1b[31m another":                               " another",
		"\x1b[31\nnext":                                               "\nnext",
		"\x1b[3":                                                      "",
		"\x1b":                                                        "",
		"\x1b\x1b[31mx":                                               "x",
		"x\xe2\x82":                                                   "x\uFFFD\uFFFD",
		"\x1b]0;Ü title\x07x":                                         "x",
		"\x1b[999999999999999999999Cx\x1b[1000000Dy":                  "yx",
	} {
		got, used := Screen([]byte(in), true)
		if got != want || used != len(in) {
			t.Errorf("%q gives %q, want %q (%d of %d)", in, got, want, used, len(in))
		}
	}
}

// TestScreenHoldsBack shows that what a piece ends within waits for the rest.
func TestScreenHoldsBack(t *testing.T) {
	for in, want := range map[string]int{
		"abc": 3, "abc\x1b": 3, "abc\x1b[": 3, "abc\x1b[31": 3, "abc\x1b[31m": 8, "abc\x1b]0;ti": 3, "abc\x1b]0;ti\x1b": 3,
		"abc\x1b]0;ti\n": 10, "a\xe2": 1, "a\xe2\x82": 1, "a\xe2\x82\xac": 4, "abc\x1b(": 3, "\u009b31": 0, "\u009d0;": 0, "\xff": 1,
	} {
		if _, used := Screen([]byte(in), false); used != want {
			t.Errorf("%q: %d bytes used, want %d", in, used, want)
		}
	}
}

// TestScreenTakesLinearTime runs what a careless implementation takes the square of.
func TestScreenTakesLinearTime(t *testing.T) {
	const n = 1 << 20
	for _, unit := range []string{"\x1b[1K", "x\x1b[2K", "\x9d", "\x9b", "\x9b1", "\x1b[", "\x1b]", "\u009d", "\r", "x\b", "\t\r", "\x1b[9999999C", "\x1b[99999Gx", "\x1b[K", "x\x1b[1G"} {
		in := []byte(strings.Repeat("x", n/2) + strings.Repeat(unit, n/2/len(unit)))
		begun := time.Now()
		for _, last := range []bool{false, true} {
			if s, _ := Screen(in, last); len(s) > ScreenGrowth*len(in) {
				t.Errorf("%q: %d bytes of %d", unit, len(s), len(in))
			}
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%q took %v", unit, took)
		}
	}
}

func FuzzScreen(f *testing.F) {
	for _, s := range []string{"a\rb\n", "\x1b[31mx\x1b]0;t\x07", "\u009b1m\x9b1m\x9d", "ü\xff\b\t\r\tx", "\x1b[2K\x1b[1Gx\x1b[3C"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		got, used := Screen(b, true)
		if used != len(b) || !utf8.ValidString(got) || len(got) > ScreenGrowth*len(b) {
			t.Fatalf("%q gives %q, %d used", b, got, used)
		}
		for _, r := range got {
			if isHidden(r) || r == '\r' {
				t.Fatalf("%q gives %q", b, got)
			}
		}
		if again, _ := Screen([]byte(got), true); again != got {
			t.Fatalf("%q gives %q, and that %q", b, got, again)
		}
		if strings.Count(got, "\n") != strings.Count(string(b), "\n") {
			t.Fatalf("%q gives %q: another number of lines", b, got)
		}
		// Cut behind a line break, nothing changes; elsewhere, the rest is for the next piece.
		if at < 0 || at > len(b) {
			return
		}
		head, n := Screen(b[:at], false)
		if n > at || !utf8.ValidString(head) {
			t.Fatalf("%q cut at %d: %d", b, at, n)
		}
		if at > 0 && b[at-1] == '\n' {
			if n != at {
				t.Fatalf("%q cut at %d behind a line break: %d used", b, at, n)
			}
			if rest, _ := Screen(b[at:], true); head+rest != got {
				t.Fatalf("%q cut at %d: %q and %q, want %q", b, at, head, rest, got)
			}
		}
	})
}
