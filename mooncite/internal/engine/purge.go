package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

// engineLock is held shared by every open engine, and alone by a purge.
const engineLock = "engine.lock"

// stateNames are the names that mooncite's files have in its state directory, those of
// learned memory too; a temporary file is one of them between ".", and a word and ".tmp".
var (
	stateNames = regexp.MustCompile(`^(\.mooncite-state|registrations\.json|forgotten\.json|current|(writer|engine|learned-memory)\.lock|` +
		`((index|build)-[0-9]+|learned-memory)\.sqlite(-wal|-shm|-journal)?)$`)
	stateTemps = regexp.MustCompile(`^\.(.+)\.[0-9a-f]{16}\.tmp$`)
)

// PurgePlan is what a purge would remove.
type PurgePlan struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // names in Dir; none when there is no state
}

// Text says what would happen.
func (p PurgePlan) Text() string {
	return fmt.Sprintf("This removes everything mooncite keeps in %s: %d files, among them the text of histories that are gone, the list of what was forgotten, and learned memory.",
		evidence.Visible(p.Dir), len(p.Files))
}

// PurgeOut says what was removed.
type PurgeOut struct {
	Outcome string   `json:"outcome"` // "purged"
	Dir     string   `json:"dir"`
	Files   []string `json:"files"`
}

// Text is the result in words.
func (o PurgeOut) Text() string {
	if len(o.Files) == 0 {
		return "There is nothing to remove.\n"
	}
	return fmt.Sprintf("Removed %d files and %s. Histories and settings are as they were.\n", len(o.Files), evidence.Visible(o.Dir))
}

// PlanPurge looks at the state directory. One that is not mooncite's, or holds anything
// that mooncite did not make, is refused.
func PlanPurge(places source.Places) (PurgePlan, error) {
	p := PurgePlan{Dir: places.StateDir, Files: []string{}}
	dir, err := privdir.Open(places.StateDir, "the state directory", markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer dir.Close()
	p.Files, err = purgeable(dir)
	return p, err
}

// purgeable names what is in the state directory, the marker last.
func purgeable(dir *safefile.Root) ([]string, error) {
	entries, _, err := dir.ReadDir(".")
	if err != nil {
		return nil, fault.Wrap(evidence.CodeState, err, "the state directory cannot be read").WithHint("look at its permissions")
	}
	if len(entries) == 0 {
		return []string{}, nil
	}
	f, _, err := dir.Open(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, foreignState()
	}
	if err != nil {
		return nil, unreadableMarker(err)
	}
	defer f.Close()
	if err := checkMarker(f); err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name
		if m := stateTemps.FindStringSubmatch(name); m != nil {
			name = m[1]
		}
		if !stateNames.MatchString(name) {
			return nil, fault.New(evidence.CodeState, "the state directory holds something that mooncite did not make: %s", evidence.Visible(e.Name)).
				WithHint("move it away and try again; nothing was removed")
		}
		if err := privdir.CheckFile(dir, e.Name, "a file of the state directory"); err != nil {
			return nil, err
		}
		if e.Name != markerName {
			names = append(names, e.Name)
		}
	}
	return append(names, markerName), nil
}

// Purge removes the state directory for good: indexes, the list of forgotten text,
// learned memory. It is refused while any engine is open and where [PlanPurge] refuses;
// a purge that was interrupted is ended by the next.
func Purge(places source.Places) (PurgeOut, error) {
	out := PurgeOut{Outcome: "purged", Dir: places.StateDir, Files: []string{}}
	if o, inside := places.Inside(places.StateDir); inside {
		return out, fault.New(evidence.CodeState, "the state directory lies inside the histories of %s, from which nothing is removed", o).
			WithHint("correct MOONCITE_STATE_DIR")
	}
	plan, err := PlanPurge(places)
	if err != nil || len(plan.Files) == 0 {
		if err == nil {
			_ = os.Remove(places.StateDir) // it may be there, empty
		}
		return out, err
	}
	dir, err := privdir.Open(places.StateDir, "the state directory", markerName)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	locks := []string{engineLock, "writer.lock", "learned-memory.lock"}
	for _, name := range locks {
		held, err := privdir.TryLock(filepath.Join(places.StateDir, name))
		if errors.Is(err, privdir.Busy) {
			return out, fault.Wrap(privdir.Busy, err, "mooncite is at work with this state, perhaps for a client").
				WithHint("end the clients that use mooncite and try again; nothing was removed")
		}
		if err != nil {
			return out, err
		}
		defer held.Unlock()
	}
	names, err := purgeable(dir)
	if err != nil {
		return out, err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(places.StateDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, fault.Wrap(evidence.CodeState, err, "the state directory cannot be removed as a whole").WithHint("look at its permissions and try again")
		}
		if !slices.Contains(locks, name) || slices.Contains(plan.Files, name) { // else it was made just now, to be held
			out.Files = append(out.Files, name)
		}
	}
	_ = os.Remove(places.StateDir) // unless a client has just begun anew
	return out, nil
}

// beingPurged says what a lock that is taken means.
func beingPurged(err error) error {
	if errors.Is(err, privdir.Busy) {
		return fault.Wrap(privdir.Busy, err, "the state directory is being removed by `mooncite purge`").WithHint("wait until that is done and try again")
	}
	return err
}
