package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// Disable takes the registrations out of the clients; the installation stays. A client
// that has one of ours and does not answer, or has changed it, is refused. What is out when
// something fails stays out: the error names it, and the next call goes on.
func (i *Installer) Disable(ctx context.Context) (Result, error) {
	return i.withRecord(ctx, func(dir *safefile.Root, rec *record) (Result, error) {
		now, out, err := i.withdraw(ctx, dir, rec)
		return Result{Outcome: Disabled, Version: rec.Package, Root: i.Places.Root, Registrations: now}, partly(out, err)
	})
}

// Uninstall takes the registrations, the launcher and the installation away, as [Installer.Disable] does.
// It leaves the index, the settings, every history, and a registration or a command of the
// same name that is not ours.
func (i *Installer) Uninstall(ctx context.Context) (Result, error) {
	return i.withRecord(ctx, func(dir *safefile.Root, rec *record) (Result, error) {
		now, out, err := i.withdraw(ctx, dir, rec)
		if err == nil {
			err = i.dismantle(dir, rec)
		}
		if err != nil {
			return Result{}, partly(out, err)
		}
		r := Result{Outcome: Uninstalled, Root: i.Places.Root, Registrations: now}
		if _, err := os.Lstat(i.Places.Launcher); err == nil {
			r.Launcher = i.Places.Launcher
		}
		return r, nil
	})
}

// dismantle removes the launcher and the installation.
func (i *Installer) dismantle(dir *safefile.Root, rec *record) error {
	if _, err := inspect(dir, rec); err != nil { // once more: the clients took a while
		return err
	}
	if rec.Launcher {
		if err := i.Places.removeLauncher(); err != nil {
			return err
		}
		i.o.Progress("the launcher is removed")
	}
	return i.remove(dir)
}

// partly says of a failure which clients are without mooncite already.
func partly(out []string, err error) error {
	if err == nil || len(out) == 0 {
		return err
	}
	f := fault.From(err)
	return fault.Wrap(f.Code, err, "%s; taken out already: %s", f.Error(), strings.Join(out, ", ")).
		WithHint("%s; the next call goes on from there, and `mooncite install` registers them again", f.Hint)
}

// withRecord runs a change of an installation that is there and in order.
func (i *Installer) withRecord(ctx context.Context, do func(*safefile.Root, *record) (Result, error)) (Result, error) {
	dir, held, err := i.hold()
	if errors.Is(err, fs.ErrNotExist) {
		return Result{Outcome: NotInstalled, Root: i.Places.Root, Registrations: []Finding{}}, nil
	}
	if err != nil {
		return Result{}, err
	}
	defer held.Unlock()
	defer dir.Close()
	rec, err := readRecord(dir)
	if err != nil {
		return Result{}, err
	}
	if err := sweep(dir); err != nil {
		return Result{}, err
	}
	if err := i.resume(ctx, rec); err != nil {
		return Result{}, err
	}
	if _, err := inspect(dir, rec); err != nil {
		return Result{}, err
	}
	return do(dir, rec)
}

// hold opens an installation with its lock held; where there is none it gives
// fs.ErrNotExist and makes nothing.
func (i *Installer) hold() (*safefile.Root, *privdir.Held, error) {
	dir, err := i.Places.openRoot()
	if err != nil {
		return nil, nil, err
	}
	dir.Close()
	held, err := i.lock()
	if err != nil {
		return nil, nil, err
	}
	if dir, err = i.Places.openRoot(); err != nil { // until now another process may have removed it
		return nil, nil, errors.Join(err, held.Unlock())
	}
	return dir, held, nil
}

// withdraw removes what is registered, and sees that nothing of ours is left. It names the
// clients that had something.
func (i *Installer) withdraw(ctx context.Context, dir *safefile.Root, rec *record) (now []Finding, out []string, err error) {
	if now, err = i.ask(ctx); err != nil {
		return nil, nil, err
	}
	for n, f := range now {
		if !rec.owns(f.Client) {
			continue
		}
		switch {
		case f.absent:
			if what, file := i.clients[n].left(); what != "" {
				return nil, nil, fault.Wrap(evidence.CodeClient, &privdir.At{Path: file}, "mooncite is registered with %s, and %s", f.title, f.Detail).
					WithHint("%s; or delete %s from the file that is named here, then try again; nothing was changed", f.Remedy, evidence.Visible(what))
			}
		case f.State == Unavailable:
			return nil, nil, fault.New(evidence.CodeClient, "mooncite is registered with %s, which does not answer: %s", f.title, f.Detail).
				WithHint("%s, then try again; nothing was changed", f.Remedy)
		case f.State == Conflict && !f.off:
			return nil, nil, fault.New(evidence.CodeClient, "the registration with %s was changed by somebody else: %s", f.title, f.Detail).
				WithHint("remove it with the client's own command, then try again; nothing was changed")
		}
	}
	for n, c := range slices.Backward(i.clients) {
		if now[n].removable() {
			if err := c.remove(ctx, rec); err != nil {
				return nil, out, err
			}
			i.o.Progress(c.title() + " is taken out")
			if f := c.probe(ctx); f.State != Missing {
				return nil, out, fault.New(evidence.CodeClient, "%s was told to forget mooncite, and its registration is %s", c.title(), f.State).
					WithHint("see whether the client works in a terminal, then try again")
			}
			now[n] = Finding{Client: c.name(), State: Missing, title: c.title()}
			out = append(out, c.title())
		}
		if rec.owns(c.name()) {
			rec.drop(c.name())
			if err := writeRecord(dir, rec); err != nil {
				return nil, out, err
			}
			i.o.Progress(c.title() + " is off the record")
		}
	}
	return now, out, nil
}

// remove takes the installation away: the package in one step, then what says that it is
// mooncite's.
func (i *Installer) remove(dir *safefile.Root) error {
	gone := stagePrefix + "removed"
	err := dir.Move(packageName, gone)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unremovable(err)
	}
	i.o.Progress("the package is out of force")
	if err := os.RemoveAll(filepath.Join(dir.Path(), gone)); err != nil {
		return unremovable(err)
	}
	i.o.Progress("the package is removed")
	return i.Places.vacate(dir)
}

// vacate removes the directory of an installation that has no package any more. The lock
// goes last: until then nobody else begins.
func (p Places) vacate(dir *safefile.Root) error {
	entries, _, err := dir.ReadDir(".")
	if err != nil {
		return unremovable(err)
	}
	var names []string
	for _, e := range entries {
		if e.Type == safefile.Regular && (e.Name == recordName || savedFile(e.Name) || leftover(e.Name)) {
			names = append(names, e.Name)
		}
	}
	for _, name := range append(names, markerName, lockName) {
		if err := os.Remove(filepath.Join(p.Root, name)); err != nil {
			return unremovable(err)
		}
	}
	_ = os.Remove(p.Root) // unless another install has begun
	return nil
}

func unremovable(err error) error {
	return fault.Wrap(evidence.CodeInstall, err, "the installation cannot be removed as a whole").
		WithHint("see what else is in %s, move it away and try again", rootWhat)
}
