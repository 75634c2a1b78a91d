package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
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
	if s.Mode == Off {
		return startPlain(s)
	}
	level, err := p.box.level(ctx, s.Mode)
	if err != nil {
		return nil, err
	}
	if p.root == "/" {
		return nil, fault.New(contract.NotSupported, "commands cannot be confined to a workspace that is the whole file system").
			WithHint("the owner chooses the directory of a project")
	}
	kept, err := p.keeps(ctx)
	if err != nil {
		return nil, err
	}
	pl, notes, err := p.plan(level, s, kept)
	if err != nil {
		return nil, err
	}
	pl.group = p.box.groups
	var before fingerprint
	if !s.ReadOnly {
		before = fingerprintOf(p.root, kept.Git)
	}
	w, process, err := p.box.launch(ctx, pl, p.box.wrap(pl), streams{s.Stdin, s.Stdout, s.Stderr})
	if err != nil {
		return nil, failed(err)
	}
	process.Notes, process.Hidden = notes, len(pl.Covers)
	go w.follow(process, func() []string { return p.told(s, before) })
	return process, nil
}

// keeps asks what the workspace keeps from commands.
func (p *Place) keeps(ctx context.Context) (Kept, error) {
	if p.kept == nil {
		return Kept{}, nil
	}
	return p.kept(ctx)
}

// told is what became of the control files while a command ran.
func (p *Place) told(s Spec, before fingerprint) []string {
	if s.ReadOnly {
		return nil
	}
	kept, err := p.keeps(context.Background())
	if err != nil {
		return []string{"it could not be seen which files that other programs obey the command changed"}
	}
	return before.changed(p.root, fingerprintOf(p.root, kept.Git))
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

// plan says how the walls of a command are built.
func (p *Place) plan(level Isolation, s Spec, kept Kept) (pl plan, notes []string, err error) {
	pl = plan{Skip: s.skip, Level: level, Args: s.Args, Dir: s.Dir, Env: lastOnly(s.Env), Size: s.Terminal, NoSetID: os.Geteuid() == 0, Limits: limits(level == Reduced)}
	pl.Covers = slices.Clone(kept.Secrets)
	if err := os.MkdirAll(p.cache, 0o700); err != nil {
		return pl, nil, fault.Wrap(contract.InternalError, err, "the directory for the caches of commands cannot be made")
	}
	if level == Reduced {
		return p.planReduced(pl, s)
	}
	if level == Bwrap {
		pl.empty = p.cache + ".empty"
		if err := os.WriteFile(pl.empty, nil, 0o400); err != nil && !errors.Is(err, os.ErrPermission) {
			return pl, nil, fault.Wrap(contract.InternalError, err, "the directory for the caches of commands cannot be written")
		}
	}
	pl.Loopback = s.Network != Host
	pl.Proxy = s.Network == Proxy
	home := homeOf(p.root)
	pl.Mounts, pl.Links = system()
	for _, dir := range append(tools(p.path(), p.box.o.Home), p.box.o.Read...) {
		if !within(p.root, dir) && !within(dir, p.root) && !p.box.hides(dir) {
			pl.Mounts = append(pl.Mounts, mount{From: dir, To: dir, Optional: true})
		}
	}
	pl.Mounts = append(pl.Mounts, mount{From: p.cache, To: home, Write: true})
	for _, script := range s.Scripts {
		pl.Mounts = append(pl.Mounts, mount{From: script, To: script})
	}
	for _, path := range s.Read {
		pl.Mounts = append(pl.Mounts, mount{From: path, To: path, Optional: true})
	}
	for _, path := range s.Write {
		pl.Mounts = append(pl.Mounts, mount{From: path, To: path, Write: !s.ReadOnly, Optional: true})
	}
	root := mount{From: p.root, To: p.root, Write: !s.ReadOnly}
	sortMounts(pl.Mounts)
	pl.Mounts = append(pl.Mounts, root)
	if !s.ReadOnly {
		pl.Mounts = append(pl.Mounts, guards(slices.Concat(kept.Git, s.Write))...)
	}
	for _, h := range p.box.o.Hidden {
		if within(p.root, h) {
			pl.Covers = append(pl.Covers, h)
		}
	}
	pl.Run = []string{"/"}
	pl.Write = []string{home, "/tmp", "/dev/shm"}
	if !s.ReadOnly {
		pl.Write = append(append(pl.Write, p.root), s.Write...)
	}
	pl.Devices = append(slices.Clone(devices), "/dev/pts", "/dev/ptmx")
	for name, value := range map[string]string{"HOME": home, "TMPDIR": "/tmp"} {
		pl.Env = setenv(pl.Env, name, value)
	}
	return pl, notes, nil
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

// hides reports whether a directory is one that no command may see, or has one in it.
func (b *Box) hides(dir string) bool {
	return slices.ContainsFunc(b.o.Hidden, func(h string) bool { return within(dir, h) || within(h, dir) })
}

// planReduced is for where there are no namespaces: everything has its own path.
func (p *Place) planReduced(pl plan, s Spec) (plan, []string, error) {
	if n := len(pl.Covers); n > 0 {
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
	pl.Run = append(append(append(pl.Run, "/proc"), s.Scripts...), s.Read...)
	pl.Write = []string{p.cache}
	if s.ReadOnly {
		pl.Run = append(append(pl.Run, p.root), s.Write...)
	} else {
		pl.Write = append(append(pl.Write, p.root), s.Write...)
	}
	pl.Devices = append(slices.Clone(devices), "/dev/pts", "/dev/ptmx")
	for name, value := range map[string]string{"HOME": p.cache, "TMPDIR": temp} {
		pl.Env = setenv(pl.Env, name, value)
	}
	var notes []string
	if s.Network != NoNetwork && s.Network != "" {
		notes = []string{"There is no network for commands on this machine: namespaces cannot be made here."}
	}
	return pl, notes, nil
}
