package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

var codes = cli.Codes{
	Exit: map[fault.Code]int{"unavailable": 4},
	Help: []cli.Meaning{{0, "It worked."}, {1, "It failed."}, {2, "The command line is wrong."}, {4, "Nothing to ask."}},
}

type place string

func (p place) Error() string { return "at " + string(p) }
func (p place) Place() string { return string(p) }

func tree(s *cli.Streams) *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "does things", Long: "Does things.\n\n.Really - \\ things."}
	show := &cobra.Command{Use: "show [what]", Short: "Show something", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch strings.Join(args, "") {
			case "":
				return s.JSON(map[string]any{"b": []string(nil), "a": "<x>"})
			case "fault":
				return fmt.Errorf("deeper: %w", fault.Wrap("unavailable", errors.New("disk on fire"), "there is no index").WithHint("Run %q.", "prog index"))
			case "place":
				return fault.Wrap("x", place("/home/mara/a\nb\x1b[31m"), "it is not there")
			case "bug":
				return errors.New("secret path")
			case "words":
				s.Printf("%d words\n", 2)
			case "quiet":
				return cli.Status(3)
			case "stop":
				return context.Canceled
			}
			return nil
		}}
	show.Flags().IntP("limit", "n", 3, "at most `count` things")
	group := &cobra.Command{Use: "source", Short: "Sources"}
	group.AddCommand(&cobra.Command{Use: "add", Short: "Add one", Args: cobra.NoArgs, Run: func(*cobra.Command, []string) {}})
	root.AddCommand(show, group)
	return root
}

func run(t *testing.T, verbose bool, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	s := &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Verbose: verbose}
	code = cli.Run(t.Context(), tree(s), args, s, codes)
	return code, o.String(), e.String()
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"show", 0, "{\n  \"a\": \"<x>\",\n  \"b\": []\n}\n", ""},
		{"show fault", 4, "", "prog: there is no index\n  Run \"prog index\".\n"},
		{"show place", 1, "", "prog: it is not there\n  at \"/home/mara/a\\nb\\x1b[31m\"\n"},
		{"show bug", 1, "", "prog: something went wrong inside the program\n"},
		{"show quiet", 3, "", ""},
		{"show stop", 130, "", "prog: interrupted\n"},
		{"shwo", 2, "", "prog: unknown command \"shwo\" for \"prog\"\n  Did you mean \"show\"?\n"},
		{"xyzzy", 2, "", "prog: unknown command \"xyzzy\" for \"prog\"\n  See \"prog --help\".\n"},
		{"show --nope", 2, "", "prog: unknown flag: --nope\n  See \"prog show --help\".\n"},
		{"show a b", 2, "", "prog: accepts at most 1 arg(s), received 2\n  See \"prog show --help\".\n"},
		{"show --limit x", 2, "", "prog: invalid argument \"x\" for \"-n, --limit\" flag\n  See \"prog show --help\".\n"},
		{"source drop", 2, "", "prog: unknown command \"drop\" for \"prog source\"\n  See \"prog source --help\".\n"},
		{"source ad", 2, "", "prog: unknown command \"ad\" for \"prog source\"\n  Did you mean \"add\"?\n"},
		{"source drop --help", 2, "", "prog: unknown command \"drop\" for \"prog source\"\n  See \"prog source --help\".\n"},
		{"help shwo", 2, "", "prog: unknown command \"shwo\" for \"prog\"\n  Did you mean \"show\"?\n"},
		{"help xyzzy", 2, "", "prog: unknown command \"xyzzy\" for \"prog\"\n  See \"prog --help\".\n"},
		{"help source drop", 2, "", "prog: unknown command \"drop\" for \"prog source\"\n  See \"prog source --help\".\n"},
		{"help show what", 2, "", "prog: unknown command \"what\" for \"prog show\"\n  See \"prog show --help\".\n"},
		{"completion pascal", 2, "", "prog: unknown command \"pascal\" for \"prog completion\"\n  See \"prog completion --help\".\n"},
		{"-- show", 2, "", "prog: unknown command \"show\" for \"prog\"\n  Did you mean \"show\"?\n"},
		{"''", 2, "", "prog: unknown command \"\" for \"prog\"\n  See \"prog --help\".\n"},
		{"source ''", 2, "", "prog: unknown command \"\" for \"prog source\"\n  See \"prog source --help\".\n"},
		{"source add", 0, "", ""},
		{"source add x", 2, "", "prog: unknown command \"x\" for \"prog source add\"\n  See \"prog source add --help\".\n"},
	} {
		args := strings.Fields(c.args)
		for i, a := range args {
			args[i] = strings.Trim(a, "'")
		}
		code, out, errOut := run(t, false, args...)
		if d := cmp.Diff([]any{c.code, c.out, c.err}, []any{code, out, errOut}); d != "" {
			t.Errorf("%s: %s", c.args, d)
		}
	}
	if _, _, e := run(t, true, "show", "fault"); !strings.Contains(e, "  cause: disk on fire\n") {
		t.Error(e)
	}
}

// What nobody can have read was not said, whichever way it was printed.
func TestOutputThatIsNotWritten(t *testing.T) {
	for _, args := range [][]string{{}, {"show", "--help"}, {"help", "show"}, {"source"}, {"completion", "bash"}, {"show"}, {"show", "words"}} {
		var e bytes.Buffer
		s := &cli.Streams{In: strings.NewReader(""), Out: fullDisk{}, Err: &e}
		if code := cli.Run(t.Context(), tree(s), args, s, codes); code != 1 || !strings.HasPrefix(e.String(), "prog: the answer cannot be written to standard output\n  ") {
			t.Errorf("%v: %d %s", args, code, &e)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A question is answered by a line, by nothing at the end of the input, or by an interrupt
// that does not wait for either.
func TestAsk(t *testing.T) {
	for input, want := range map[string]string{"yes\nno\n": "yes", " no \n": "no", "last": "last", "": ""} {
		var e bytes.Buffer
		s := &cli.Streams{In: strings.NewReader(input), Err: &e}
		if got, err := s.Ask(t.Context(), "Sure?"); got != want || err != nil || e.String() != "Sure?\n" {
			t.Errorf("%q: %q, %v, said %q", input, got, err, &e)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		in, end := io.Pipe() // nobody types
		defer end.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := &cli.Streams{In: in, Err: io.Discard}
		if got, err := s.Ask(ctx, "Sure?"); got != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {}, {"show", "--help"}, {"source"}, {"help", "show"}} {
		code, out, errOut := run(t, false, args...)
		if code != 0 || errOut != "" || !strings.HasSuffix(out, "Exit Status:\n  0   It worked.\n  1   It failed.\n  2   The command line is wrong.\n  4   Nothing to ask.\n") {
			t.Errorf("%v: %d %q\n%s", args, code, errOut, out)
		}
	}
	code, out, _ := run(t, false, "completion", "bash")
	if code != 0 || !strings.Contains(out, "__start_prog") {
		t.Errorf("completion: %d %.100s", code, out)
	}
}

func TestMan(t *testing.T) {
	got := cli.Man(tree(&cli.Streams{}), "2026", codes)
	want := `.TH "PROG" 1 "2026"
.SH NAME
prog \- does things
.SH SYNOPSIS
.B prog
.I command
[\fIflags\fR]
.SH DESCRIPTION
Does things.
.PP
\&.Really \- \e things.
.SH COMMANDS
.SS prog show [what] [flags]
Show something
.TP
\fB\-n\fR, \fB\-\-limit\fR \fIcount\fR
at most count things
.SS prog source add
Add one
.SH EXIT STATUS
.TP
.B 0
It worked.
.TP
.B 1
It failed.
.TP
.B 2
The command line is wrong.
.TP
.B 4
Nothing to ask.
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pipe, terminal bytes.Buffer
		for out, s := range map[*bytes.Buffer]*cli.Streams{
			&pipe: {Err: &pipe}, &terminal: {Err: &terminal, ErrTerminal: true},
		} {
			p := s.Progress("Reading")
			p.Report(1, 10, "")
			if out.Len() > 0 {
				t.Errorf("quick work shows %q", out)
			}
			time.Sleep(time.Second)
			p.Report(5, 10, "")
			time.Sleep(time.Second)
			p.Report(10, 10, "Writing")
			p.Done()
			p.Report(3, 10, "late")
		}
		if pipe.Len() > 0 {
			t.Errorf("a pipe got %q", &pipe)
		}
		shown := terminal.String()
		if !strings.Contains(shown, "Reading") || !strings.Contains(shown, "Writing") || strings.Contains(shown, "late") || !strings.HasSuffix(strings.TrimRight(shown, " "), "\r") {
			t.Errorf("%q", shown)
		}
	})
}

// What is data for programs does nothing to a terminal either.
func TestJSONShowsWhatItHolds(t *testing.T) {
	var out strings.Builder
	s := &cli.Streams{Out: &out}
	want := map[string]string{"a\u202eb": "\u009b31m \x7f \u2028 \U000E0041 \u200d \x1b \u00e9 \U0001F600 \ufeff \\u202e"}
	if err := s.JSON(want); err != nil {
		t.Fatal(err)
	}
	const text = "{\n  \"a\\u202eb\": \"\\u009b31m \\u007f \\u2028 \\udb40\\udc41 \\u200d \\u001b \u00e9 \U0001F600 \\ufeff \\\\u202e\"\n}\n"
	if out.String() != text {
		t.Errorf("%q, want %q", &out, text)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %q", err, got)
	}
}
