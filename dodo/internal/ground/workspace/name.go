package workspace

import (
	"unicode"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// plainName admits names that every terminal and every client can show: what exists under
// another name can be read and changed, but nothing new gets one.
func plainName(p Path) error {
	if !utf8.ValidString(p.Base()) {
		return fault.New(contract.PathDenied, "the new name is not valid UTF-8").WithHint("choose another name")
	}
	for _, r := range p.Base() {
		if unicode.IsControl(r) {
			return fault.New(contract.PathDenied, "the new name has a control character").WithHint("choose another name")
		}
	}
	return nil
}
