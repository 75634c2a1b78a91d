package ignore

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Check refuses, with INVALID_INPUT, a rule that [Parse] would drop because nothing can match
// it: whoever protects something by a rule must learn that it does not hold.
func Check(line string) error {
	if strings.ContainsAny(line, "\x00\r\n") {
		return fault.New(contract.InvalidInput, "a pattern is one line without NUL").WithHint("write each pattern by itself")
	}
	if _, ok := parseRule(trimSpaces(line), false); !ok || line[0] == '#' {
		return fault.New(contract.InvalidInput, "the pattern is not well formed, or nothing can match it").
			WithHint(`write a special character as itself by a backslash before it, such as \[`)
	}
	return nil
}
