package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/fault"
)

// A command can move what is above a secret path, although it cannot see or move the secret
// itself. While another one is being started it could so keep the secret out of the way of
// whoever looks for it. Therefore what is hidden from commands that run is remembered, and
// must be hidden from the next one too, as long as it has its name.

// hold remembers what is hidden from a command that is being started, until release.
func (p *Place) hold(covers []walls.Cover) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hidden := map[walls.Identity]bool{}
	for _, c := range covers {
		hidden[c.ID] = true
	}
	for c, f := range p.held {
		if !hidden[c.ID] && isThere(c, f) {
			return nil, fault.New(contract.Conflict, "secret paths of the workspace were moved while a command runs").
				WithHint("nothing was run; try again, or when the commands that run have ended").Retry()
		}
	}
	var mine []*walls.Cover
	for _, c := range covers {
		fd, err := walls.Unlinked(c.Path)
		if err != nil {
			continue // which the helper finds
		}
		f := os.NewFile(uintptr(fd), "secret")
		if id, err := walls.IdentityAt(fd); err != nil || id != c.ID {
			f.Close()
			continue
		}
		if p.held == nil {
			p.held = map[*walls.Cover]*os.File{}
		}
		mine = append(mine, &c)
		p.held[&c] = f
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range mine {
			p.held[c].Close()
			delete(p.held, c)
		}
	}, nil
}

// isThere reports whether a secret is still in the workspace under its own name: one that
// the owner renamed or removed is none of this.
func isThere(c *walls.Cover, f *os.File) bool {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return err == nil && !strings.HasSuffix(name, " (deleted)") && filepath.Base(name) == filepath.Base(c.Path)
}
