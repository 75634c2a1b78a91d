package sandbox

import (
	"context"
	"os"
	"slices"

	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/confine"
)

// Probe tries the levels once, by building the walls of each until one holds, and remembers
// what it found.
func (b *Box) Probe(ctx context.Context) Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report != nil {
		return *b.report
	}
	r := Report{Best: None, Reasons: map[Isolation]string{}, Root: os.Geteuid() == 0, Landlock: confine.LandlockABI()}
	for _, level := range []Isolation{Full, Bwrap, Reduced} {
		if b.only != "" && level != b.only {
			r.Reasons[level] = "taken away"
			continue
		}
		if err := b.try(ctx, level, ""); err != nil {
			if ctx.Err() != nil {
				return r // it says nothing about the machine
			}
			r.Reasons[level] = err.Error()
			continue
		}
		r.Best = level
		break
	}
	if r.Best != None {
		b.groups, r.Ungrouped = b.tryGroups(ctx, r.Best)
	}
	b.report = &r
	return r
}

// tryGroups finds where groups can be made by making one. why says why there are none.
func (b *Box) tryGroups(ctx context.Context, level Isolation) (parent, why string) {
	own, err := ownGroup()
	if err == nil {
		parent, err = groupParent(own, groupRoots)
	}
	if err == nil {
		err = b.try(ctx, level, parent)
	}
	if err != nil {
		return "", err.Error()
	}
	return parent, ""
}

// try builds the walls of a level with nothing inside.
func (b *Box) try(ctx context.Context, level Isolation, groups string) error {
	p := b.outline(level, true)
	p.group = groups
	p.Run = []string{"/usr"}
	if level != Reduced {
		p.Outside = walls.Outside()
		p.Mounts, p.Links = system()
		p.Run, p.Write, p.Devices = []string{"/"}, []string{"/tmp"}, slices.Clone(devices)
		sortMounts(p.Mounts)
	}
	wrap := b.wrap(p)
	if level == Bwrap && wrap == nil {
		return errNoBwrap
	}
	w, err := b.begin(p, wrap, streams{})
	if err != nil {
		return err
	}
	process, err := w.run(ctx, p)
	if err != nil {
		return err
	}
	w.follow(process, func() []string { return nil })
	return nil
}
