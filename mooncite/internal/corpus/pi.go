package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tree is a Pi or OMP session being written: entries with parents in one file.
type tree struct {
	g       *generator
	parent  string
	history []string
	id      uint32 // of the last entry
}

func (g *generator) tree() *tree { return &tree{g: g, id: g.r.Uint32()} }

// entry begins the next entry; its own fields and one brace follow.
func (t *tree) entry(kind string) *record {
	t.g.step()
	t.id += 0x9e3779b1 // odd, so no id comes twice in a file
	id := fmt.Sprintf("%08x", t.id)
	piHead(t.g.rec.reset(), kind, id, t.parent, t.g.now)
	t.parent = id
	t.history = append(t.history, id)
	return &t.g.rec
}

// piHead begins an entry.
func piHead(o *record, kind, id, parent string, at time.Time) *record {
	return o.raw(`{"type":`).str(kind).raw(`,"id":`).str(id).raw(`,"parentId":`).ref(parent).raw(`,"timestamp":`).str(iso(at))
}

// piUser is the rest of an entry that holds typed text.
func piUser(o *record, said []byte, at time.Time) *record {
	return o.raw(`,"message":{"role":"user","content":[{"type":"text","text":`).text(said).raw(`}],"timestamp":`).num(int(at.UnixMilli())).raw(`}}`)
}

// pi writes one Pi session, now and then with a compaction or another branch.
func (g *generator) pi(start time.Time, size int64) error {
	cwd, session := pick(g.r, g.words.projects), g.uuid()
	if err := g.open(".pi/agent/sessions/" + bucket(cwd) + "/" + fileTime(start) + "-000Z_" + session + ".jsonl"); err != nil {
		return err
	}
	g.now = start
	g.out.line(g.rec.reset().raw(`{"type":"session","version":3,"id":`).str(session).raw(`,"timestamp":`).str(iso(start)).raw(`,"cwd":`).str(cwd).raw(`}`))
	t := g.tree()
	g.out.line(t.entry("model_change").raw(`,"provider":"p","modelId":"m"}`))
	for g.out.bytes < size {
		t.turn()
	}
	return g.shut()
}

// turn writes a prompt, some tool calls and an answer.
func (t *tree) turn() {
	g := t.g
	g.out.line(piUser(t.entry("message"), g.prose(between(g.r, 40, 500), " "), g.now))
	for range between(g.r, 1, 6) {
		call := "call_" + g.hex(16)
		o := t.entry("message").raw(`,"message":{"role":"assistant","content":[{"type":"thinking","thinking":`).text(g.filler(200, " "))
		o.raw(`},{"type":"text","text":`).text(g.prose(between(g.r, 40, 400), " "))
		o.raw(`},{"type":"toolCall","id":`).str(call).raw(`,"name":"bash","arguments":{"command":`).str(g.command(140))
		g.out.line(o.raw(`}}],"provider":"p","model":"m","usage":{"input":1,"output":1}}}`))
		o = t.entry("message").raw(`,"message":{"role":"toolResult","toolCallId":`).str(call).raw(`,"toolName":"bash","content":[{"type":"text","text":`)
		g.out.line(o.text(g.dump(logNormal(g.r, 7.3, 1.1))).raw(`}],"isError":false}}`))
	}
	g.out.line(t.entry("message").raw(`,"message":{"role":"assistant","content":[{"type":"text","text":`).text(g.prose(between(g.r, 200, 2200), "\n\n")).raw(`}]}}`))
	if g.r.Float64() < .01 {
		kept := t.history[max(0, len(t.history)-6)]
		o := t.entry("compaction").raw(`,"summary":`).text(g.filler(1500, "\n"))
		g.out.line(o.raw(`,"firstKeptEntryId":`).str(kept).raw(`,"tokensBefore":90000}`))
	}
	if g.r.Float64() < .01 && len(t.history) > 12 {
		t.parent = t.history[len(t.history)-9]
	}
}

// titleBytes is the fixed length of OMP's first line, its line feed included: the
// client rewrites it in place.
const titleBytes = 256

func (g *generator) ompHead(session, cwd, parentSession string) {
	title := strings.TrimRight(cut(pick(g.r, g.words.sentences), 50), ".?:")
	o := g.rec.reset().raw(`{"type":"title","v":1,"title":`).str(title).raw(`,"source":"auto","pad":"`)
	for len(o.b) < titleBytes-3 {
		o.b = append(o.b, ' ')
	}
	g.out.line(o.raw(`"}`))
	o = g.rec.reset().raw(`{"type":"session","version":3,"id":`).str(session).raw(`,"timestamp":`).str(iso(g.now)).raw(`,"cwd":`).str(cwd)
	if parentSession != "" {
		o.raw(`,"parentSession":`).str(parentSession)
	}
	g.out.line(o.raw(`,"title":`).str(title).raw(`,"titleSource":"auto"}`))
}

// omp writes one OMP session: a title line, the header, messages, and in every
// third session a sub-agent's transcript in a folder beside the file.
func (g *generator) omp(start time.Time, size int64) error {
	cwd, session := pick(g.r, g.words.projects), g.uuid()
	stem := ".omp/agent/sessions/" + bucket(cwd) + "/" + fileTime(start) + "-000Z_" + session
	sub := g.r.Float64() < 1./3
	if sub {
		size -= size / 8
	}
	g.now = start
	if err := g.open(stem + ".jsonl"); err != nil {
		return err
	}
	g.ompHead(session, cwd, "")
	t := g.tree()
	g.out.line(t.entry("model_change").raw(`,"model":"p/m"}`))
	for g.out.bytes < size {
		t.turn()
	}
	if err := g.shut(); err != nil || !sub {
		return err
	}
	name := fmt.Sprintf("%d-Scout", between(g.r, 0, 9))
	if err := g.open(stem + "/" + name + ".jsonl"); err != nil {
		return err
	}
	g.ompHead(g.uuid(), cwd, session)
	t = g.tree()
	g.out.line(t.entry("session_init").raw(`,"systemPrompt":`).text(g.filler(600, " ")).raw(`,"task":`).str(pick(g.r, g.words.sentences)).raw(`}`))
	for g.out.bytes < size/8 {
		t.turn()
	}
	if err := g.shut(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.home, filepath.FromSlash(stem), name+".md"), []byte(pick(g.r, g.words.sentences)+"\n"), 0o600)
}

// bucket is the name of a working directory's folder.
func bucket(cwd string) string {
	return "--" + strings.ReplaceAll(strings.Trim(cwd, "/"), "/", "-") + "--"
}
