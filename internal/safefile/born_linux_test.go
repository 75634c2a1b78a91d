package safefile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"localmcp/internal/safefile"
)

func TestBorn(t *testing.T) {
	dir := filepath.Join(realTemp(t), "d")
	must(t, os.Mkdir(dir, 0o700))
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	first, known, err := r.Born()
	must(t, err)
	if !known {
		t.Skip("the file system keeps no time of birth")
	}
	if d := time.Since(time.Unix(0, first)).Abs(); d > time.Minute {
		t.Errorf("born %v ago", d)
	}
	write(t, filepath.Join(dir, "f"), "changes the directory")
	must(t, os.Chtimes(dir, time.Unix(1, 0), time.Unix(1, 0)))
	if again, _, err := r.Born(); err != nil || again != first {
		t.Errorf("it moved: %d, %d, %v", first, again, err)
	}
}
