package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// built is the program as users have it: where processes are killed, counted or
// confined, the test binary will not do.
var built = testenv.Program{Package: "."}

// Programs that only tests have: the program with a command that tries what it must not
// do, a stand-in for older kernels, and a look at the loopback interface.
var (
	probing   = testenv.Program{Package: ".", Tags: "mooncite_probe"}
	oldkernel = testenv.Program{Package: "../internal/confine/testdata/oldkernel"}
	loopback  = testenv.Program{Package: "./testdata/lo"}
)

func TestMain(m *testing.M) { testscript.Main(tidy{m}, nil) }

// tidy removes the built program when the tests are done.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	defer func() {
		built.Remove()
		probing.Remove()
		oldkernel.Remove()
		loopback.Remove()
		os.RemoveAll(big.home)
	}()
	return m.M.Run()
}

// commandLimit bounds every command of a test.
const commandLimit = time.Minute

// A world is a home with the built program.
type world struct {
	*testenv.Home
	t    testing.TB
	path string
	wrap []string // a command that runs the program as the world's user; nil is this one
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Home: testenv.NewHome(t), t: t, path: built.Path(t)}
	for _, name := range clientCommands {
		w.Set(name, "/nowhere")
	}
	return w
}

// clientCommands name the programs of the clients; those of the machine are never started,
// unless a test says so.
var clientCommands = []string{"MOONCITE_PI_COMMAND", "MOONCITE_OMP_COMMAND", "MOONCITE_CODEX_COMMAND", "MOONCITE_CLAUDE_COMMAND"}

// sampleWorld is a world with the sample histories.
func sampleWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	if err := os.CopyFS(w.Dir, os.DirFS("../samples/home")); err != nil {
		t.Fatal(err)
	}
	return w
}

// state is where the program keeps its index.
func (w *world) state() string { return w.Path(".local/state/mooncite") }

// ran is what a command did.
type ran struct {
	status         int
	stdout, stderr string
}

// line is how the program is run.
func (w *world) line(args ...string) []string {
	return append(append(slices.Clone(w.wrap), w.path), args...)
}

// command is the program with arguments, not started yet.
func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	line := w.line(args...)
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Env, c.Dir = w.Environ(), w.Dir
	return c
}

// run runs the program to its end.
func (w *world) run(args ...string) ran {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), commandLimit)
	defer cancel()
	return finish(w.t, w.command(ctx, args...))
}

func finish(t testing.TB, c *exec.Cmd) ran {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs the program and wants an exit status.
func (w *world) must(status int, args ...string) ran {
	w.t.Helper()
	r := w.run(args...)
	if r.status != status {
		w.t.Fatalf("mooncite %q: status %d, want %d\n%s%s", args, r.status, status, r.stdout, r.stderr)
	}
	return r
}

func decode[T any](t testing.TB, data string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%v in %.500s", err, data)
	}
	return v
}

// recall asks on the command line; the exit status is not looked at.
func (w *world) recall(query string) engine.RecallOut {
	w.t.Helper()
	r := w.run("recall", "--json", "--limit", "20", "--", query)
	if r.stdout == "" {
		w.t.Fatalf("recall %q: status %d, %s", query, r.status, r.stderr)
	}
	return decode[engine.RecallOut](w.t, r.stdout)
}

// finds wants a recall to have a candidate whose excerpt holds the query.
func (w *world) finds(query string) engine.Candidate {
	w.t.Helper()
	out := w.recall(query)
	c, ok := holding(out, query)
	if !ok {
		w.t.Fatalf("%q is not found: %s", query, out.Text())
	}
	return c
}

func holding(out engine.RecallOut, text string) (engine.Candidate, bool) {
	for _, c := range out.Candidates {
		if strings.Contains(c.Excerpt, text) {
			return c, true
		}
	}
	return engine.Candidate{}, false
}

func (w *world) status() engine.StatusOut {
	w.t.Helper()
	return decode[engine.StatusOut](w.t, w.run("status", "--json").stdout)
}

// A chat is one invented session file.
type chat struct {
	origin  evidence.Origin
	session string
	rel     string // in the home
	turns   int
}

// chats have one session of each origin whose files grow by lines.
func chats() []*chat {
	return []*chat{
		{origin: evidence.Pi, session: "01a15a1c-cf80-785b-842e-1702877c0001", rel: ".pi/agent/sessions/--srv-lantern--/2026-10-20T16-20-00-000Z_01a15a1c-cf80-785b-842e-1702877c0001.jsonl"},
		{origin: evidence.OMP, session: "01a1aa9d-54c0-7e1b-8771-ff6831260002", rel: ".omp/agent/sessions/-srv-lantern/2026-11-05T07-30-00-000Z_01a1aa9d-54c0-7e1b-8771-ff6831260002.jsonl"},
		{origin: evidence.Claude, session: "ef070e01-e148-4182-8c76-e5995c050003", rel: ".claude/projects/-srv-lantern/ef070e01-e148-4182-8c76-e5995c050003.jsonl"},
		{origin: evidence.Codex, session: "01a139a6-1c70-73b0-88c4-b678cc6a0004", rel: ".codex/sessions/2026/10/14/rollout-2026-10-14T11-02-30-01a139a6-1c70-73b0-88c4-b678cc6a0004.jsonl"},
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(b)
}

func (c *chat) id(turn int) string {
	if c.origin == evidence.Claude {
		return fmt.Sprintf("6e02e3d0-14a0-4029-9aad-%012x", turn)
	}
	return fmt.Sprintf("%08x", 0xb0000000+turn)
}

// turn is the next record, in which the person says text; the first one comes with
// the head of the file.
func (c *chat) turn(text string) string {
	at := time.Date(2026, 10, 20, 16, 20, c.turns, 0, time.UTC)
	stamp := at.Format("2006-01-02T15:04:05.000Z")
	parent := "null"
	if c.turns > 0 {
		parent = quoted(c.id(c.turns - 1))
	}
	id := c.id(c.turns)
	head := ""
	c.turns++
	switch c.origin {
	case evidence.Claude:
		return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/srv/lantern","sessionId":%q,"version":"2.1.332","type":"user","message":{"role":"user","content":%s},"uuid":%q,"timestamp":%q}`+"\n",
			parent, c.session, quoted(text), id, stamp)
	case evidence.Codex:
		if c.turns == 1 {
			head = fmt.Sprintf(`{"timestamp":%q,"type":"session_meta","payload":{"id":%q,"timestamp":%q,"cwd":"/srv/lantern","originator":"codex_cli_rs","cli_version":"0.36.0"}}`+"\n", stamp, c.session, stamp)
		}
		return head + fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":"user_message","message":%s,"kind":"plain"}}`+"\n", stamp, quoted(text))
	}
	if c.turns == 1 {
		head = fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/srv/lantern"}`+"\n", c.session, stamp)
	}
	return head + fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":%q,"message":{"role":"user","content":[{"type":"text","text":%s}],"timestamp":%d}}`+"\n",
		id, parent, stamp, quoted(text), at.UnixMilli())
}

// start writes the chat's file anew with these turns.
func (w *world) start(c *chat, texts ...string) {
	w.t.Helper()
	c.turns = 0
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(c.turn(text))
	}
	w.Write(w.t, c.rel, b.String())
}

// add appends raw bytes to a file of the home.
func (w *world) add(rel, raw string) {
	w.t.Helper()
	f, err := os.OpenFile(w.Path(rel), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(raw)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// stateFiles names what is in the state directory.
func (w *world) stateFiles() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.state())
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// evidenceIDs are the ids of everything that some common words find, by their text.
func (w *world) evidenceIDs(queries ...string) map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	for _, q := range queries {
		for _, c := range w.recall(q).Candidates {
			ids[c.EvidenceID] = c.Excerpt
		}
	}
	return ids
}
