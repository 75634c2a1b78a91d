package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"localmcp/internal/fault"
)

// Usage is the code of a command line that was typed wrong.
const Usage fault.Code = "usage"

// interrupted is what shells give to a program ended by Ctrl-C.
const interrupted = 130

// Codes is a product's table of exit statuses.
type Codes struct {
	Exit  map[fault.Code]int // by code of the fault
	Other int                // for every other failure; 0 means 1
	Usage int                // for a wrong command line; 0 means 2
	Help  []Meaning          // shown in every help text, in this order
}

// Meaning says what an exit status tells.
type Meaning struct {
	Status int
	Text   string
}

// Of returns the exit status of an error.
func (c Codes) Of(err error) int {
	var s Status
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return int(s)
	}
	f := fault.From(err)
	if n, ok := c.Exit[f.Code]; ok {
		return n
	}
	if f.Code == Usage {
		return orDefault(c.Usage, 2)
	}
	if errors.Is(err, context.Canceled) {
		return interrupted
	}
	return orDefault(c.Other, 1)
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// Status is an exit status that needs no words: the command has said everything.
type Status int

// Error makes a Status an error.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Run executes the command that args name, prints a failure, and returns the exit
// status. The caller's main gives it to os.Exit.
func Run(ctx context.Context, root *cobra.Command, args []string, s *Streams, codes Codes) int {
	out := &output{to: s.Out}
	s.Out = out
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageTemplate(root.UsageTemplate() + exitHelp(codes))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	ran := false
	prepare(root, &ran)
	cmd, err := root, stray(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if f := out.failure(); f != nil {
		err = f
	}
	if err == nil {
		return 0
	}
	if !ran && !errors.As(err, new(*fault.Error)) && !errors.As(err, new(Status)) {
		err = usage(cmd, err)
	}
	Print(s, root.Name(), err)
	return codes.Of(err)
}

// stray refuses a word that names no command: cobra shows the help of a group and
// calls that done.
func stray(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || c.Runnable() {
		return nil // cobra says what is wrong
	}
	c.InitDefaultHelpFlag()
	if c.ParseFlags(rest) != nil || c.Flags().NArg() == 0 {
		return nil
	}
	return unknown(c, c.Flags().Arg(0))
}

func unknown(group *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q for %q", word, group.CommandPath())
	group.SuggestionsMinimumDistance = max(group.SuggestionsMinimumDistance, 2) // cobra's own default
	if like := group.SuggestionsFor(word); word != "" && len(like) > 0 {
		text += "\n\nDid you mean this?\n\t" + like[0]
	}
	return usage(group, errors.New(text))
}

// help makes the help command refuse what it cannot explain.
func help(c *cobra.Command) {
	c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
		about, rest, err := c.Root().Find(args)
		switch {
		case err != nil:
			return usage(c.Root(), err)
		case len(rest) > 0:
			return unknown(about, rest[0])
		}
		about.InitDefaultHelpFlag() // so that it is listed
		return about.Help()
	}
}

// prepare makes every command of a tree note that it began, so that what cobra
// refused before can be told apart.
func prepare(c *cobra.Command, ran *bool) {
	if c.Name() == "help" && c.HasParent() && !c.Parent().HasParent() {
		help(c)
	}
	switch run, runE := c.Run, c.RunE; {
	case runE != nil:
		c.RunE = func(c *cobra.Command, args []string) error {
			*ran = true
			return runE(c, args)
		}
	case run != nil:
		c.Run = func(c *cobra.Command, args []string) {
			*ran = true
			run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		prepare(sub, ran)
	}
}

// usage turns a complaint of cobra into a fault: its first line, and what it
// suggests as the hint.
func usage(cmd *cobra.Command, err error) *fault.Error {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	line, _, _ := strings.Cut(lines[0], ": strconv.") // the library's words, not ours
	f := fault.New(Usage, "%s", line)
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Did you mean") })
	if i >= 0 && i+1 < len(lines) {
		return f.WithHint("Did you mean %q?", strings.TrimSpace(lines[i+1]))
	}
	return f.WithHint("See %q.", cmd.CommandPath()+" --help")
}

// Print says a failure on standard error.
func Print(s *Streams, program string, err error) {
	var quiet Status
	if errors.As(err, &quiet) {
		return
	}
	f := fault.From(err)
	if errors.Is(err, context.Canceled) && f.Code == fault.Internal {
		f = fault.New(f.Code, "interrupted")
	}
	fmt.Fprintf(s.Err, "%s: %s\n", program, f.Error())
	if f.Hint != "" {
		fmt.Fprintf(s.Err, "  %s\n", strings.ReplaceAll(f.Hint, "\n", "\n  "))
	}
	var at interface{ Place() string } // the command line is the owner's, who may be told it
	switch {
	case f.Err == nil:
	case s.Verbose:
		fmt.Fprintf(s.Err, "  cause: %v\n", f.Err)
	case errors.As(f.Err, &at):
		fmt.Fprintf(s.Err, "  at %s\n", oneLine(at.Place()))
	}
}

// oneLine quotes a path that would not stay on its line, or would do something to the
// terminal.
func oneLine(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// exitHelp is the end of every help text.
func exitHelp(codes Codes) string {
	if len(codes.Help) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nExit Status:\n")
	for _, m := range codes.Help {
		fmt.Fprintf(&b, "  %-3d %s\n", m.Status, m.Text)
	}
	return b.String()
}
