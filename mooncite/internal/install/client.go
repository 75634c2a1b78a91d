package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// State is how a client's registration stands.
type State string

// The states. Exact starts the installed program and nothing else; Missing: the client
// knows no server of the name; Conflict: it knows another; Unavailable: the client is not
// there or does not say.
const (
	Exact       State = "exact"
	Missing     State = "missing"
	Conflict    State = "conflict"
	Unavailable State = "unavailable"
)

// A Finding is a client's state, with what is behind it.
//
// A registration of ours that is switched off in the client is a Conflict too: it starts
// nothing. It may be taken out as an exact one, and hinders no install.
type Finding struct {
	Client string `json:"client"` // pi, omp, codex or claudeCode
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"` // one sentence for the owner, for Conflict and Unavailable
	Remedy string `json:"remedy,omitempty"`
	title  string
	absent bool // the client's command is not there
	off    bool // ours, and switched off
}

// removable reports whether a client has a registration of ours.
func (f Finding) removable() bool { return f.State == Exact || f.off }

// A client registers a server by its own commands.
type client interface {
	name() string  // as results call it
	title() string // as people do
	probe(context.Context) Finding
	announce(*record) // notes what add is about to make
	add(context.Context) error
	remove(context.Context, *record) error
	resume(context.Context, *record) error // ends what a killed add or remove left half done
	// left looks into the client's own files, for when its command is gone: what to delete
	// there by hand, and in which file; "" when there is nothing of ours.
	left() (what, file string)
}

// clients are all four, in the order in which they are registered.
func (p Places) clients(env map[string]string, progress func(string)) []client {
	run := commands{env}
	return []client{
		&pi{base{run, p, progress, piName, "Pi", "pi", "MOONCITE_PI_COMMAND", "pi list"}},
		&omp{base{run, p, progress, "omp", "OMP", "omp", "MOONCITE_OMP_COMMAND", "omp plugin list"}},
		&codex{base{run, p, progress, "codex", "Codex", "codex", "MOONCITE_CODEX_COMMAND", "codex mcp list"}},
		&claude{base{run, p, progress, "claudeCode", "Claude Code", "claude", "MOONCITE_CLAUDE_COMMAND", "claude mcp list"}},
	}
}

// base is what the clients have in common.
type base struct {
	run      commands
	places   Places
	progress func(string)
	id       string
	label    string
	command  string
	env      string // of the override
	listing  string // what to try in a terminal: it reads what is asked for here
}

func (b *base) name() string  { return b.id }
func (b *base) title() string { return b.label }

func (b *base) announce(r *record) { r.add(b.id) }

// resume has nothing to do for a client whose file is its own matter.
func (b *base) resume(context.Context, *record) error { return nil }

func (b *base) finding(s State, detail, remedy string) Finding {
	return Finding{Client: b.id, State: s, Detail: evidence.Visible(detail), Remedy: evidence.Visible(remedy), title: b.label}
}

// do runs the client.
func (b *base) do(ctx context.Context, args ...string) (output, error) {
	return b.doWith(ctx, "", args...)
}

func (b *base) doWith(ctx context.Context, path string, args ...string) (output, error) {
	program, err := b.run.find(b.command, b.env)
	if err != nil {
		return output{}, err
	}
	return b.run.run(ctx, path, program, args...)
}

// silent is the finding about a client that does not answer.
func (b *base) silent(o output, err error) Finding {
	switch {
	case errors.Is(err, errAbsent):
		f := b.finding(Unavailable, "the command "+b.command+" is not on the PATH", "if it is elsewhere, set "+b.env+" to its path")
		f.absent = true
		return f
	case err != nil:
		return b.finding(Unavailable, why(err), "try `"+b.listing+"` in a terminal")
	}
	return b.finding(Unavailable, b.command+" says: "+o.said(), "try `"+b.listing+"` in a terminal")
}

// switchedOff is the finding about a registration of ours that the client does not start.
func (b *base) switchedOff(detail, remedy string) Finding {
	f := b.finding(Conflict, detail, remedy)
	f.off = true
	return f
}

// why says in one line what kept a command from being run to its end.
func why(err error) string {
	for _, known := range []error{errAbsent, errSilent, errLoud} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// change runs a command that changes the client's configuration.
func (b *base) change(ctx context.Context, path string, args ...string) error {
	o, err := b.doWith(ctx, path, args...)
	if err != nil {
		return b.failed(why(err), err)
	}
	if o.status != 0 {
		return b.failed(b.command+" says: "+o.said(), nil)
	}
	return nil
}

func (b *base) failed(detail string, cause error) error {
	return fault.Wrap(evidence.CodeClient, cause, "%s did not change its configuration: %s", b.label, evidence.Visible(detail)).
		WithHint("see whether `%s` works in a terminal, then try again", b.listing)
}

// dir is a directory of the client: by its variable, else below the user's home.
func (b *base) dir(variable, otherwise string) string {
	if v := b.run.env[variable]; v != "" {
		if rest, ok := strings.CutPrefix(v, "~/"); ok {
			v = filepath.Join(b.places.home, rest)
		}
		return filepath.Clean(v)
	}
	return filepath.Join(b.places.home, otherwise)
}

// probeAll asks all clients at once.
func probeAll(ctx context.Context, list []client) []Finding {
	out := make([]Finding, len(list))
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() { out[i] = c.probe(ctx) })
	}
	all.Wait()
	return out
}

// maxForeign bounds the files of clients that are read, in bytes. Claude Code's grows with
// the projects.
const maxForeign = 64 << 20

// unread is what to delete in a file of which that cannot be said.
const unread = "what is of mooncite"

// readSmall decodes a file of a client; a missing one, and one of white space, is empty.
func readSmall(name string, v any) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxForeign))
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	return json.Unmarshal(data, v)
}
