package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Man returns the manual page (section 1) of a tree of commands: all of it on one
// page. date is shown as it is.
func Man(root *cobra.Command, date string, codes Codes) string {
	var b strings.Builder
	name := root.Name()
	fmt.Fprintf(&b, ".TH %q 1 %q\n", strings.ToUpper(name), date)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\\fIflags\\fR]\n", roff(name))
	if root.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(root.Long))
	}
	b.WriteString(".SH COMMANDS\n")
	commands(&b, root)
	if flags := flagLines(root.PersistentFlags()); flags != "" {
		fmt.Fprintf(&b, ".SH OPTIONS\n%s", flags)
	}
	if len(codes.Help) > 0 {
		b.WriteString(".SH EXIT STATUS\n")
		for _, m := range codes.Help {
			fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", m.Status, roff(m.Text))
		}
	}
	return b.String()
}

func commands(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if sub.Runnable() {
			fmt.Fprintf(b, ".SS %s\n", roff(sub.UseLine()))
			text := sub.Long
			if text == "" {
				text = sub.Short
			}
			fmt.Fprintf(b, "%s\n%s", paragraphs(text), flagLines(sub.LocalNonPersistentFlags()))
		}
		commands(b, sub)
	}
}

func flagLines(set *pflag.FlagSet) string {
	var b strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n\\fB")
		if f.Shorthand != "" {
			b.WriteString(roff("-"+f.Shorthand) + "\\fR, \\fB")
		}
		b.WriteString(roff("--"+f.Name) + "\\fR")
		if kind != "" {
			b.WriteString(" \\fI" + roff(kind) + "\\fR")
		}
		b.WriteString("\n" + roff(usage) + "\n")
	})
	return b.String()
}

func paragraphs(text string) string {
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n")
}

// roff escapes text: backslashes, hyphens, and lines that would be requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
