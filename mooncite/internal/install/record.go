package install

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// A record says what mooncite made outside its own directory, and which versions its
// package may be. It is written before that is made and after it is removed, so that a
// crash leaves more in it than there is, never less.
type record struct {
	Version  int      `json:"version"`          // of this format
	Package  string   `json:"package"`          // the version in force, "" before the first
	Next     string   `json:"next"`             // the version that is being put in force, or ""
	Launcher bool     `json:"launcher"`         // the launcher is ours
	Clients  []string `json:"clients"`          // whose registrations are ours, sorted
	PiList   bool     `json:"piList,omitempty"` // Pi's settings had no list of packages before
}

const (
	recordVersion = 1
	maxSmall      = 1 << 20 // bytes of a record or manifest
)

func (r *record) owns(client string) bool { return slices.Contains(r.Clients, client) }

func (r *record) add(client string) {
	if !r.owns(client) {
		r.Clients = append(r.Clients, client)
		slices.Sort(r.Clients)
	}
}

func (r *record) drop(client string) {
	r.Clients = slices.DeleteFunc(r.Clients, func(c string) bool { return c == client })
	r.PiList = r.PiList && client != piName
}

// names reports whether the record knows a version.
func (r *record) names(version string) bool {
	return version != "" && (version == r.Package || version == r.Next)
}

// readRecord gives an empty one where there is none.
func readRecord(dir *safefile.Root) (*record, error) {
	r := &record{Version: recordVersion, Clients: []string{}}
	err := readJSON(dir, recordName, r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && r.Version != recordVersion {
		err = errors.New("a version this program does not know")
	}
	if err != nil {
		return nil, fault.Wrap(evidence.CodeInstall, err, "the record of the installation (%s) cannot be read or is damaged", recordName).
			WithHint("move it and the directory %s beside it away; then `mooncite install` makes both anew", packageName)
	}
	return r, nil
}

func writeRecord(dir *safefile.Root, r *record) error {
	if err := dir.WriteFileAtomic(recordName, indented(r), 0o600); err != nil {
		return fault.Wrap(evidence.CodeInstall, err, "the record of the installation cannot be written").
			WithHint("look at the space and the permissions of the disk it is on")
	}
	return nil
}

func readJSON(dir *safefile.Root, name string, v any) error {
	f, _, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err != nil {
		return err
	}
	if len(data) > maxSmall {
		return errors.New("too large")
	}
	return json.Unmarshal(data, v)
}
