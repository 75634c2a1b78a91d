package text_test

import (
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/text"
)

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		head  string
		whole bool
		want  text.Kind
	}{
		"empty":                  {"", true, text.Kind{Encoding: text.UTF8, Name: "text", MIME: "text/plain"}},
		"UTF-8":                  {"é\n", true, text.Kind{Encoding: text.UTF8, Name: "text", MIME: "text/plain"}},
		"UTF-8 with a mark":      {"\ufeffé", true, text.Kind{Encoding: text.UTF8, BOM: 3, Name: "text", MIME: "text/plain"}},
		"a head cut in the char": {"a\xe2\x82", false, text.Kind{Encoding: text.UTF8, Name: "text", MIME: "text/plain"}},
		"the same as the whole":  {"a\xe2\x82", true, text.Kind{Name: "text in an unknown encoding", MIME: "text/plain"}},
		"UTF-16LE":               {"\xff\xfea\x00", true, text.Kind{Encoding: text.UTF16LE, BOM: 2, Name: "text", MIME: "text/plain"}},
		"UTF-16BE":               {"\xfe\xff\x00a", true, text.Kind{Encoding: text.UTF16BE, BOM: 2, Name: "text", MIME: "text/plain"}},
		"UTF-32LE is not UTF-16": {"\xff\xfe\x00\x00a\x00\x00\x00", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream"}},
		"a mark and a NUL":       {"\ufeffa\x00", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream"}},
		"UTF-16 and a NUL":       {"\xff\xfea\x00\x00\x00\x00\x01", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream"}},
		"UTF-16 without a mark":  {"h\x00i\x00\r\x00\n\x00", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream", Guess: text.UTF16LE}},
		"the same, big-endian":   {"\x00h\x00i\x00\n", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream", Guess: text.UTF16BE}},
		"windows-1252":           {"caf\xe9\n", true, text.Kind{Name: "text in an unknown encoding", MIME: "text/plain"}},
		"a NUL":                  {"a\x00b", true, text.Kind{Binary: true, Name: "data", MIME: "application/octet-stream"}},
		"a NUL far away":         {strings.Repeat("a", 9000) + "\x00", true, text.Kind{Encoding: text.UTF8, Name: "text", MIME: "text/plain"}},
		"PNG":                    {"\x89PNG\r\n\x1a\n\x00\x00", false, text.Kind{Binary: true, Name: "PNG image", MIME: "image/png"}},
		"WebP":                   {"RIFF\x10\xff\x00\x00WEBPVP8 ", false, text.Kind{Binary: true, Name: "WebP image", MIME: "image/webp"}},
		"PDF":                    {"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", false, text.Kind{Binary: true, Name: "PDF document", MIME: "application/pdf"}},
		"text that begins so":    {"%PDF- is how a PDF begins", true, text.Kind{Encoding: text.UTF8, Name: "text", MIME: "text/plain"}},
		"tar":                    {"f" + strings.Repeat("\x00", 256) + "ustar\x0000", false, text.Kind{Binary: true, Name: "tar archive", MIME: "application/x-tar"}},
		"gzip":                   {"\x1f\x8b\x08\x00", false, text.Kind{Binary: true, Name: "gzip data", MIME: "application/gzip"}},
		"ELF":                    {"\x7fELF\x02\x01\x01\x00", false, text.Kind{Binary: true, Name: "ELF program or library", MIME: "application/x-elf"}},
		"SQLite":                 {"SQLite format 3\x00\x10\x00", false, text.Kind{Binary: true, Name: "SQLite database", MIME: "application/vnd.sqlite3"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text.Detect([]byte(c.head), c.whole); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
