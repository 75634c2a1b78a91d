package safefile_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/safefile"
)

func TestLoadText(t *testing.T) {
	dir := realTemp(t)
	big := strings.Repeat("line\n", 40<<10) // 200 KiB
	for name, text := range map[string]string{
		"empty": "", "text": "a\nb", "nul": "a\x00b", "late": big[:70<<10] + "\x00", "big": big, "utf16": "\xff\xfea\x00", "utf16be": "\xfe\xff\x00a",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	d, err := r.OpenDir(".")
	must(t, err)
	defer d.Close()
	var buf []byte
	for name, want := range map[string]struct {
		size       int
		text, more bool
	}{
		"empty": {0, true, false}, "text": {3, true, false}, "nul": {3, false, false}, "late": {70<<10 + 1, true, false},
		"big": {len(big), true, false}, "utf16": {4, true, false}, "utf16be": {4, true, false},
	} {
		data, in, text, more, err := d.LoadText(name, buf, 1<<20)
		must(t, err)
		if len(data) != want.size || text != want.text || more != want.more || in.Size != int64(want.size) {
			t.Errorf("%s: %d bytes, text %v, more %v", name, len(data), text, more)
		}
		buf = data
	}
	if data, _, text, more, err := d.LoadText("big", buf, 1000); err != nil || len(data) != 0 || text || !more {
		t.Errorf("above the limit: %d bytes, %v, %v, %v", len(data), text, more, err)
	}
	if data, _, _, _, err := d.LoadText("big", make([]byte, 0, 10), 1<<20); err != nil || !bytes.Equal(data, []byte(big)) {
		t.Errorf("a small buffer: %d bytes, %v", len(data), err)
	}
	if _, _, _, _, err := d.LoadText("none", nil, 10); err == nil {
		t.Error("what is not there is read")
	}
}
