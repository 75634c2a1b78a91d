package connect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/connect"
	"localmcp/dodo/internal/contract"
	"localmcp/internal/testenv"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var server = connect.Server{Name: "dodo", Program: "/opt/dodo", Args: []string{"stdio", "--root", "/w"}}

// cursor registers with Cursor whose file has this text.
func cursor(t testing.TB, text string) (after string, err error) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, ".cursor", "mcp.json")
	if text != "" {
		must(t, os.Mkdir(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o640))
	}
	p, err := connect.Make(connect.Cursor, server, map[string]string{"HOME": home})
	must(t, err)
	if p.File != file || !json.Valid([]byte(p.Entry)) {
		t.Fatalf("%+v", p)
	}
	err = p.Do(t.Context(), new(bytes.Buffer))
	data, _ := os.ReadFile(file)
	if st, e := os.Stat(file); e == nil && text != "" && st.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v", st.Mode())
	}
	return string(data), err
}

const ours = `{"command":"/opt/dodo","args":["stdio","--root","/w"]}`

// Every byte of the owner's file stays; what is new stands in its manner.
func TestCursorFile(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"no file":          {"", "{\n  \"mcpServers\": {\n    \"dodo\": {\n      \"command\": \"/opt/dodo\",\n      \"args\": [\n        \"stdio\",\n        \"--root\",\n        \"/w\"\n      ]\n    }\n  }\n}\n"},
		"one line":         {`{"mcpServers": {"a": {"url":"x"}}, "z" : 1.50}`, `{"mcpServers": {"a": {"url":"x"}, "dodo": ` + ours + `}, "z" : 1.50}`},
		"without servers":  {`{"z":1}`, `{"z":1, "mcpServers": {"dodo":` + ours + `}}`},
		"four spaces":      {"{\n    \"mcpServers\": {\n        \"a\": {}\n    }\n}", "{\n    \"mcpServers\": {\n        \"a\": {},\n        \"dodo\": {\n            \"command\": \"/opt/dodo\",\n            \"args\": [\n                \"stdio\",\n                \"--root\",\n                \"/w\"\n            ]\n        }\n    }\n}"},
		"tabs, no servers": {"{\n\t\"mcpServers\": {}\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"dodo\": {\n\t\t\t\"command\": \"/opt/dodo\",\n\t\t\t\"args\": [\n\t\t\t\t\"stdio\",\n\t\t\t\t\"--root\",\n\t\t\t\t\"/w\"\n\t\t\t]\n\t\t}\n\t}\n}\n"},
	} {
		got, err := cursor(t, c.before)
		must(t, err)
		if d := cmp.Diff(c.after, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		again, err := cursor(t, got)
		if err != nil || again != got {
			t.Errorf("%s, once more: %v\n%s", name, err, again)
		}
	}
	for _, before := range []string{
		"{\r\n  \"mcpServers\": {\r\n    \"a\": { \"command\": \"\\u00e9\" }\r\n\r\n  },\r\n  \"b\": [1, 2]\r\n}\r\n",
		"  {\n\"mcpServers\":{\n\n}}", "{\"a\":{\"mcpServers\":{\"dodo\":1}},\n\"mcpServers\":{\n\"x\":0}\n}",
	} {
		after, err := cursor(t, before)
		must(t, err)
		var v struct{ MCPServers map[string]json.RawMessage }
		must(t, json.Unmarshal([]byte(after), &v))
		var compact bytes.Buffer
		must(t, json.Compact(&compact, v.MCPServers["dodo"]))
		if compact.String() != ours {
			t.Errorf("%q: %s", before, after)
		}
		i := 0 // all of before is in after, in order: it is one piece put between two
		for i < len(before) && before[i] == after[i] {
			i++
		}
		if !strings.HasSuffix(after, before[i:]) {
			t.Errorf("%q became %q", before, after)
		}
	}
}

func TestCursorFileThatIsLeftAlone(t *testing.T) {
	for text, code := range map[string]error{
		`{"mcpServers":{"dodo":{"command":"/other","args":[]}}}`:                                         contract.Conflict,
		`{"mcpServers":{"dodo":{"command":"/opt/dodo","args":["stdio","--root","/w"],"env":{"A":"b"}}}}`: contract.Conflict,
		`{"mcpServers":{"dodo":null}}`:                                                                   contract.Conflict,
		`{"mcpServers":[]}`:                                                                              contract.NotSupported,
		`{"mcpServers":{}} {}`:                                                                           contract.NotSupported,
		`{"mcpServers":{},"mcpServers":{}}`:                                                              contract.NotSupported,
		"{\n// a comment\n\"mcpServers\":{}\n}":                                                          contract.NotSupported,
		`[]`:                                                                                             contract.NotSupported,
		`{"mcpServers":{`:                                                                                contract.NotSupported,
	} {
		after, err := cursor(t, text)
		if !errors.Is(err, code) || after != text {
			t.Errorf("%s: %v, became %s", text, err, after)
		}
	}
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, ".cursor"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, "real"), []byte(`{}`), 0o600))
	must(t, os.Symlink(filepath.Join(home, "real"), filepath.Join(home, ".cursor", "mcp.json")))
	p, err := connect.Make(connect.Cursor, server, map[string]string{"HOME": home})
	must(t, err)
	if err := p.Do(t.Context(), new(bytes.Buffer)); !errors.Is(err, contract.NotSupported) {
		t.Error(err)
	}
	if data, _ := os.ReadFile(filepath.Join(home, "real")); string(data) != `{}` {
		t.Errorf("%s", data)
	}
}

// stand is a client whose command notes what it is asked and knows the servers in a file.
const stand = `#!/bin/sh
printf '%s\n' "$PWD: $*" >>"$LOG"
case "$2" in
get) [ -e "$KNOWN" ] ;;
add) [ ! -e "$FAIL" ] || { echo 'no, because'; exit 3; }; echo 'added' ;;
esac
`

func TestClientCommands(t *testing.T) {
	with := server
	with.Env = map[string]string{"DODO_CONFIG_DIR": "/i"}
	for client, c := range map[string]struct{ program, add string }{
		connect.ClaudeCode: {"claude", "mcp add dodo --scope user --env DODO_CONFIG_DIR=/i -- /opt/dodo stdio --root /w"},
		connect.Codex:      {"codex", "mcp add dodo --env DODO_CONFIG_DIR=/i -- /opt/dodo stdio --root /w"},
	} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		env := map[string]string{"PATH": dir + ":/usr/bin:/bin", "LOG": at("log"), "KNOWN": at("known"), "FAIL": at("fail")}
		p, err := connect.Make(client, with, env)
		if !errors.Is(err, contract.NotFound) || strings.Join(p.Argv[1:], " ") != c.add {
			t.Errorf("%s without its command: %v %v", client, p.Argv, err)
		}
		testenv.Executable(t, at(c.program), []byte(stand))
		p, err = connect.Make(client, with, env)
		must(t, err)
		var out bytes.Buffer
		must(t, p.Do(t.Context(), &out))
		log, err := os.ReadFile(at("log"))
		must(t, err)
		if want := "/: mcp get dodo\n/: " + c.add + "\n"; string(log) != want || out.String() != "added\n" {
			t.Errorf("%s: %s%s", client, log, &out)
		}
		must(t, os.WriteFile(at("fail"), nil, 0o600))
		out.Reset()
		if err := p.Do(t.Context(), &out); !errors.Is(err, contract.Conflict) || out.String() != "no, because\n" {
			t.Errorf("%s: %v %s", client, err, &out)
		}
		must(t, os.WriteFile(at("known"), nil, 0o600))
		must(t, os.Remove(at("log")))
		if err := p.Do(t.Context(), &out); !errors.Is(err, contract.Conflict) {
			t.Errorf("%s: %v", client, err)
		}
		if log, _ := os.ReadFile(at("log")); string(log) != "/: mcp get dodo\n" {
			t.Errorf("%s was changed though it has one of the name: %s", client, log)
		}
	}
	if _, err := connect.Make("emacs", server, nil); !errors.Is(err, contract.InvalidInput) {
		t.Error(err)
	}
}
