package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
)

// place is an isolated user: a HOME with a history, and XDG folders beside it.
type place struct{ dir string }

func (p place) home() string { return filepath.Join(p.dir, "home") }

// state is the program's state directory.
func (p place) state() string { return filepath.Join(p.dir, "state", "mooncite") }

// env is the whole environment of the program.
func (p place) env() []string {
	return []string{
		"HOME=" + p.home(),
		"XDG_STATE_HOME=" + filepath.Join(p.dir, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(p.dir, "config"),
		"XDG_DATA_HOME=" + filepath.Join(p.dir, "data"),
		"XDG_CACHE_HOME=" + filepath.Join(p.dir, "cache"),
		"XDG_RUNTIME_DIR=" + filepath.Join(p.dir, "run"),
		"TMPDIR=" + filepath.Join(p.dir, "tmp"),
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"TZ=UTC",
		"NO_COLOR=1",
	}
}

// newPlace makes a user whose HOME is a copy of a stored corpus.
func newPlace(ctx context.Context, dir, stored string) (place, error) {
	p := place{dir}
	for _, d := range []string{"state", "config", "data", "cache", "run", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return p, err
		}
	}
	return p, copyTree(ctx, stored, p.home())
}

// forget empties the program's state, as if it had never run.
func (p place) forget() error { return os.RemoveAll(p.state()) }

// stored returns the directory of a corpus, and makes the corpus when it is not
// there. It is made under another name first, so that a broken run leaves nothing
// that looks whole.
func (o *options) stored(ctx context.Context, mb int, only evidence.Origin) (string, error) {
	name := fmt.Sprintf("corpus-v%d-%dmb-%d", corpus.Version, mb, o.seed)
	if only != "" {
		name += "-" + string(only)
	}
	dir := filepath.Join(o.dir, name)
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(o.dir, "making-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if _, err := corpus.Write(ctx, corpus.Config{Home: tmp, Bytes: int64(mb) * 1e6, Seed: o.seed, Only: only}); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// copyTree copies directories and plain files with their permissions.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// treeBytes adds up the sizes of all files below dir.
func treeBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
