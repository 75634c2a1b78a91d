package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/confine"
	"localmcp/internal/fault"
)

// Start runs a command. The faults are NOT_SUPPORTED when the isolation that was asked for
// cannot be had here, NOT_FOUND or PATH_DENIED for a program or directory that is not
// there or cannot be run, and CONFLICT (retryable) when secret paths were moved meanwhile.
// ctx bounds the start alone.
func (p *Place) Start(ctx context.Context, s Spec) (*Process, error) {
	if len(s.Args) == 0 || !filepath.IsAbs(s.Args[0]) || !filepath.IsAbs(s.Dir) {
		return nil, fault.New(contract.InvalidInput, "a command needs the absolute paths of a program and a directory")
	}
	for _, list := range [][]string{s.Args, s.Env, {s.Script, s.Dir}} {
		if slices.ContainsFunc(list, func(word string) bool { return strings.ContainsRune(word, 0) }) {
			return nil, fault.New(contract.InvalidInput, "an argument, a directory or a variable has a NUL in it, which the system cannot pass on")
		}
	}
	if s.Mode == Off {
		return startPlain(s)
	}
	level, err := p.box.level(ctx, s.Mode)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if p.root == "/" || walls.Within(dir, p.root) {
			return nil, fault.New(contract.NotSupported, "commands cannot be confined to a workspace that is the whole file system, or a part of the kernel").
				WithHint("the owner chooses the directory of a project")
		}
	}
	pl := p.box.outline(level, s.Network != Host)
	pl.Skip = s.skip
	// Where it needs no plan to be started, the first process comes up while the plan is made.
	// It has then nothing but its namespaces, has looked at nothing, and builds nothing before it
	// has the plan: what is hidden and held is so in the same order as if it came later.
	var w *walled
	if level == Full {
		if w, err = p.box.begin(pl, nil, s.streams()); err != nil {
			return nil, failed(err)
		}
	}
	r, err := p.ready(ctx, pl, s)
	if err != nil {
		if w != nil {
			w.abandon()
		}
		return nil, err
	}
	if w == nil {
		if w, err = p.box.begin(r.plan, p.box.wrap(r.plan), s.streams()); err != nil {
			r.release()
			return nil, failed(err)
		}
	}
	process, err := w.run(ctx, r.plan)
	if err != nil {
		r.release()
		return nil, failed(err)
	}
	process.Notes, process.Hidden = r.notes, len(r.plan.Covers)-r.plan.emptied
	go w.follow(process, func() []string {
		notes := p.told(s, r.before)
		r.release()
		return notes
	})
	return process, nil
}

func (s Spec) streams() streams { return streams{s.Stdin, s.Stdout, s.Stderr} }

// readiness is what a command is started with.
type readiness struct {
	plan    plan
	notes   []string
	before  fingerprint
	release func() // gives up what is held for it
}

// ready makes a plan and holds what it relies on.
func (p *Place) ready(ctx context.Context, pl plan, s Spec) (r readiness, err error) {
	kept, err := p.keeps(ctx, lookTime)
	if err != nil {
		return r, err
	}
	kept = p.arrange(kept, s.Write)
	leave := func() {}
	if !s.ReadOnly && pl.level != Reduced {
		leave = placeholders(kept.Git)
	}
	if r.plan, r.notes, err = p.plan(pl, s, kept); err != nil {
		leave()
		return r, err
	}
	if !s.ReadOnly {
		r.before = fingerprintOf(p.root, kept, nil)
	}
	let, err := p.hold(r.plan.Covers[:len(r.plan.Covers)-r.plan.emptied])
	if err != nil {
		leave()
		return r, err
	}
	r.release = func() {
		let()
		leave()
	}
	return r, nil
}

// How long it may take to look for what a workspace keeps, before a command and behind it: what
// a command changed is not worth more of its caller's time.
const (
	lookTime = time.Minute
	toldTime = 5 * time.Second
)

// keeps asks what the workspace keeps from commands.
func (p *Place) keeps(ctx context.Context, most time.Duration) (Kept, error) {
	if p.kept == nil {
		return Kept{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	k, err := p.kept(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = fault.Wrap(contract.Timeout, err, "the workspace was not looked through for secret paths in time").
			WithHint("nothing was run; try again, or let the owner choose a smaller directory as the workspace").Retry()
	}
	return k, err
}

// told is what became of the control files while a command ran.
func (p *Place) told(s Spec, before fingerprint) []string {
	if s.ReadOnly {
		return nil
	}
	kept, err := p.keeps(context.Background(), toldTime)
	if err != nil {
		return []string{"it could not be seen which files that other programs obey the command changed"}
	}
	kept = p.arrange(kept, s.Write)
	return before.changed(p.root, fingerprintOf(p.root, kept, &before), kept.Closed)
}

// level is the isolation that a mode gets here.
func (b *Box) level(ctx context.Context, m Mode) (Isolation, error) {
	r := b.Probe(ctx)
	if r.Best == Full || r.Best == Bwrap || r.Best == Reduced && m == Prefer {
		return r.Best, nil
	}
	if err := ctx.Err(); err != nil {
		return None, fault.Wrap(contract.Timeout, err, "the command was not started in time").Retry()
	}
	why := r.Reasons[Full]
	if m == Prefer {
		why += "; " + r.Reasons[Reduced]
	}
	return None, fault.New(contract.NotSupported, "commands cannot be confined on this machine, so none was run: %s", why).
		WithHint("the owner sees what is missing with: dodo doctor")
}

// plan says how the walls of a command are built, from its outline on.
func (p *Place) plan(pl plan, s Spec, kept Kept) (_ plan, notes []string, err error) {
	pl.Args, pl.Dir, pl.Env, pl.Size = s.Args, s.Dir, lastOnly(s.Env), (*walls.Size)(s.Terminal)
	root := walls.Mount{From: p.root, To: p.root, Write: !s.ReadOnly}
	if root.ID, err = p.identity(); err != nil {
		return pl, nil, err
	}
	if err := os.MkdirAll(p.cache, 0o700); err != nil {
		return pl, nil, fault.Wrap(contract.InternalError, err, "the directory for the caches of commands cannot be made")
	}
	if pl.level == Reduced {
		return p.planReduced(pl, s, kept)
	}
	pl.Outside = walls.Outside()
	if pl.level == Bwrap {
		pl.empty = p.cache + ".empty"
		if err := os.WriteFile(pl.empty, nil, 0o400); err != nil && !errors.Is(err, os.ErrPermission) {
			return pl, nil, fault.Wrap(contract.InternalError, err, "the directory for the caches of commands cannot be written")
		}
	}
	pl.Proxy = s.Network == Proxy
	home := homeOf(p.root, p.box.o.Home)
	pl.Mounts, pl.Links = system()
	if walls.Within("/var/tmp", p.root) {
		pl.Links = slices.DeleteFunc(pl.Links, func(l walls.Link) bool { return l.Name == "/var/tmp" })
	}
	for _, dir := range append(tools(p.path(), p.box.o.Home), p.box.o.Read...) {
		if !walls.Within(p.root, dir) && !walls.Within(dir, p.root) && !p.box.hides(dir) {
			pl.Mounts = append(pl.Mounts, walls.Mount{From: dir, To: dir, Optional: true})
		}
	}
	pl.Mounts = append(pl.Mounts, walls.Mount{From: p.cache, To: home, Write: true})
	for _, path := range s.Read {
		pl.Mounts = append(pl.Mounts, walls.Mount{From: path, To: path, Optional: true})
	}
	for _, path := range s.Write {
		pl.Mounts = append(pl.Mounts, walls.Mount{From: path, To: path, Write: !s.ReadOnly, Optional: true})
	}
	pl.place(s.Script, p.root)
	sortMounts(pl.Mounts)
	pl.Mounts = append(pl.Mounts, root)
	if !s.ReadOnly {
		pl.Mounts = append(pl.Mounts, p.guards(kept, p.above())...)
	}
	if pl.Covers, err = p.covers(kept.Secrets, pl.Mounts, s.Script); err != nil {
		return pl, nil, err
	}
	if notes, err = p.empty(&pl, kept, s.ReadOnly); err != nil {
		return pl, nil, err
	}
	pl.Run = []string{"/"}
	pl.Write = []string{"/tmp", "/dev/shm", home}
	if !s.ReadOnly {
		pl.Write = append(append(pl.Write, p.root), s.Write...)
	}
	pl.Devices = append(slices.Clone(devices), "/dev/pts", "/dev/ptmx")
	for name, value := range map[string]string{"HOME": home, "TMPDIR": "/tmp"} {
		pl.Env = walls.SetEnv(pl.Env, name, value)
	}
	if s.Network == Host && confine.LandlockABI() < confine.ScopesABI {
		notes = append(notes, "This kernel does not keep commands with the machine's network from sockets that other programs of it have without a file.")
	}
	return pl, notes, nil
}

// place shows a script where nothing else is, or where it lies.
func (pl *plan) place(script, root string) {
	if script == "" {
		return
	}
	to := ScriptPath
	for _, m := range append(pl.Mounts, walls.Mount{To: root}) {
		if walls.Within(m.To, to) || walls.Within(to, m.To) {
			to = script
		}
	}
	pl.Mounts = append(pl.Mounts, walls.Mount{From: script, To: to})
	pl.Args = slices.Clone(pl.Args)
	for i, a := range pl.Args {
		if a == script {
			pl.Args[i] = to
		}
	}
}

// lastOnly keeps of each variable what was said last, as programs are started elsewhere:
// most of them take the first.
func lastOnly(env []string) (list []string) {
	seen := map[string]bool{}
	for _, kv := range slices.Backward(env) {
		name, _, ok := strings.Cut(kv, "=")
		if ok && !seen[name] {
			seen[name] = true
			list = append(list, kv)
		}
	}
	slices.Reverse(list)
	return list
}

// identity is the workspace's. A link in its place, or on the way, is another directory.
func (p *Place) identity() (walls.Identity, error) {
	fd, err := walls.Unlinked(p.root)
	if err == nil {
		defer unix.Close(fd)
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return walls.Identity{Dev: uint64(st.Dev), Ino: st.Ino}, nil
		}
	}
	return walls.Identity{}, fault.Wrap(contract.NotFound, cmp.Or(err, error(unix.ENOTDIR)), "the workspace is not where it was: nothing, or a link, is in its place").
		WithHint("the owner opens it anew by its own path")
}

// above are the directories between the workspace and what is hidden in it.
func (p *Place) above() (dirs []string) {
	for _, h := range p.box.hidden() {
		for dir := filepath.Dir(h); dir != p.root && walls.Within(p.root, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// covers are the secret paths, and what no command may see of what is mounted.
func (p *Place) covers(secrets []string, mounts []walls.Mount, script string) (list []walls.Cover, err error) {
	paths := slices.Clone(secrets)
	for _, h := range p.box.hidden() {
		seen := slices.ContainsFunc(mounts, func(m walls.Mount) bool {
			return walls.Within(m.From, h) && m.From != script && m.From != p.cache
		})
		switch {
		case !seen:
		case walls.Within(h, p.root):
			return nil, fault.New(contract.NotSupported, "the workspace is in a directory that no command may see").WithHint("the owner moves one of them")
		default:
			if _, err := os.Lstat(h); err == nil {
				paths = append(paths, h)
			}
		}
	}
	return p.cover(nil, paths)
}

// cover adds paths that are to look empty to those that do.
func (p *Place) cover(list []walls.Cover, paths []string) ([]walls.Cover, error) {
	covered := map[string]bool{}
	for _, c := range list {
		covered[c.Path] = true
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	for _, path := range paths {
		if above(path, func(dir string) bool { return covered[dir] }) {
			continue // it is not seen as it is
		}
		st, err := os.Lstat(path)
		if err == nil && st.Mode()&os.ModeSymlink != 0 {
			continue // it has no content, and what it names is judged by its own name
		}
		var id walls.Identity
		if err == nil {
			id, err = walls.IdentityOf(path, false)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fault.Wrap(contract.PathDenied, err, "%s must be hidden from commands and cannot be looked at; nothing was run", p.named(path)).
				WithHint("the owner moves it out of the workspace, or changes the permissions of it and of the directories it is in")
		}
		if err != nil {
			return nil, failed(&walls.StepError{Step: walls.StepCover, Err: err})
		}
		list, covered[path] = append(list, walls.Cover{Path: path, ID: id}), true
	}
	return list, nil
}

// above reports whether something holds for a path or a directory that it is in.
func above(path string, holds func(dir string) bool) bool {
	for ; path != "/"; path = filepath.Dir(path) {
		if holds(path) {
			return true
		}
	}
	return false
}

// hidden are the directories that no command may see, by all their names.
func (b *Box) hidden() (all []string) {
	for _, h := range b.o.Hidden {
		all = append(all, filepath.Clean(h))
		if real, err := filepath.EvalSymlinks(h); err == nil && real != filepath.Clean(h) {
			all = append(all, real)
		}
	}
	return all
}

// hides reports whether a directory is one that no command may see, or has one in it, by
// whatever name.
func (b *Box) hides(dir string) bool {
	names := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		names = append(names, real)
	}
	return slices.ContainsFunc(b.hidden(), func(h string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return walls.Within(name, h) || walls.Within(h, name) })
	})
}

// planReduced is for where there are no namespaces: everything has its own path.
func (p *Place) planReduced(pl plan, s Spec, kept Kept) (plan, []string, error) {
	if len(kept.Closed) > 0 {
		return pl, nil, fault.New(contract.NotSupported, "%s cannot be looked through for secrets, nor be hidden from commands on this machine; nothing was run", p.named(kept.Closed[0])).
			WithHint("the owner gives the server permission to read and search it (chmod u+rwx), or moves it out of the workspace")
	}
	n := len(kept.Secrets)
	for _, h := range p.box.hidden() {
		if _, err := os.Lstat(h); err == nil && walls.Within(p.root, h) {
			n++
		}
	}
	if n > 0 {
		return pl, nil, fault.New(contract.NotSupported, "the workspace has %d secret paths, which cannot be hidden from commands on this machine; nothing was run", n).
			WithHint("the owner moves them out of the workspace, or excepts them with secretAllow, or uses a machine where namespaces can be made")
	}
	temp := filepath.Join(p.cache, "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return pl, nil, fault.Wrap(contract.InternalError, err, "the directory for the caches of commands cannot be made")
	}
	for _, dir := range append(slices.Clone(systemDirs), tools(p.path(), p.box.o.Home)...) {
		if !p.box.hides(dir) {
			pl.Run = append(pl.Run, dir)
		}
	}
	pl.Run = append(pl.Run, configuration()...)
	for _, dir := range p.box.o.Read {
		if !p.box.hides(dir) {
			pl.Run = append(pl.Run, dir)
		}
	}
	pl.Run = append(append(pl.Run, "/proc"), s.Read...)
	if s.Script != "" {
		pl.Run = append(pl.Run, s.Script)
	}
	pl.Write = []string{p.cache}
	if s.ReadOnly {
		pl.Run = append(append(pl.Run, p.root), s.Write...)
	} else {
		pl.Write = append(append(pl.Write, p.root), s.Write...)
	}
	pl.Devices = devices // the terminals of others are beside those that it could make
	for name, value := range map[string]string{"HOME": p.cache, "TMPDIR": temp} {
		pl.Env = walls.SetEnv(pl.Env, name, value)
	}
	var notes []string
	if len(kept.Git) > 0 && !s.ReadOnly {
		notes = append(notes, "Nothing keeps the command from changing what git obeys in the workspace on this machine, such as .git/config and hooks; what it changed is named when it ends.")
	}
	if s.Network != NoNetwork && s.Network != "" {
		notes = append(notes, "There is no network for commands on this machine: namespaces cannot be made here.")
	}
	if confine.LandlockABI() < confine.ScopesABI {
		notes = append(notes, "This kernel does not keep commands from sending signals to the owner's other programs, dodo among them.")
	}
	return pl, notes, nil
}
