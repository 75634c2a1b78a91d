package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// What is wrong as it was typed is refused before anything is opened, by the schemas and
// the sentences of the tools; only the names are the command line's.

// typed are the tools' arguments as the command line calls them.
var typed = map[string]string{
	"query": "the query", "evidence_id": "the evidence id",
	"limit": "--limit", "project": "--project", "session_id": "--session", "after": "--after", "before": "--before",
	"role": "--role", "source_origin": "--origin", "order": "--order", "cursor": "--cursor",
	"window": "--window", "text_offset": "--offset",
}

// wrong makes a usage fault of a sentence that begins with the name of an argument. What
// follows a semicolon is the hint.
func wrong(command, sentence string) error {
	sentence, hint, ok := strings.Cut(sentence, "; ")
	if !ok {
		hint = "see `mooncite " + command + " --help`"
	}
	if name, rest, _ := strings.Cut(sentence, " "); typed[name] != "" {
		sentence = typed[name] + " " + rest
	}
	return fault.New(evidence.CodeUsage, "%s", sentence).WithHint("%s", hint)
}

// check refuses what the tool that a command stands for would refuse.
func check(command, tool string, in any) error {
	args, err := op.Encode(in)
	if err != nil {
		return err
	}
	o, _ := op.NewSet(engine.Catalogue()...).Lookup(tool)
	if _, err := o.Bind(op.Call{Op: tool, Args: args}); err != nil {
		return wrong(command, fault.From(err).Msg)
	}
	return nil
}

// given refuses a flag that is given without a value, as a script does whose variable is
// empty: what it was to narrow would be searched as a whole.
func given(c *cobra.Command) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == "" {
			err = wrong(c.Name(), "--"+f.Name+" has no value")
		}
	})
	return err
}

// citation refuses what is no evidence id or URI.
func citation(s string) error {
	if _, ok := evidence.ParseLocator(strings.TrimSpace(s)); !ok {
		return fault.New(evidence.CodeUsage, "%.64q is not an evidence id or URI", evidence.Visible(s)).WithHint("use one that `mooncite recall` gave")
	}
	return nil
}
