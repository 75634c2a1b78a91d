package main

import (
	"os"
	"strings"
	"testing"
)

const nobody = "mooncite:pi:000000000000000000000000:000000000000000000000000:000000000000000000000000:0"

// One rule for all commands: what is wrong as it was typed is 2, says what and what to do,
// and neither prints data nor opens the state.
func TestWrongCalls(t *testing.T) {
	w := sampleWorld(t)
	for _, c := range []struct{ line, says string }{
		{"recal x", `unknown command "recal"`},
		{"help recal", `unknown command "recal"`},
		{"help source drop", `unknown command "drop"`},
		{"source drop", `unknown command "drop"`},
		{"source drop --help", `unknown command "drop"`},
		{"completion pascal", `unknown command "pascal"`},
		{"--nonsense", "unknown flag: --nonsense"},
		{"recall", "requires at least 1 arg"},
		{"recall ''", "the query must be a string from 1 to 2000 characters"},
		{"recall LONG", "the query must be a string from 1 to 2000 characters, not 2001 characters"},
		{"recall --limit 0 x", "--limit must be a whole number from 1 to 20, not 0"},
		{"recall --limit 21 x", "--limit must be"},
		{"recall --limit many x", `invalid argument "many" for "--limit"`},
		{"recall --nonsense x", "unknown flag: --nonsense"},
		{"recall --after yesterday x", "--after is not an ISO 8601 date"},
		{"recall --before 2026-03-01 x", "--before is not an ISO 8601 date"},
		{"recall --after 2027-01-01T00:00:00Z --before 2026-01-01T00:00:00Z x", "--after is later than before"},
		{"recall --role boss x", "--role is not one of user,"},
		{"recall --origin netscape x", "--origin is not one of pi,"},
		{"recall --order best x", "--order is not one of relevance"},
		{"recall --project /srv/lantern x", "--project is not a project identity"},
		{"recall --session LONG x", "--session must be a string of at most 512 characters"},
		{"recall --project '' x", "--project has no value"},
		{"recall --session '' x", "--session has no value"},
		{"recall --after= x", "--after has no value"},
		{"recall --order '' x", "--order has no value"},
		{"forget --session '' --yes", "--session has no value"},
		{"recall --cursor x x", "--cursor is not one that an answer gave"},
		{"inspect", "accepts 1 arg(s), received 0"},
		{"inspect a b", "accepts 1 arg(s), received 2"},
		{"inspect nonsense", `"nonsense" is not an evidence id or URI`},
		{"inspect LONG", "is not an evidence id or URI"},
		{"inspect --window 11 " + nobody, "--window must be a whole number from 0 to 10, not 11"},
		{"inspect --window -1 " + nobody, "--window must be"},
		{"inspect --offset -1 " + nobody, "--offset must be a whole number of at least 0, not -1"},
		{"status x", `unknown command "x"`},
		{"status --json=maybe", `invalid argument "maybe"`},
		{"rebuild x", `unknown command "x"`},
		{"serve x", `unknown command "x"`},
		{"version x", `unknown command "x"`},
		{"forget", "give either --session or --evidence"},
		{"forget --session a --evidence b", "give either --session or --evidence"},
		{"forget --evidence nonsense --yes", `"nonsense" is not an evidence id or URI`},
		{"source list x", `unknown command "x"`},
		{"source add codex", "accepts 2 arg(s), received 1"},
		{"source add netscape /srv", "origin is not one of claude-code, codex or chatgpt"},
		{"source add pi /srv", "origin is not one of"},
		{"source add codex some/where", "root is not an absolute path"},
		{"source add codex ''", "root is not an absolute path"},
		{"source add codex BYTES", "root is not valid text"},
		{"source remove netscape /srv", "origin is not one of"},
		{"source remove codex some/where", "root is not an absolute path"},
	} {
		args := strings.Fields(c.line)
		for i, a := range args {
			args[i] = strings.NewReplacer("''", "", "LONG", strings.Repeat("x", 2001), "BYTES", "/srv/\xff").Replace(a)
		}
		r := w.run(args...)
		if r.status != exitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "mooncite: ") || !strings.Contains(r.stderr, c.says) || strings.Count(r.stderr, "\n") != 2 {
			t.Errorf("%s: status %d\n%.300s%.600s", c.line, r.status, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(w.state()); err == nil {
		t.Error("a wrong call made the state directory")
	}
}

// The other statuses, as the manual page has them.
func TestExitStatuses(t *testing.T) {
	w := sampleWorld(t)
	id := w.finds("at most 6 attempts").EvidenceID
	check := func(status int, args ...string) {
		t.Helper()
		r := w.run(args...)
		if r.status != status || (r.stdout == "") != (status == 1 || status == exitUsage || r.stderr != "") {
			t.Errorf("mooncite %q: status %d, want %d\n%s%s", args, r.status, status, r.stdout, r.stderr)
		}
	}
	gone := "pi:" + strings.Repeat("0", 64) + ":nobody"
	for _, args := range [][]string{{"recall", "ECONNRESET"}, {"recall", "quixotical-zeppelin"}, {"inspect", id}, {"status"}, {"rebuild"}, {"version"}, {"source", "list"}, {"help"}, {"help", "recall"}, {"source"}, {}} {
		check(0, args...)
	}
	for _, args := range [][]string{{"recall", "=>"}, {"recall", "jitter zeppelin quixotical walrus"}, {"inspect", nobody}, {"forget", "--yes", "--evidence", nobody}, {"forget", "--yes", "--session", gone}} {
		check(exitInconclusive, args...)
	}
	for _, args := range [][]string{{"recall", "--session", "nobody", "x"}, {"recall", "--session", gone, "x"}, {"forget", "--yes", "--session", "nobody"}, {"forget", "--evidence", id}, {"inspect", "--offset", "99999", id}} {
		check(exitUsage, args...)
	}
	for _, args := range [][]string{{"source", "add", "codex", "/nowhere"}, {"source", "remove", "codex", "/nowhere"}, {"source", "remove", "codex", w.Path(".codex/sessions")}} {
		check(1, args...)
	}
	w.Write(t, "incoming/chatgpt-share-archive/broken/conversations.json", "no export")
	check(exitDegraded, "status")
	check(exitDegraded, "rebuild")
	w.Write(t, ".config/mooncite/sources.json", "{}")
	check(exitDegraded, "source", "list")
	check(exitInconclusive, "recall", "ECONNRESET") // found, but not everything was searched
	w.Set("MOONCITE_STATE_DIR", "some/where")
	for _, args := range [][]string{{"recall", "x"}, {"inspect", id}, {"status"}, {"rebuild"}, {"serve"}, {"forget", "--yes", "--evidence", id}, {"source", "list"}} {
		check(1, args...)
	}
}
