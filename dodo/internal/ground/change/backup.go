package change

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

// The bounds of backups (decisions 3.8).
const (
	BackupRetention = 7 * 24 * time.Hour
	BackupBytes     = 1 << 30
)

const (
	// inlineBytes is the size up to which a packed backup is a row of the database, so that
	// one commit brings it and the intent to the disk. Larger ones are files.
	inlineBytes = 128 << 10
	// inlineTotal bounds what rows hold, so that the database stays small. Above it all
	// backups are files.
	inlineTotal = 128 << 20
	// orphanAge is how old a backup's file is before it is taken for one that has no row
	// because its writer died.
	orphanAge = time.Hour

	backupsName  = "backups"
	backupSuffix = ".zst"
)

// backups keeps contents by their hash, in the state database and beside it.
type backups struct {
	store  *state.Store
	packer *packer
	dir    *safefile.Root
	now    func() time.Time
	inline atomic.Int64 // bytes that rows hold, as last counted and added to since
}

func openBackups(store *state.Store, p *packer, now func() time.Time) (*backups, error) {
	dir, err := privdir.Create(filepath.Join(store.Dir(), backupsName), "the directory of backups")
	if err != nil {
		return nil, state.Fault(err)
	}
	return &backups{store: store, packer: p, dir: dir, now: now}, nil
}

// A packed backup is one that is to be kept.
type packed struct {
	hash string
	size int
	data []byte
}

func (b *backups) pack(hash string, data []byte) packed {
	return packed{hash: hash, size: len(data), data: b.packer.pack(data)}
}

// keep writes a backup inside the transaction that records what it is for. One that is there
// already is kept from now on. A file is written while nobody else can prune files.
func (b *backups) keep(ctx context.Context, c *sqlitedb.Conn, p packed) error {
	now := b.now().UnixMilli()
	var inFile bool
	there, err := c.Row(ctx, "SELECT NOT inline FROM backups WHERE hash = ?", []any{p.hash}, &inFile)
	if err != nil {
		return err
	}
	if there && inFile {
		if _, err := b.dir.Stat(backupName(p.hash)); errors.Is(err, fs.ErrNotExist) {
			there = false // somebody removed the file: write it again
		}
	}
	if there {
		_, err := c.Exec(ctx, "UPDATE backups SET used = ? WHERE hash = ?", now, p.hash)
		return err
	}
	content := p.data
	if len(p.data) > inlineBytes || b.inline.Load() > inlineTotal {
		content = nil
		if err := b.dir.WriteFileAtomic(backupName(p.hash), p.data, 0o600); err != nil {
			return err
		}
	} else {
		b.inline.Add(int64(len(p.data)))
	}
	_, err = c.Exec(ctx, "INSERT OR REPLACE INTO backups (hash, size, stored, inline, content, used) VALUES (?, ?, ?, ?, ?, ?)",
		p.hash, p.size, len(p.data), content != nil, content, now)
	return err
}

var errNoBackup = errors.New("the backup is not kept any more")

// load returns a content. One that is not kept, or is damaged, gives errNoBackup.
func (b *backups) load(ctx context.Context, hash string) ([]byte, error) {
	var content []byte
	var there bool
	err := b.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		there, err = c.Row(ctx, "SELECT content FROM backups WHERE hash = ?", []any{hash}, &content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, errNoBackup
	}
	if content == nil {
		if content, err = readAll(b.dir, backupName(hash)); err != nil {
			return nil, errors.Join(errNoBackup, err)
		}
	}
	data, err := b.packer.unpack(content)
	if err != nil || contract.Hash(data) != hash {
		return nil, errors.Join(errNoBackup, err)
	}
	return data, nil
}

func readAll(dir *safefile.Root, name string) ([]byte, error) {
	f, _, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func backupName(hash string) string { return strings.TrimPrefix(hash, "sha256:") + backupSuffix }

// LostBackups counts the backups of an installation that are noted but whose files are gone or
// cut: what they held cannot be given back any more.
func LostBackups(ctx context.Context, store *state.Store) (lost int, err error) {
	sizes := map[string]int64{}
	err = store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		rows, err := c.Query(ctx, "SELECT hash, stored FROM backups WHERE NOT inline")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var hash string
			var stored int64
			if err := rows.Scan(&hash, &stored); err != nil {
				return err
			}
			sizes[hash] = stored
		}
		return rows.Err()
	})
	if err != nil || len(sizes) == 0 {
		return 0, err
	}
	dir, err := privdir.Open(filepath.Join(store.Dir(), backupsName), "the directory of backups")
	if errors.Is(err, fs.ErrNotExist) {
		return len(sizes), nil
	}
	if err != nil {
		return 0, state.Fault(err)
	}
	defer dir.Close()
	for hash, stored := range sizes {
		in, err := dir.Stat(backupName(hash))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && in.Size != stored:
			lost++
		case err != nil:
			return lost, err
		}
	}
	return lost, nil
}

// pruneSlice is how many rows one transaction removes: others write in between.
const pruneSlice = 200

// prune removes what is older than [BackupRetention], then the oldest above limit bytes. What
// an unfinished change may need stays.
func (b *backups) prune(ctx context.Context, limit int64) error {
	for {
		var gone int
		err := b.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			list, err := b.surplus(ctx, c, limit)
			if err != nil {
				return err
			}
			gone = len(list)
			return b.drop(ctx, c, list)
		})
		if err != nil {
			return err
		}
		if gone < pruneSlice {
			break
		}
	}
	return b.dropOrphans(ctx)
}

// surplus lists backups to remove, the oldest first, and counts what stays in rows.
func (b *backups) surplus(ctx context.Context, c *sqlitedb.Conn, limit int64) ([]string, error) {
	var total, inline int64
	if _, err := c.Row(ctx, "SELECT coalesce(sum(stored), 0), coalesce(sum(stored) FILTER (WHERE inline), 0) FROM backups", nil, &total, &inline); err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, `SELECT hash, stored, inline, used FROM backups WHERE hash NOT IN (
		SELECT before_hash FROM journal_steps JOIN changesets ON changesets.id = changeset
		WHERE status IN ('committing', 'recovery_required') AND before_hash IS NOT NULL) ORDER BY used LIMIT ?`, pruneSlice)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	old := b.now().Add(-BackupRetention).UnixMilli()
	var list []string
	for rows.Next() {
		var hash string
		var stored, used int64
		var inRow bool
		if err := rows.Scan(&hash, &stored, &inRow, &used); err != nil {
			return nil, err
		}
		if used >= old && total <= limit {
			break
		}
		list = append(list, hash)
		total -= stored
		if inRow {
			inline -= stored
		}
	}
	b.inline.Store(inline)
	return list, rows.Err()
}

func (b *backups) drop(ctx context.Context, c *sqlitedb.Conn, hashes []string) error {
	for _, hash := range hashes {
		var inFile bool
		if _, err := c.Row(ctx, "DELETE FROM backups WHERE hash = ? RETURNING NOT inline", []any{hash}, &inFile); err != nil {
			return err
		}
		if !inFile {
			continue
		}
		if err := b.remove(backupName(hash)); err != nil {
			return err
		}
	}
	return nil
}

func (b *backups) remove(name string) error {
	if err := os.Remove(filepath.Join(b.dir.Path(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a backup: %w", err)
	}
	return nil
}

// dropOrphans removes files without a row, in a transaction so that none gets its row
// meanwhile.
func (b *backups) dropOrphans(ctx context.Context) error {
	list, _, err := b.dir.ReadDir(".")
	if err != nil {
		return fmt.Errorf("list the backups: %w", err)
	}
	if len(list) == 0 {
		return nil
	}
	return b.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		for _, e := range list {
			digits, ours := strings.CutSuffix(e.Name, backupSuffix)
			if _, err := hex.DecodeString(digits); !ours || err != nil {
				continue
			}
			there, err := c.Row(ctx, "SELECT 1 FROM backups WHERE hash = ?", []any{"sha256:" + digits}, new(int))
			if err != nil {
				return err
			}
			in, err := b.dir.Stat(e.Name)
			if there || err != nil || b.now().Sub(time.Unix(0, in.MtimeNS)) < orphanAge {
				continue
			}
			if err := b.remove(e.Name); err != nil {
				return err
			}
		}
		return nil
	})
}
