package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// Options say what is installed, and for whom.
type Options struct {
	Env     map[string]string // the user's environment
	Version string            // of the program
	// Program reads the program's own file.
	Program func() ([]byte, error)
	// Progress is told each step when it is done; nil means nobody is.
	Progress func(step string)
}

// An Installer installs and takes out. Its calls on one installation exclude each other,
// also between processes.
type Installer struct {
	Places  Places
	o       Options
	clients []client
}

// New returns an installer for the places that the environment leads to.
func New(o Options) (*Installer, error) {
	p, err := PlacesOf(o.Env)
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return &Installer{p, o, p.clients(o.Env, o.Progress)}, nil
}

// Probe asks every client how its registration stands. It changes nothing.
func (i *Installer) Probe(ctx context.Context) []Finding { return probeAll(ctx, i.clients) }

// ask is Probe for a change: after an interrupt nothing is known of any client.
func (i *Installer) ask(ctx context.Context) ([]Finding, error) {
	found := i.Probe(ctx)
	return found, ctx.Err()
}

// Outcomes.
const (
	Installed        = "installed"
	Updated          = "updated"
	AlreadyInstalled = "already_installed"
	Disabled         = "disabled"
	Uninstalled      = "uninstalled"
	NotInstalled     = "not_installed"
)

// A Result says what an installer's call did, and how things stand now.
type Result struct {
	Outcome       string    `json:"outcome"`
	Version       string    `json:"version,omitempty"`
	Previous      string    `json:"previous,omitempty"` // the version before an update
	Root          string    `json:"root"`
	Launcher      string    `json:"launcher,omitempty"` // after an uninstall: the command that stays, because install did not make it
	Registrations []Finding `json:"registrations"`
}

// takeBackLimit bounds what is undone after a failure, which an interrupt does not stop.
const takeBackLimit = 5 * time.Minute

// Install puts the program in force, makes the launcher and registers with every client
// that is there. What is in order already is left alone; an older version that the record
// names is replaced. On a failure everything is as it was before.
func (i *Installer) Install(ctx context.Context) (Result, error) {
	if err := i.housed(); err != nil {
		return Result{}, err
	}
	program, err := i.o.Program()
	if err != nil {
		return Result{}, fault.Wrap(evidence.CodeInstall, err, "the program cannot read its own file").WithHint("start it from where it is")
	}
	if _, err := i.Places.launcher(program); err != nil {
		return Result{}, err
	}
	if err := i.Places.makeRoot(); err != nil {
		return Result{}, err
	}
	held, err := i.lock()
	if err != nil {
		return Result{}, err
	}
	defer held.Unlock()
	// From here on nobody else installs or takes out: what is found now stays so.
	dir, fresh, err := i.Places.claim()
	if err != nil {
		return Result{}, err
	}
	defer dir.Close()
	c := &change{Installer: i, dir: dir, fresh: fresh, program: program}
	r, err := c.install(ctx)
	if err == nil {
		return r, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackLimit)
	defer cancel()
	if again := c.takeBack(undo); again != nil {
		f := fault.From(err)
		return Result{}, fault.Wrap(f.Code, errors.Join(err, again), "%s; and not everything could be taken back: %s", f.Error(), fault.From(again).Error()).
			WithHint("%s; then `mooncite install` or `mooncite uninstall` goes on from where this ended", f.Hint)
	}
	return Result{}, err
}

// housed refuses a home that does not exist, which was mistyped and would be made, and one
// that others can change.
func (i *Installer) housed() error {
	home, err := privdir.OpenConfig(i.Places.home, "the home directory")
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(evidence.CodeConfig, &privdir.At{Path: i.Places.home, Err: err}, "the home directory does not exist").
			WithHint("set HOME to your home directory, or make the directory it names")
	}
	if err != nil {
		return err
	}
	return home.Close()
}

// resume ends what a process was killed in the middle of.
func (i *Installer) resume(ctx context.Context, rec *record) error {
	for _, c := range i.clients {
		if err := c.resume(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) lock() (*privdir.Held, error) {
	held, err := privdir.TryLock(filepath.Join(i.Places.Root, lockName))
	if errors.Is(err, privdir.Busy) {
		return nil, fault.Wrap(privdir.Busy, err, "another mooncite is installing or uninstalling").WithHint("wait until it is done and try again")
	}
	return held, err
}

func refuseConflicts(found []Finding) error {
	for _, f := range found {
		if f.State == Conflict && !f.off {
			return fault.New(evidence.CodeClient, "%s", f.Detail).WithHint("%s", f.Remedy)
		}
	}
	return nil
}

// A change is an install that runs, with what it has to take back.
type change struct {
	*Installer
	dir     *safefile.Root
	fresh   bool // there was no installation
	program []byte

	before  []Finding // what the clients said before anything was changed
	rec     *record
	was     record // as it was before
	written bool   // the record is another than before
	staged  string // holds the replaced package once it was exchanged
	placed  bool   // a package was put where none was
	swapped bool   // the package was exchanged
	linked  bool   // the launcher was made
	added   []client
}

func (c *change) install(ctx context.Context) (Result, error) {
	var err error
	if c.rec, err = readRecord(c.dir); err != nil {
		return Result{}, err
	}
	c.was = *c.rec
	c.was.Clients = slices.Clone(c.rec.Clients)
	if err := sweep(c.dir); err != nil {
		return Result{}, err
	}
	if err := c.resume(ctx, c.rec); err != nil {
		return Result{}, err
	}
	if c.before, err = c.ask(ctx); err != nil {
		return Result{}, err
	}
	if err := refuseConflicts(c.before); err != nil {
		return Result{}, err
	}
	now, err := inspect(c.dir, c.rec)
	if err != nil {
		return Result{}, err
	}
	r := Result{Outcome: AlreadyInstalled, Version: c.o.Version, Root: c.Places.Root, Launcher: c.Places.Launcher}
	if older(c.o.Version, now.version) {
		return Result{}, fault.New(evidence.CodeInstall, "version %s is installed, which is newer than this one, %s", evidence.Visible(now.version), c.o.Version).
			WithHint("use the newer one, or take it out first with `mooncite uninstall`; histories and the index stay")
	}
	if r.Outcome, err = c.place(now); err != nil {
		return Result{}, err
	}
	if now.there && now.version != c.o.Version {
		r.Previous = now.version
	}
	if err := c.launch(); err != nil {
		return Result{}, err
	}
	if err := c.register(ctx); err != nil {
		return Result{}, err
	}
	if r.Registrations, err = c.confirm(ctx); err != nil {
		return Result{}, err
	}
	c.rec.Package, c.rec.Next = c.o.Version, ""
	for _, f := range r.Registrations {
		switch {
		case f.removable():
			c.rec.add(f.Client)
		case f.State == Missing: // was taken out of a client that we had registered with
			c.rec.drop(f.Client)
		}
	}
	if err := c.record("everything is recorded"); err != nil {
		return Result{}, err
	}
	c.tidy()
	return r, nil
}

// record writes what is owned now.
func (c *change) record(step string) error {
	c.written = true
	if err := writeRecord(c.dir, c.rec); err != nil {
		return err
	}
	c.o.Progress(step)
	return nil
}

// place puts the package in force.
func (c *change) place(now state) (outcome string, err error) {
	files := contents(c.o.Version, c.program)
	if now.there && now.whole && now.version == c.o.Version && sameFiles(now.digests, files) {
		return AlreadyInstalled, nil
	}
	c.rec.Next = c.o.Version
	if err := c.record("the version is announced"); err != nil {
		return "", err
	}
	if c.staged, err = stage(c.dir, c.o.Version, files); err != nil {
		return "", err
	}
	c.o.Progress("the package is made")
	if !now.there {
		if err := c.dir.Move(c.staged, packageName); err != nil {
			return "", unwritable(err)
		}
		c.placed = true
		c.o.Progress("the package is in place")
		return Installed, nil
	}
	if err := c.dir.Exchange(c.staged, packageName); err != nil {
		return "", fault.Wrap(evidence.CodeInstall, err, "the installed package cannot be replaced in one step on this file system").
			WithHint("take it out with `mooncite uninstall` and install again; nothing was changed")
	}
	c.swapped = true
	c.o.Progress("the package is replaced")
	return Updated, nil
}

func sameFiles(digests map[string]string, files map[string][]byte) bool {
	if len(digests) != len(files) {
		return false
	}
	for name, data := range files {
		if digests[name] != digest(data) {
			return false
		}
	}
	return true
}

// launch makes the launcher where there is none.
func (c *change) launch() error {
	has, err := c.Places.launcher(c.program)
	if err != nil {
		return err
	}
	c.rec.Launcher = has != equalLauncher
	if has != noLauncher {
		return nil
	}
	if err := c.record("the launcher is announced"); err != nil {
		return err
	}
	if err := c.Places.makeLauncher(); err != nil {
		return err
	}
	c.linked = true
	c.o.Progress("the launcher is made")
	return nil
}

// register adds the registrations that are missing.
func (c *change) register(ctx context.Context) error {
	for i, cl := range c.clients {
		if c.before[i].State != Missing {
			continue
		}
		cl.announce(c.rec)
		if err := c.record(cl.title() + " is announced"); err != nil {
			return err
		}
		c.added = append(c.added, cl)
		if err := cl.add(ctx); err != nil {
			return err
		}
		c.o.Progress(cl.title() + " is registered")
	}
	return nil
}

// confirm asks the clients again: what was there must be exact now.
func (c *change) confirm(ctx context.Context) ([]Finding, error) {
	now, err := c.ask(ctx)
	if err != nil {
		return nil, err
	}
	if err := refuseConflicts(now); err != nil {
		return nil, err
	}
	for i, f := range now {
		if was := c.before[i].State; (was == Missing || was == Exact) && f.State != Exact {
			return nil, fault.New(evidence.CodeClient, "%s did not take the registration: it is %s", f.title, f.State).
				WithHint("see whether the client works in a terminal, then try again")
		}
	}
	return now, nil
}

// tidy removes the package that was replaced. What it cannot remove the next call does.
func (c *change) tidy() {
	if c.swapped && os.RemoveAll(filepath.Join(c.dir.Path(), c.staged)) == nil {
		c.o.Progress("the version before is removed")
	}
}

// takeBack undoes what was done, the last first.
func (c *change) takeBack(ctx context.Context) error {
	var bad error
	for _, cl := range slices.Backward(c.added) {
		if f := cl.probe(ctx); f.State == Exact {
			bad = errors.Join(bad, cl.remove(ctx, c.rec))
		}
		if f := cl.probe(ctx); f.State != Missing {
			bad = errors.Join(bad, fault.New(evidence.CodeClient, "the registration with %s is %s", cl.title(), f.State))
		}
	}
	if c.linked {
		bad = errors.Join(bad, c.Places.removeLauncher())
	}
	if bad != nil {
		return bad // what is registered must find its program
	}
	if c.swapped {
		bad = c.dir.Exchange(c.staged, packageName)
	} else if c.placed {
		bad = c.dir.Move(packageName, c.staged)
	}
	if bad == nil && c.staged != "" {
		bad = os.RemoveAll(filepath.Join(c.dir.Path(), c.staged))
	}
	if bad != nil {
		return unwritable(bad)
	}
	switch {
	case c.fresh:
		return c.Places.vacate(c.dir)
	case c.written:
		return writeRecord(c.dir, &c.was)
	}
	return nil
}

// older reports whether version a is older than b, as far as both are versions: numbers
// with dots, and perhaps a word behind a hyphen, which makes it older than without.
func older(a, b string) bool {
	na, wa, oka := parts(a)
	nb, wb, okb := parts(b)
	if !oka || !okb {
		return false
	}
	if c := slices.Compare(na, nb); c != 0 {
		return c < 0
	}
	return wb == "" && wa != "" || wa != "" && wb != "" && cmp.Less(wa, wb)
}

func parts(v string) (numbers []int, word string, ok bool) {
	v, word, _ = strings.Cut(v, "-")
	for p := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return nil, "", false
		}
		numbers = append(numbers, n)
	}
	return numbers, word, true
}

var titles = map[string]string{
	Installed: "mooncite %s is installed.\n", AlreadyInstalled: "mooncite %s is installed already.\n",
	Disabled: "mooncite is registered with no client any more; the installation stays.\n", Uninstalled: "mooncite is taken out. The index and the settings stay; `purge` of a copy of the program, or deleting the state directory, removes the index.\n",
	NotInstalled: "mooncite is not installed here.\n",
}

// Text is the result in words.
func (r Result) Text() string {
	var b strings.Builder
	switch title := titles[r.Outcome]; {
	case r.Outcome == Updated && r.Previous != "":
		fmt.Fprintf(&b, "mooncite is %s now; it was %s.\n", r.Version, evidence.Visible(r.Previous))
	case r.Outcome == Updated:
		fmt.Fprintf(&b, "mooncite %s was put in order.\n", r.Version)
	case strings.Contains(title, "%s"):
		fmt.Fprintf(&b, title, r.Version)
	default:
		b.WriteString(title)
	}
	if r.Outcome == Uninstalled && r.Launcher != "" {
		fmt.Fprintf(&b, "%s stays: install did not make it.\n", evidence.Visible(r.Launcher))
	}
	for _, f := range r.Registrations {
		fmt.Fprintf(&b, "  %-12s %-12s %s\n", f.title, f.State, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  %-12s %-12s %s\n", "", "", f.Remedy)
		}
	}
	return b.String()
}
