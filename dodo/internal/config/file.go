package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

const (
	lockName = "config.lock"
	maxFile  = 1 << 20 // bytes
	dirWhat  = "the installation directory"
	fileWhat = "the configuration file"
)

// Load reads the configuration in an installation directory and makes nothing. Where there
// is no file it is the default: of a fresh installation, where nothing was made yet, and
// with managed access where there is a state already and only the file is gone.
func Load(dir string) (Config, error) {
	r, err := privdir.Open(dir, dirWhat)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, state.Fault(err)
	}
	defer r.Close()
	c, _, err := read(r, dir)
	return c, err
}

// Ensure is [Load] for a program that will run: it makes the directory, and writes the file
// where there is none. A file that is there is left as the owner wrote it.
func Ensure(ctx context.Context, dir string) (Config, error) {
	r, err := privdir.Create(dir, dirWhat)
	if err != nil {
		return Config{}, state.Fault(err)
	}
	defer r.Close()
	c, text, err := read(r, dir)
	if err != nil || text != nil {
		return c, err
	}
	return Update(ctx, dir, func(*Config) error { return nil })
}

// Update changes the configuration: f gets what the file says now. It writes nothing when f
// fails or the result is out of bounds.
func Update(ctx context.Context, dir string, f func(*Config) error) (c Config, err error) {
	err = locked(ctx, dir, func(r *safefile.Root, now Config, before []byte) error {
		if err := f(&now); err != nil {
			return err
		}
		if err := now.check(); err != nil {
			return err
		}
		c = now
		after, err := now.encode()
		if err != nil || before != nil && string(before) == string(after) {
			return err
		}
		if err := r.WriteFileAtomic(FileName, after, 0o600); err != nil {
			return fault.Wrap(contract.ResourceLimit, err, "the configuration cannot be written; the old one holds").
				WithHint("look at the free space and the permissions of the installation directory")
		}
		return nil
	})
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// Hold runs f with what the file says, and nobody changes the file until f returns.
func Hold(ctx context.Context, dir string, f func(Config) error) error {
	return locked(ctx, dir, func(_ *safefile.Root, now Config, _ []byte) error { return f(now) })
}

func locked(ctx context.Context, dir string, f func(r *safefile.Root, now Config, text []byte) error) error {
	r, err := privdir.Create(dir, dirWhat)
	if err != nil {
		return state.Fault(err)
	}
	defer r.Close()
	held, err := privdir.Lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return state.Fault(err)
	}
	defer held.Unlock()
	c, text, err := read(r, dir)
	if err != nil {
		return err
	}
	return f(r, c, text)
}

// read is the configuration and the file's text, nil when there is none.
func read(r *safefile.Root, dir string) (Config, []byte, error) {
	if err := privdir.CheckFile(r, FileName, fileWhat); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return Config{}, nil, state.Fault(err)
		}
		c := Default()
		if _, err := r.Stat(state.FileName); !errors.Is(err, fs.ErrNotExist) {
			c.AccessMode = contract.AccessManaged // only the file is gone: that widens nothing
		}
		return c, nil, nil
	}
	data, err := privdir.ReadConfig(r, FileName, fileWhat, maxFile)
	if err != nil {
		return Config{}, nil, state.Fault(err)
	}
	c, err := Parse(data)
	return c, data, placed(err, dir)
}

// placed says where the file stands that is not understood: no command can read it then, so
// only an editor helps.
func placed(err error, dir string) error {
	if !errors.Is(err, contract.InvalidInput) {
		return err
	}
	f := *fault.From(err)
	where := fmt.Sprintf("correct %s in an editor; without it the defaults hold, and access is managed", filepath.Join(dir, FileName))
	if f.Hint != remedy {
		where = f.Hint + "; " + where
	}
	return f.WithHint("%s", where)
}
