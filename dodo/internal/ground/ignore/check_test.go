package ignore_test

import (
	"errors"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
)

func TestCheckFindsWhatParseDrops(t *testing.T) {
	for _, line := range []string{"", " ", "/", "a[b", `a\`, "[[:nope:]]", "a\nb", "a\x00", "#x"} {
		if err := ignore.Check(line); !errors.Is(err, contract.InvalidInput) {
			t.Errorf("Check(%q) = %v", line, err)
		}
	}
	for _, line := range []string{"*.pem", "/a/**/b/", `\#x`, "[a-c]?"} {
		if err := ignore.Check(line); err != nil {
			t.Errorf("Check(%q) = %v", line, err)
		}
	}
}
