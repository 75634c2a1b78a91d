package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestJobLines: what a client ran takes one line of bounded length, which shows what a terminal
// would obey.
func TestJobLines(t *testing.T) {
	for name, c := range map[string]struct {
		job  jobOut
		want string // the end of the line
	}{
		"short":       {jobOut{Program: "/bin/sh", Args: []string{"-c", "make test"}}, "  /bin/sh -c make test"},
		"controls":    {jobOut{Program: "/bin/sh", Args: []string{"-c", "a\n\tb\x1b[31m\u202e"}}, `/bin/sh -c a\u{a}\u{9}b\u{1b}[31m\u{202e}`},
		"long":        {jobOut{Program: "/bin/sh", Args: []string{"-c", strings.Repeat("ü", 4000)}}, strings.Repeat("ü", 149) + " ..."},
		"all escapes": {jobOut{Program: "/bin/sh", Args: []string{"-c", strings.Repeat("\x1b", 4000)}}, `\u{1b}\u{1b} ...`},
		"no text":     {jobOut{Program: "./a\xff"}, `./a\x{ff}`},
		"cut before":  {jobOut{Program: "/bin/sh", Args: []string{"/script"}, ArgsCut: true}, "/bin/sh /script ..."},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.job.Text()
			if !strings.HasSuffix(got, c.want+"\n") || strings.Count(got, "\n") != 1 || utf8.RuneCountInString(got) > 260 {
				t.Errorf("%d characters: %q", utf8.RuneCountInString(got), got)
			}
		})
	}
}
