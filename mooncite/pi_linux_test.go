package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
)

// The extension for Pi is checked against Pi's own types.
func TestPiExtensionTypes(t *testing.T) {
	compiler, packages := mcptest.TypeScript(t), mcptest.PiPackages(t)
	dir := extensionAlone(t)
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*commandLimit)
	defer cancel()
	c := exec.CommandContext(ctx, compiler[0], append(compiler[1:], "--noEmit", "--strict", "--noUnusedLocals", "--noUnusedParameters", "--noImplicitReturns",
		"--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2023", "--module", "nodenext", "--types", "node",
		"--erasableSyntaxOnly", "pi/mooncite.ts")...)
	c.Dir = dir
	if r := finish(t, c); r.status != 0 {
		t.Errorf("the compiler says:\n%s%s", r.stdout, r.stderr)
	}
}

// extensionAlone is a package with the extension and nothing else.
func extensionAlone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("internal/install/package/pi/mooncite.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"pi/mooncite.ts": text, "package.json": []byte(`{"name":"mooncite","type":"module"}`)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// counted puts a program into a package that notes each start of mooncite in a file.
func (w *world) counted(dir string) (starts func() int) {
	w.t.Helper()
	log := filepath.Join(dir, "starts")
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\necho $$ >>'%s'\nexec '%s' \"$@\"\n", log, w.path)
	testenv.Executable(w.t, filepath.Join(dir, "bin/mooncite"), []byte(text))
	return func() int {
		data, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		return strings.Count(string(data), "\n")
	}
}

// The real Pi calls two tools of one session, and one server is started.
func TestPiKeepsOneServer(t *testing.T) {
	w := withClients(t)
	m := newModel(t)
	w.Write(t, ".pi/agent/models.json", standIn(m))
	dir := extensionAlone(t)
	starts := w.counted(dir)
	r := w.client("pi", "--no-extensions", "-e", filepath.Join(dir, "pi/mooncite.ts"), "-p", "--provider", "stand-in", "--model", "stand-in", "--no-session", "what was that error?")
	m.asked(t, r)
	if n := starts(); n != 1 {
		t.Errorf("mooncite was started %d times", n)
	}
}

// The extension by itself, with what a session can bring: several calls, a call that is
// wrong, one that is cancelled, a server that dies, the end.
func TestPiExtension(t *testing.T) {
	node := mcptest.Node(t)
	w := sampleWorld(t)
	dir := extensionAlone(t)
	starts := w.counted(dir)
	script := filepath.Join(dir, "session.mjs")
	if err := os.WriteFile(script, []byte(piSession), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	c := exec.CommandContext(ctx, node, script, filepath.Join(dir, "starts"))
	c.Env, c.Dir = w.Environ(), dir
	r := finish(t, c)
	if r.status != 0 || r.stdout != "done\n" {
		t.Fatalf("the session ends with %d\n%s\n%s", r.status, r.stdout, r.stderr)
	}
	if n := starts(); n != 2 { // one, and one after it was killed
		t.Errorf("mooncite was started %d times", n)
	}
}

// Pi goes on without the tools, and says why, when mooncite is not there.
func TestPiExtensionWithoutProgram(t *testing.T) {
	node := mcptest.Node(t)
	w := newWorld(t)
	dir := extensionAlone(t)
	script := filepath.Join(dir, "session.mjs")
	if err := os.WriteFile(script, []byte(piAlone), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	c := exec.CommandContext(ctx, node, script)
	c.Env, c.Dir = w.Environ(), dir
	if r := finish(t, c); r.status != 0 || r.stdout != "mooncite: mooncite could not be started\n" {
		t.Errorf("the session ends with %d\n%s\n%s", r.status, r.stdout, r.stderr)
	}
}

// A server that refuses to start is heard.
func TestPiExtensionSaysWhy(t *testing.T) {
	node := mcptest.Node(t)
	w := newWorld(t)
	dir := extensionAlone(t)
	script := filepath.Join(dir, "session.mjs")
	if err := errors.Join(os.WriteFile(script, []byte(piAlone), 0o600), os.Mkdir(filepath.Join(dir, "bin"), 0o700)); err != nil {
		t.Fatal(err)
	}
	testenv.Executable(t, filepath.Join(dir, "bin/mooncite"), []byte("#!/bin/sh\nprintf 'mooncite: this kernel cannot\\n  use another\\n' >&2\nexit 78\n"))
	for range rounds(t, 5) { // what is written to it, what it says and its end come in any order
		ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
		c := exec.CommandContext(ctx, node, script)
		c.Env, c.Dir = w.Environ(), dir
		if r := finish(t, c); r.status != 0 || r.stdout != "mooncite: mooncite has ended: this kernel cannot\n  use another\n" {
			t.Errorf("the session ends with %d\n%s\n%s", r.status, r.stdout, r.stderr)
		}
		cancel()
	}
}

const piAlone = `
import assert from "node:assert/strict";
import extension from "./pi/mooncite.ts";
const handlers = {};
extension({ registerTool: () => assert.fail("a tool without a server"), on: (event, handler) => { handlers[event] = handler; } });
const ctx = { ui: { notify: (text) => console.log(text) } };
await handlers.session_start({}, ctx);
await handlers.session_shutdown({}, ctx);
`

// piSession stands in for Pi. It ends by itself when the extension leaves nothing behind.
const piSession = `
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import extension from "./pi/mooncite.ts";

const tools = new Map(), handlers = {}, notes = [];
extension({ registerTool: (t) => tools.set(t.name, t), on: (event, handler) => { handlers[event] = handler; } });
assert.equal(tools.size, 0, "nothing is started before a session");
const ctx = { ui: { notify: (text) => notes.push(text) } };
await handlers.session_start({}, ctx);
assert.deepEqual(notes, []);
assert.deepEqual([...tools.keys()].sort(), ["mooncite_inspect", "mooncite_recall", "mooncite_status"]);
const recall = tools.get("mooncite_recall");
assert.equal(recall.parameters.type, "object");
assert.ok(recall.description.length > 100 && recall.label);

const call = (name, params, signal) => tools.get(name).execute("id", params, signal);
const [first, second] = await Promise.all([call("mooncite_recall", { query: "ECONNRESET" }), call("mooncite_status", {})]);
assert.match(first.content[0].text, /ECONNRESET/);
assert.equal(first.details.outcome, "matches");
assert.match(second.content[0].text, /Mooncite status/);
const id = first.details.candidates[0].evidenceId;
assert.equal((await call("mooncite_inspect", { evidence_id: id })).details.outcome, "verified");

await assert.rejects(call("mooncite_recall", { query: "" }), /query must be a string/);
const gone = new AbortController();
gone.abort(new Error("no longer wanted"));
await assert.rejects(call("mooncite_recall", { query: "x" }, gone.signal), /no longer wanted/);
const going = new AbortController();
const running = call("mooncite_recall", { query: "x" }, going.signal);
await new Promise(setImmediate); // the question is on its way
going.abort();
await running.then(() => {}, (error) => assert.match(error.message, /cancelled/));

const pid = Number(readFileSync(process.argv[2], "utf8").trim());
process.kill(pid, "SIGKILL");
const lives = () => { try { return process.kill(pid, 0); } catch { return false; } };
while (lives()) await new Promise((resolve) => setTimeout(resolve, 20));
const after = await Promise.all([1, 2, 3].map(() => call("mooncite_recall", { query: "ECONNRESET" })));
for (const each of after) assert.equal(each.details.outcome, "matches", "one new server takes the place of one that died");

await handlers.session_shutdown({}, ctx);
await handlers.session_shutdown({}, ctx);
console.log("done");
`
