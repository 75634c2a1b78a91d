package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

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

// JSON prints v as data for programs: two spaces, a newline at the end.
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
	return s.Text(b.String())
}

// Output is the code of data that could not be written to where it should go.
const Output fault.Code = "output"

// Text prints an answer for people. Unlike Printf it tells when nobody can have read it.
func (s *Streams) Text(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fault.Wrap(Output, err, "the answer cannot be written to standard output").WithHint("look at the space of the disk it goes to")
	}
	return nil
}

// Printf prints data for people.
func (s *Streams) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// Notef says something beside the data, on standard error.
func (s *Streams) Notef(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) }
