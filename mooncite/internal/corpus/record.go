package corpus

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// record builds one JSON value in a buffer that is used again and again.
type record struct{ b []byte }

func (o *record) reset() *record { o.b = o.b[:0]; return o }

// raw appends JSON as it stands.
func (o *record) raw(s string) *record { o.b = append(o.b, s...); return o }

func (o *record) num(n int) *record { o.b = strconv.AppendInt(o.b, int64(n), 10); return o }

func (o *record) secs(t time.Time) *record {
	o.b = strconv.AppendFloat(o.b, float64(t.UnixMilli())/1000, 'f', 3, 64)
	return o
}

// str appends s as a JSON string.
func (o *record) str(s string) *record { o.b = quote(o.b, s); return o }

// text appends s as a JSON string.
func (o *record) text(s []byte) *record { o.b = quote(o.b, s); return o }

// ref appends an id, or null when there is none.
func (o *record) ref(id string) *record {
	if id == "" {
		return o.raw("null")
	}
	return o.str(id)
}

func quote[S string | []byte](b []byte, s S) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// sink is a session file being written.
type sink struct {
	f       *os.File
	w       *bufio.Writer
	bytes   int64
	records int
}

func create(path string) (*sink, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &sink{f: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

// line writes one record and a line feed. A write error stays in the writer and
// comes out of close.
func (s *sink) line(o *record) {
	o.b = append(o.b, '\n')
	s.put(o.b)
	s.records++
}

func (s *sink) put(b []byte) {
	s.w.Write(b)
	s.bytes += int64(len(b))
}

func (s *sink) close() error {
	err := s.w.Flush()
	if e := s.f.Close(); err == nil {
		err = e
	}
	return err
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func fileTime(t time.Time) string { return t.UTC().Format("2006-01-02T15-04-05") }
