package search

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// programMax bounds the instructions of an expression: the time for a byte grows with them.
const programMax = 4000

// A pattern is a query made ready. It does not change, and all workers share it.
type pattern struct {
	re      *regexp.Regexp
	needles []needle   // every match has one of them in it; none when that would help little
	whole   bool       // the place of a needle is a match
	auto    *automaton // says which lines may match
}

// compile makes a query ready. Expressions are those of package regexp, matched against
// one line at a time, without its LF or CRLF: nothing in them takes a line feed, and ^, $, \A and \z are the ends
// of the line.
func compile(query string, literal, fold bool) (*pattern, error) {
	flags := syntax.Perl &^ syntax.OneLine
	if literal {
		flags = syntax.Literal
	}
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(query, flags)
	if err != nil {
		return nil, badExpression(query, err)
	}
	if !withinLine(tree) {
		return nil, fault.New(contract.InvalidInput, "the query asks for a line feed, and text is searched line by line").
			WithHint("search for a part that stands on one line; contextLines shows what stands around it")
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, badExpression(query, err)
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil {
		return nil, badExpression(query, err)
	}
	if len(prog.Inst) > programMax {
		return nil, fault.New(contract.InvalidInput, "the expression is too large once its repetitions are written out").
			WithHint("use smaller counts in {}, or + and *").With("instructions", len(prog.Inst)).With("max", programMax)
	}
	p := &pattern{re: re, auto: newAutomaton(prog)}
	p.needles, p.whole = required(tree)
	return p, nil
}

// badExpression says what is wrong with an expression and where.
func badExpression(query string, err error) error {
	f := fault.Wrap(contract.InvalidInput, err, "the regular expression is not well formed").
		WithHint("put a backslash before a character that is meant as itself, or use mode literal")
	bad, ok := err.(*syntax.Error)
	if !ok {
		return f
	}
	f.Msg = "the regular expression is not well formed: " + string(bad.Code)
	switch {
	case strings.HasPrefix(bad.Expr, "(?=") || strings.HasPrefix(bad.Expr, "(?!") || strings.HasPrefix(bad.Expr, "(?<"):
		f = f.WithHint("there is no looking ahead or behind here, so that no expression can take for ever; search for more and pick")
	case bad.Code == syntax.ErrInvalidEscape && len(bad.Expr) == 2 && bad.Expr[1] >= '1' && bad.Expr[1] <= '9':
		f = f.WithHint("there are no references to groups here, so that no expression can take for ever")
	}
	if i := strings.Index(query, bad.Expr); i >= 0 && bad.Expr != "" {
		f = f.With("at", i).With("fragment", bad.Expr)
	}
	return f
}

// withinLine takes the line feed out of what an expression matches. It reports false when
// the line feed stands there as itself.
func withinLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op, re.Flags = syntax.OpEndLine, re.Flags&^syntax.WasDollar
	case syntax.OpCharClass:
		had := len(re.Rune) > 0
		re.Rune = withoutLineFeed(re.Rune)
		return !had || len(re.Rune) > 0
	}
	for _, sub := range re.Sub {
		if !withinLine(sub) {
			return false
		}
	}
	return true
}

// withoutLineFeed takes the line feed out of the ranges of a class.
func withoutLineFeed(ranges []rune) []rune {
	var out []rune
	for r := range slices.Chunk(ranges, 2) {
		lo, hi := r[0], r[1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}
