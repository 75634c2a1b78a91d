package engine

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// A marker that cannot be read is not another program's.
func TestMarker(t *testing.T) {
	if err := checkMarker(iotest.OneByteReader(strings.NewReader(marker))); err != nil {
		t.Errorf("ours, a byte at a time: %v", err)
	}
	for _, other := range []string{"", marker + "\n", marker[:len(marker)-1], "somebody else's"} {
		if err := checkMarker(strings.NewReader(other)); fault.From(err).Msg != fault.From(foreignState()).Msg {
			t.Errorf("%q: %v", other, err)
		}
	}
	err := checkMarker(iotest.ErrReader(syscall.EIO))
	if f := fault.From(err); f.Code != evidence.CodeState || !errors.Is(err, syscall.EIO) || !strings.Contains(f.Msg, "cannot be read") || f.Hint == "" {
		t.Errorf("a disk that fails: %v", err)
	}
}
