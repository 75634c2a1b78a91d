package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/oauth"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/ground/change"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// checkOut is one thing the doctor looked at.
type checkOut struct {
	Name    string `json:"name"`
	State   string `json:"state"` // ok, note or problem
	Finding string `json:"finding"`
	Remedy  string `json:"remedy,omitempty"`
}

// doctorOut is what doctor prints.
type doctorOut struct {
	OK     bool       `json:"ok"`
	Checks []checkOut `json:"checks"`
}

// Text is the list in words.
func (o *doctorOut) Text() string {
	var b strings.Builder
	for _, c := range o.Checks {
		fmt.Fprintf(&b, "%-8s %-14s %s\n", c.State, c.Name, line(c.Finding))
		if c.Remedy != "" {
			fmt.Fprintf(&b, "%24s%s\n", "", line(c.Remedy))
		}
	}
	return b.String()
}

func (o *doctorOut) add(name, state, format string, args ...any) {
	o.Checks = append(o.Checks, checkOut{Name: name, State: state, Finding: fmt.Sprintf(format, args...)})
}

// fail notes a failure with what to do about it.
func (o *doctorOut) fail(name string, err error) {
	f := fault.From(err)
	o.Checks = append(o.Checks, checkOut{Name: name, State: "problem", Finding: f.Error(), Remedy: f.Hint})
	o.OK = false
}

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything is as it should be",
		Long:  "Doctor looks at the program, the installation, the state, the projects and the running servers. It changes\nnothing and prints no secrets.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := p.examine(c.Context())
			if err := p.output(asJSON, o); err != nil || o.OK {
				return err
			}
			return cli.Status(1)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) examine(ctx context.Context) *doctorOut {
	o := &doctorOut{OK: true}
	o.add("program", "ok", "dodo %s, %s, %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if os.Geteuid() == 0 {
		o.add("user", "note", "dodo runs as root: what it serves is open as widely as root's files are")
	}
	dir, err := config.Dir(p.env)
	if err != nil {
		o.fail("installation", err)
		return o
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		o.add("installation", "note", "%s is not there yet: the first start makes it", dir)
		p.examineCommands(ctx, dir, config.Default(), o)
	} else if c, err := config.Load(dir); err != nil {
		o.fail("installation", err)
	} else {
		o.add("installation", "ok", "%s", dir)
		o.add("access", "ok", "%s", c.AccessMode)
		p.examineCommands(ctx, dir, c, o)
		p.examineState(ctx, dir, o)
		p.examineServers(ctx, dir, o)
		p.examineLogins(ctx, dir, c, o)
	}
	return o
}

// examineLogins looks at what clients need to log in over HTTP.
func (p *program) examineLogins(ctx context.Context, dir string, c config.Config, o *doctorOut) {
	switch issuer, err := c.Issuer(c.Port); {
	case err != nil:
		o.fail("clients", err)
	case c.PublicURL == "":
		o.add("clients", "ok", "of this machine alone, at %s/mcp", issuer)
	default:
		o.add("clients", "ok", "reach %s/mcp, if what stands there leads to port %d of this machine", issuer, c.Port)
	}
	if err := oauth.CheckKeys(dir); err != nil {
		o.fail("keys", err)
	}
	store, err := state.Open(ctx, dir, state.Options{Existing: true})
	if err != nil {
		return // the state was looked at
	}
	defer store.Close()
	list, err := store.Grants(ctx)
	if err != nil {
		o.fail("logins", err)
		return
	}
	live := 0
	for _, g := range list {
		if shownLogin(g, nil).Live {
			live++
		}
	}
	o.add("logins", "ok", "%d; clients may register themselves: %s", live, c.ClientRegistration)
}

// examineCommands builds the walls around a command that does nothing.
func (p *program) examineCommands(ctx context.Context, dir string, c config.Config, o *doctorOut) {
	w, err := newWalls(&installation{dir: dir, home: p.env["HOME"], path: p.env["PATH"], config: c}, nil)
	if err != nil {
		o.fail("commands", err)
		return
	}
	r := w.box.Probe(ctx)
	switch {
	case w.mode == sandbox.Off:
		o.Checks = append(o.Checks, checkOut{"commands", "note", "commands of clients are not confined: commandSandbox is off", "dodo config set commandSandbox prefer"})
		return
	case w.isolation(ctx) == unavailable:
		o.fail("commands", fault.New(contract.NotSupported, "none can be run: %s", reasons(r)).
			WithHint("namespaces for ordinary users, or bubblewrap, are needed; or Landlock with commandSandbox=prefer"))
		return
	case r.Best == sandbox.Reduced:
		o.Checks = append(o.Checks, checkOut{"commands", "note", "confined by Landlock and a filter alone, without network: " + reasons(r), "namespaces for ordinary users, or bubblewrap, give full walls"})
	default:
		if err := w.trial(ctx); err != nil {
			o.fail("commands", err)
			return
		}
		o.add("commands", "ok", "confined, %s; network: %s", r.Best, w.network)
	}
	for _, path := range c.SandboxReadPaths {
		switch _, err := os.Stat(path); {
		case err != nil:
			o.Checks = append(o.Checks, checkOut{"commands", "note", "sandboxReadPaths: " + path + " cannot be seen, so commands do not see it", "make it, or take it out of sandboxReadPaths"})
		case within(path, dir) || within(dir, path):
			o.Checks = append(o.Checks, checkOut{"commands", "note", "sandboxReadPaths: " + path + " has to do with dodo's own directory, so commands do not see it", "name the directories beside it"})
		}
	}
	if r.Root {
		o.Checks = append(o.Checks, checkOut{"commands", "note", "they run as root without its powers: run dodo as an ordinary user for walls that hold more", ""})
	}
	if r.Ungrouped != "" {
		o.add("commands", "note", "memory and processes are bounded for each process, not for a command as a whole: %s", r.Ungrouped)
	}
}

// within reports whether a path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// trial runs a command that does nothing, with all that the owner lets commands read.
func (w *walls) trial(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "dodo-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	root = filepath.Join(root, "work")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	place := w.box.Place(root, filepath.Join(dir, "home"), nil)
	program, err := place.Look("true")
	if err != nil {
		return nil // nothing can be said
	}
	process, err := place.Start(ctx, sandbox.Spec{Args: []string{program}, Dir: root, Mode: w.mode})
	if err != nil {
		return err
	}
	process.Wait()
	return nil
}

// unavailable stands where commands cannot be run.
const unavailable = "unavailable"

// reasons say why the better levels cannot be had.
func reasons(r sandbox.Report) string {
	var list []string
	for _, level := range []sandbox.Isolation{sandbox.Full, sandbox.Bwrap, sandbox.Reduced} {
		if why := r.Reasons[level]; why != "" {
			list = append(list, string(level)+": "+why)
		}
	}
	return strings.Join(list, "; ")
}

func (p *program) examineState(ctx context.Context, dir string, o *doctorOut) {
	store, err := state.Open(ctx, dir, state.Options{Existing: true})
	if errors.Is(err, fs.ErrNotExist) {
		o.add("state", "note", "there is none yet")
		return
	}
	if err != nil {
		o.fail("state", err)
		return
	}
	defer store.Close()
	size := int64(0)
	for _, suffix := range []string{"", "-wal"} {
		if st, err := os.Lstat(filepath.Join(dir, state.FileName+suffix)); err == nil {
			size += st.Size()
		}
	}
	o.add("state", "ok", "%s, %.1f MiB", state.FileName, float64(size)/(1<<20))
	if err := store.Room(); err != nil {
		o.fail("disk", err)
	} else {
		o.add("disk", "ok", "the installation directory can be written")
	}
	p.examineChanges(ctx, store, o)
	switch v, err := store.Verify(ctx); {
	case err != nil:
		o.fail("audit", err)
	case v.Broken != nil:
		o.fail("audit", fault.New(contract.InternalError, "the chain is broken at row %d: %s", v.Broken.ID, v.Broken.Why).
			WithHint("rows before it hold; find out who changed the file, and keep a copy of it"))
	default:
		o.add("audit", "ok", "%d rows, whole", v.Rows)
	}
	projects, err := store.Projects(ctx, false)
	if err != nil {
		o.fail("projects", err)
		return
	}
	ready := 0
	for _, project := range projects {
		if r := project.Readiness(); r == state.Ready {
			ready++
		} else {
			o.fail("project", fault.New(contract.PathDenied, "%s is %s: %s", project.ID, r, project.Root).
				WithHint("register the directory again with `dodo project add`, or remove the project"))
		}
	}
	o.add("projects", "ok", "%d ready of %d", ready, len(projects))
}

// examineChanges looks for changes that wait for the owner, and for backups that are lost.
func (p *program) examineChanges(ctx context.Context, store *state.Store, o *doctorOut) {
	waiting, err := change.Everywhere(ctx, store, "")
	if err != nil {
		o.fail("changes", err)
		return
	}
	for _, c := range waiting {
		o.fail("change", fault.New(contract.RecoveryRequired, "%s was interrupted and waits for you; its workspace is not changed until then", c.ID).
			WithHint("`dodo recover` lists what waits and how to end it"))
	}
	switch lost, err := change.LostBackups(ctx, store); {
	case err != nil:
		o.fail("backups", err)
	case lost > 0:
		o.fail("backups", fault.New(contract.InternalError, "%d of the backups are gone or cut", lost).
			WithHint("changes that need them cannot be taken back; put the files back into backups/ of the installation directory if you have a copy"))
	case len(waiting) == 0:
		o.add("changes", "ok", "none waits for you, and all backups are there")
	}
}

func (p *program) examineServers(ctx context.Context, dir string, o *doctorOut) {
	live, silent, err := owner.Discover(ctx, dir)
	if err != nil {
		o.fail("servers", err)
		return
	}
	o.add("servers", "ok", "%d running", len(live))
	for _, s := range silent {
		o.fail("server", s.Err)
	}
	for _, l := range live {
		if l.Version != version {
			o.add("server", "note", "%d is dodo %s: restart its client to have %s", l.PID, l.Version, version)
		}
	}
}
