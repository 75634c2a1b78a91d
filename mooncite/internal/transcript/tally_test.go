package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Names of unknown types are whole characters, of bounded length, and few.
func TestUnknownNames(t *testing.T) {
	var c tally
	long := strings.Repeat("型", 30)
	for _, name := range []string{"", long, "xx" + long, strings.Repeat("y", 80)} {
		c.unknown(name)
	}
	for i := range 200 {
		c.unknown(fmt.Sprint("type ", i%100))
	}
	more := 0
	for name, n := range c.n.Unknown {
		if strings.HasPrefix(name, "type ") && n == 2 {
			more++
			delete(c.n.Unknown, name)
		}
	}
	want := map[string]int64{"(none)": 1, long[:63]: 1, "xx" + long[:60]: 1, strings.Repeat("y", 64): 1}
	if d := cmp.Diff(want, c.n.Unknown); d != "" || more != 60 {
		t.Errorf("%d more names (-want +got):\n%s", more, d)
	}
}
