package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"localmcp/dodo/internal/ground/walls"
)

// empty adds what looks empty though it is no secret, and says so: directories that could not
// be looked through, and git directories that are too many to be guarded.
func (p *Place) empty(pl *plan, kept Kept, readOnly bool) (notes []string, err error) {
	secrets := len(pl.Covers)
	for _, list := range []struct {
		paths []string
		why   string
		not   bool
	}{
		{kept.Closed, "look empty to the command, because the server cannot look through them (their permissions, their depth): %s.", false},
		{kept.beyond, "look empty to the command, because more than " + strconv.Itoa(mostRepositories) + " git directories cannot be guarded: %s.", readOnly},
	} {
		if list.not || len(list.paths) == 0 {
			continue
		}
		if pl.Covers, err = p.cover(pl.Covers, slices.Clone(list.paths)); err != nil {
			return nil, err
		}
		notes = append(notes, fmt.Sprintf("%d directories of the workspace "+list.why, len(list.paths), p.names(list.paths)))
	}
	found := sockets(pl.Mounts)
	before := len(pl.Covers)
	if pl.Covers, err = p.cover(pl.Covers, slices.Clone(found)); err != nil {
		return nil, err
	}
	if n := len(pl.Covers) - before; n > 0 {
		notes = append(notes, fmt.Sprintf("%d sockets in directories that commands may read look like empty files: %s.", n, p.names(found)))
	}
	pl.emptied = len(pl.Covers) - secrets
	return notes, nil
}

// mostNamed are the paths that a note names.
const mostNamed = 5

// names are paths for a reader.
func (p *Place) names(paths []string) string {
	var list []string
	for i, path := range paths {
		if i == mostNamed {
			list = append(list, fmt.Sprintf("and %d more", len(paths)-i))
			break
		}
		list = append(list, p.named(path))
	}
	return strings.Join(list, ", ")
}

// named is a path below the root as plain text, its end alone when it is long.
func (p *Place) named(path string) string {
	rel := path
	if walls.Within(p.root, path) && path != p.root {
		rel = path[len(p.root)+1:]
	}
	if len(rel) > 200 {
		rel = "..." + rel[len(rel)-200:]
	}
	return strconv.QuoteToASCII(rel)
}
