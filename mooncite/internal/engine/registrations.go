package engine

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

// Registrations are the states of the four client registrations when the command line
// last asked the clients. An engine never asks them: it starts no program.
type Registrations struct {
	Pi         string  `json:"pi" enum:"exact|missing|conflict|unavailable"`
	OMP        string  `json:"omp" enum:"exact|missing|conflict|unavailable"`
	Codex      string  `json:"codex" enum:"exact|missing|conflict|unavailable"`
	ClaudeCode string  `json:"claudeCode" enum:"exact|missing|conflict|unavailable"`
	ProbedAt   *string `json:"probedAt" doc:"When the mooncite command last asked the clients; null when it never did."`
}

const (
	registrationsName  = "registrations.json"
	registrationsBytes = 64 << 10
)

var registrationStates = []string{"exact", "missing", "conflict", Unavailable}

type registrationsFile struct {
	Version int `json:"version"`
	Registrations
}

// unprobed is what is known before the clients were ever asked.
func unprobed() Registrations {
	return Registrations{Unavailable, Unavailable, Unavailable, Unavailable, nil}
}

// SaveRegistrations keeps what the clients answered, and when, for every status to come.
// The state directory is made if needed, and refused when it is another program's.
func SaveRegistrations(places source.Places, r Registrations, at time.Time) error {
	if err := Prepare(places); err != nil {
		return err
	}
	dir, err := privdir.Open(places.StateDir, "the state directory")
	if err != nil {
		return err
	}
	defer dir.Close()
	r.ProbedAt = stamp(at.UnixMilli())
	data, err := json.MarshalIndent(registrationsFile{1, r}, "", "  ")
	if err != nil {
		return err
	}
	if err := dir.WriteFileAtomic(registrationsName, append(data, '\n'), 0o600); err != nil {
		return fault.Wrap(evidence.CodeState, err, "the state directory cannot be written").WithHint("look at the space and the permissions of the disk it is on")
	}
	return nil
}

// Present reports whether there is a state directory.
func Present(places source.Places) bool {
	_, err := os.Lstat(places.StateDir)
	return err == nil
}

// registrations reads what was saved. A file that cannot be read says nothing.
func registrations(dir *safefile.Root) Registrations {
	f, _, err := dir.Open(registrationsName)
	if err != nil {
		return unprobed()
	}
	defer f.Close()
	var saved registrationsFile
	data, err := io.ReadAll(io.LimitReader(f, registrationsBytes))
	if err != nil || json.Unmarshal(data, &saved) != nil || saved.Version != 1 || saved.ProbedAt == nil {
		return unprobed()
	}
	if _, err := time.Parse(time.RFC3339, *saved.ProbedAt); err != nil {
		return unprobed()
	}
	r := saved.Registrations
	for _, state := range []string{r.Pi, r.OMP, r.Codex, r.ClaudeCode} {
		if !slices.Contains(registrationStates, state) {
			return unprobed()
		}
	}
	return r
}
