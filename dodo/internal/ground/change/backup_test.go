package change_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
	"localmcp/internal/sqlitedb"
)

// size is what the installation takes on the disk.
func (w *world) size() int64 {
	w.t.Helper()
	var n int64
	must(w.t, filepath.WalkDir(w.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := d.Info()
		n += in.Size()
		return err
	}))
	return n
}

func (w *world) backups() (rows, stored int64) {
	w.t.Helper()
	must(w.t, w.state.Read(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Row(ctx, "SELECT count(*), coalesce(sum(stored), 0) FROM backups", nil, &rows, &stored)
		return err
	}))
	return rows, stored
}

// TestThousandEdits: what 1,000 edits of a 10 KB file leave is under 3 times the edited bytes,
// also when they do not compress, and retention takes it away.
func TestThousandEdits(t *testing.T) {
	n := 1000
	if testing.Short() || raceEnabled {
		n = 100
	}
	w := newWorld(t)
	var total int64
	for i := range n {
		text := lines(10<<10, i) // another text each time: nothing is shared
		w.call("write_file", obj{"path": "f", "content": text})
		total += int64(len(text))
	}
	used := w.size()
	t.Logf("%d edits of %d bytes together left %d bytes", n, total, used)
	if limit := 3*total + 17<<20; n < 1000 && used > limit || n == 1000 && used > 3*total {
		t.Errorf("the state takes %d bytes for %d edited", used, total)
	}
	rows, _ := w.backups()
	if rows != int64(n-1) {
		t.Errorf("%d backups", rows)
	}
	w.clock.Add(int64(change.BackupRetention + time.Hour))
	w.call("write_file", obj{"path": "f", "content": "last"}) // a change prunes when it is time
	if rows, _ := w.backups(); rows > 1 {
		t.Errorf("%d backups are kept after their time", rows)
	}
}

func TestBackupsArePruned(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range 10 {
		ids = append(ids, w.call("write_file", obj{"path": "f", "content": lines(20<<10, i)}).str("changesetId"))
		w.clock.Add(int64(time.Minute))
	}
	_, stored := w.backups()
	must(t, w.svc.PruneBackups(stored/2))
	rows, left := w.backups()
	if left > stored/2 || rows < 3 || rows > 6 {
		t.Errorf("%d backups of %d bytes are left of %d", rows, left, stored)
	}
	_, err := w.svc.Rollback(context.Background(), client, ids[9]) // the newest has its backup
	must(t, err)
	_, err = w.svc.Rollback(context.Background(), client, ids[1])
	refused(t, err, contract.Conflict)
}

// TestLargeBackupsAreFiles: contents that do not fit a row are files that only the owner may
// read; those without a row go.
func TestLargeBackupsAreFiles(t *testing.T) {
	w := newWorld(t)
	big := lines(2<<20, 1)
	w.write("f", big)
	id := w.call("write_file", obj{"path": "f", "content": "small"}).str("changesetId")
	list, err := os.ReadDir(filepath.Join(w.dir, "backups"))
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d files of backups", len(list))
	}
	in, err := list[0].Info()
	must(t, err)
	if in.Mode().Perm() != 0o600 || in.Size() > 1<<20 {
		t.Errorf("mode %v, %d bytes", in.Mode(), in.Size())
	}
	orphan := filepath.Join(w.dir, "backups", fmt.Sprintf("%064x.zst", 7))
	must(t, os.WriteFile(orphan, nil, 0o600))
	must(t, w.svc.Prune(context.Background()))
	if _, err := os.Stat(orphan); err != nil {
		t.Error("a young file was removed: its row may be on the way")
	}
	w.clock.Add(int64(2 * time.Hour))
	must(t, w.svc.Prune(context.Background()))
	if _, err := os.Stat(orphan); err == nil {
		t.Error("a file without a row was left")
	}
	_, err = w.svc.Rollback(context.Background(), client, id)
	must(t, err)
	w.holds("f", big)

	// A damaged backup is no backup.
	id = w.call("write_file", obj{"path": "f", "content": "small again"}).str("changesetId")
	must(t, os.WriteFile(filepath.Join(w.dir, "backups", list[0].Name()), []byte("damaged"), 0o600))
	_, err = w.svc.Rollback(context.Background(), client, id)
	refused(t, err, contract.Conflict)
	w.holds("f", "small again")
	w.clock.Add(int64(change.BackupRetention + time.Hour))
	must(t, w.svc.Prune(context.Background()))
	if list, err := os.ReadDir(filepath.Join(w.dir, "backups")); err != nil || len(list) != 0 {
		t.Errorf("%d files are left (%v)", len(list), err)
	}
}

// TestBackupOfOtherBytesIsRefused: a backup that unpacks cleanly, to other bytes than its hash
// says, is no backup, in a row and in a file.
func TestBackupOfOtherBytesIsRefused(t *testing.T) {
	for name, size := range map[string]int{"row": 1 << 10, "file": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mine, other := w.write("mine", lines(size, 1)), w.write("other", lines(size, 2))
			id := w.call("write_file", obj{"path": "mine", "content": "new"}).str("changesetId")
			w.call("write_file", obj{"path": "other", "content": "new"})
			file := func(hash string) string {
				return filepath.Join(w.dir, "backups", strings.TrimPrefix(hash, "sha256:")+".zst")
			}
			packed, err := os.ReadFile(file(other))
			if inFile := err == nil; inFile != (name == "file") {
				t.Fatalf("the backup is in a file: %v", inFile)
			}
			if name == "file" {
				must(t, os.WriteFile(file(mine), packed, 0o600))
			} else {
				must(t, w.state.Write(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
					_, err := c.Exec(ctx, "UPDATE backups SET content = (SELECT content FROM backups WHERE hash = ?) WHERE hash = ?", other, mine)
					return err
				}))
			}
			_, err = w.svc.Rollback(context.Background(), client, id)
			f := refused(t, err, contract.Conflict)
			if !strings.Contains(fmt.Sprint(f.Detail), "not kept any more") {
				t.Errorf("the reason is %v", f.Detail)
			}
			w.holds("mine", "new")
		})
	}
}
