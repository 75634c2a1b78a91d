package memory_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"localmcp/internal/fault"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/memory"
)

func TestSetting(t *testing.T) {
	h := testenv.NewHome(t)
	dir, file := h.Path(".config/mooncite"), h.Path(".config/mooncite/learned-memory.json")
	read := func(want memory.Setting) {
		t.Helper()
		if got, err := memory.ReadSetting(dir); got != want || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	read(memory.Setting{})
	require := func(want error) {
		t.Helper()
		if err := memory.RequireOn(dir); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	require(evidence.CodeRefused) // never set
	for _, on := range []bool{true, false, true} {
		if err := memory.WriteSetting(dir, on); err != nil {
			t.Fatal(err)
		}
		read(memory.Setting{Enabled: on, Configured: true})
		if on {
			require(nil)
		} else {
			require(evidence.CodeRefused)
		}
	}
	if st, err := os.Stat(file); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "{\n  \"version\": 1,\n  \"enabled\": true\n}\n" {
		t.Errorf("%q, %v", data, err)
	}
	// What cannot be trusted or understood is off, with a reason; the command mends it.
	refused := func(words string) {
		t.Helper()
		got, err := memory.ReadSetting(dir)
		if f := fault.From(err); got != (memory.Setting{}) || !errors.Is(err, evidence.CodeConfig) || !strings.Contains(f.Msg, words) || f.Hint == "" || strings.Contains(f.Msg+f.Hint, h.Dir) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	refused("can be changed by everyone")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Write(t, ".config/mooncite/learned-memory.json", strings.Repeat(" ", 5000))
	refused("larger than 4096 bytes")
	h.Write(t, ".config/mooncite/learned-memory.json", "on")
	refused("not valid")
	require(evidence.CodeConfig)
	if err := memory.WriteSetting(dir, true); err != nil {
		t.Fatal(err)
	}
	read(memory.Setting{Enabled: true, Configured: true})
	if err := errors.Join(os.Remove(file), os.Symlink("/dev/zero", file)); err != nil {
		t.Fatal(err)
	}
	refused("not a regular file")
	if err := memory.WriteSetting(dir, false); err != nil { // in place of the link, not through it
		t.Fatal(err)
	}
	read(memory.Setting{Configured: true})
}
