package source_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"localmcp/internal/fault"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

// What cannot be read is said when it is added, not at the next recall.
func TestRegisterRefusesWhatCannotBeRead(t *testing.T) {
	obeyModes(t)
	h := testenv.NewHome(t)
	p := places(t, h)
	r := source.Registration{Origin: evidence.Codex, Dir: h.Path("closed")}
	must(t, os.Mkdir(r.Dir, 0o700))
	for _, mode := range []os.FileMode{0o000, 0o300} {
		must(t, os.Chmod(r.Dir, mode))
		_, err := p.Register(t.Context(), r)
		if f := fault.From(err); !errors.Is(err, source.RootUnavailable) || !strings.Contains(f.Msg, "permission denied") || f.Hint == "" {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	must(t, os.Chmod(r.Dir, 0o500))
	register(t, p, r)
}
