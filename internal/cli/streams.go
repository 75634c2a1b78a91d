package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// Streams are what a command reads from and writes to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	InTerminal, OutTerminal, ErrTerminal bool

	Color   bool // colours are welcome on Out
	Verbose bool // show the causes of failures; a product may bind a flag to it
}

// Std returns the process's streams. getenv is asked for NO_COLOR and TERM.
func Std(getenv func(string) string) *Streams {
	s := &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal:  IsTerminal(os.Stdin),
		OutTerminal: IsTerminal(os.Stdout),
		ErrTerminal: IsTerminal(os.Stderr),
	}
	s.Color = s.OutTerminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// IsTerminal reports whether a person sits at the other end of f.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// JSON prints v as data for programs: two spaces, a newline at the end. What a terminal would
// not show as it stands, such as a control character or a change of direction, is escaped;
// it is the same text to whoever decodes it.
func (s *Streams) JSON(v any) error {
	data, err := op.Encode(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return fmt.Errorf("indent answer: %w", err)
	}
	b.WriteByte('\n')
	return s.Text(escaped(b.String()))
}

// escaped is JSON with the characters escaped that do something and show nothing. All of them
// stand in strings, but for the space between values.
func escaped(text string) string {
	hidden := func(r rune) bool {
		return r >= utf8.RuneSelf-1 && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Text prints an answer for people.
func (s *Streams) Text(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return unwritten(err)
	}
	return nil
}

// Printf prints data for people. When nobody can have read it, [Run] says so.
func (s *Streams) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// Output is the code of data that could not be written to where it should go.
const Output fault.Code = "output"

func unwritten(err error) error {
	return fault.Wrap(Output, err, "the answer cannot be written to standard output").WithHint("look at the space of the disk it goes to")
}

// output is standard output, with what went wrong first.
type output struct {
	to io.Writer

	mu  sync.Mutex // guards err
	err error
}

// Write writes.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = cmp.Or(o.err, err)
	}
	return n, err
}

// failure is a fault when something could not be written.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return unwritten(o.err)
}

// Ask says a question on standard error and returns one line of the answer without the
// space around it; "" when the input has ended. When ctx ends first, so does Ask, with its
// error; the reader of an input that nobody ends is left behind and goes with the process.
func (s *Streams) Ask(ctx context.Context, question string) (string, error) {
	s.Notef("%s", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.In).ReadString('\n') // an input that fails has no answer
		answer <- strings.TrimSpace(line)
	}()
	select {
	case line := <-answer:
		return line, ctx.Err()
	case <-ctx.Done():
		if s.InTerminal {
			s.Notef("") // the terminal has shown ^C
		}
		return "", ctx.Err()
	}
}

// Notef says something beside the data, on standard error.
func (s *Streams) Notef(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) }
