package install

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const ours = "[mcp_servers.mooncite]\ncommand = \"/x\"\nargs = [\"serve\"]\n"

// What Codex makes of other tables does not matter; ours comes and goes, and nothing else.
func TestTableComesAndGoes(t *testing.T) {
	spoiled := func(s string) string { return strings.ReplaceAll(s, "# mine", "") }
	for _, before := range []string{
		"", "a = 1\n", "a = 1", "a = 1\n\n", "# mine\n[mcp_servers.other] # mine\nargs = [ 1 ]\n",
		"[mcp_servers.mooncite2]\nx = 1\n", "[a]\nb = \"[mcp_servers.mooncite]\"\n",
	} {
		after := spoiled(before) + "\n" + ours
		with, ok := withTable([]byte(before), []byte(after))
		if strings.Contains(before, "mooncite2") {
			if ok { // a name that begins like ours: left to Codex
				t.Errorf("%q: taken for ours", before)
			}
			continue
		}
		if !ok || !bytes.HasPrefix(with, []byte(before)) || !bytes.HasSuffix(with, []byte(ours)) {
			t.Errorf("%q became %q", before, with)
			continue
		}
		without, ok := withoutTable(with, []byte(spoiled(before)))
		want := before
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if !ok || string(without) != want {
			t.Errorf("%q came back as %q", before, without)
		}
	}
}

func TestTableInTheMiddle(t *testing.T) {
	for _, c := range []struct{ before, want string }{
		{"a = 1\n\n" + ours + "\n[other]\nb = 2\n", "a = 1\n\n[other]\nb = 2\n"},
		{"a = 1\n\n" + ours + "# about the other\n[other]\nb = 2\n", "a = 1\n\n# about the other\n[other]\nb = 2\n"},
		{ours + "\n[other]\n", "[other]\n"},
		{ours, ""},
	} {
		if got, ok := withoutTable([]byte(c.before), []byte(c.want)); !ok || string(got) != c.want {
			t.Errorf("%q became %q, want %q", c.before, got, c.want)
		}
	}
	for _, odd := range []string{
		"a = 1\n",   // no table of ours
		ours + ours, // two
		ours + "[mcp_servers.mooncite.env]\nX=\"\"\n", // more than we made
	} {
		if got, ok := withoutTable([]byte(odd), nil); ok {
			t.Errorf("%q became %q", odd, got)
		}
	}
	if _, ok := withoutTable([]byte(ours), []byte(ours)); ok {
		t.Error("Codex did not remove it, and we did")
	}
}

// What another process wrote while Codex was at work stays: the file is left as it is then.
func TestTableAndAnotherWriter(t *testing.T) {
	const before = "model = \"a\" # mine\n\n[mcp_servers.other]\nargs = [ 1 ]\n"
	for _, meanwhile := range []string{
		"model = \"b\" # mine\n\n[mcp_servers.other]\nargs = [1]\n",
		before + "\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n",
		before + "\n[mcp_servers.third]\ncommand = \"/y\"\n",
		before + "\n[mcp_servers.\"t h\"] # new\ncommand = \"/y\"\n",
		"model = \"a\" # mine\n",
	} {
		if got, ok := withTable([]byte(before), []byte(meanwhile+"\n"+ours)); ok {
			t.Errorf("%q became %q", meanwhile, got)
		}
		if got, ok := withoutTable([]byte(before+"\n"+ours), []byte(meanwhile)); ok {
			t.Errorf("%q became %q", meanwhile, got)
		}
	}
}

// Servers in an inline table, below which no table may stand, stay as Codex wrote them.
func TestTableAndInlineTables(t *testing.T) {
	for before, after := range map[string]string{
		"model = \"a\"\nmcp_servers = {}\n":                         "model = \"a\"\n",
		"mcp_servers = { other = { command = \"x\" } }\n":           "[mcp_servers ]\nother = { command = \"x\" }\n",
		"\"mcp_servers\"={other={command=\"x\"}} # mine\n":          "[\"mcp_servers\"]\nother={command=\"x\"}\n",
		"mcp_servers.other.command = \"x\"\nmodel = \"a\" # mine\n": "model = \"a\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n",
	} {
		if got, ok := withTable([]byte(before), []byte(after+"\n"+ours)); ok {
			t.Errorf("%q became %q", before, got)
		}
	}
}

func TestClaudeIsReadStrictly(t *testing.T) {
	c := &claude{base{places: Places{Root: "/d"}}}
	const good = "mooncite:\n  Scope: User config (available in all your projects)\n  Status: ok\n  Type: stdio\n  Command: /d/package/bin/mooncite\n  Args: serve\n  Environment:\n\nTo remove this server, run: x\n"
	if !c.exact(good) {
		t.Error("the registration itself is not exact")
	}
	for _, change := range [][2]string{
		{"User config", "Local config"},
		{"/d/package/bin/mooncite\n", "/d/package/bin/mooncite --x\n"},
		{"/d/package/bin/mooncite\n", "env /d/package/bin/mooncite\n"},
		{"Args: serve", "Args: serve --strict"},
		{"Args: serve\n", "Args: serve\n  Args: serve\n"},
		{"Type: stdio", "Type: http"},
		{"  Type: stdio\n", ""},
		{"Environment:\n", "Environment:\n    PATH=/x\n"},
		{"Environment:\n", "Environment: PATH=/x\n"},
		{"  Command: /d/package/bin/mooncite\n", "    Command: /d/package/bin/mooncite\n"},
	} {
		if text := strings.Replace(good, change[0], change[1], 1); c.exact(text) {
			t.Errorf("taken for exact:\n%s", text)
		}
	}
	for scope, want := range map[string]string{"User": "-s user", "Local": "-s local", "Project": "-s project"} {
		c := &claude{base{run: commands{map[string]string{"PATH": "/usr/bin:/bin", "CLAUDE": script(t, "printf 'mooncite:\\n  Scope: "+scope+" config (shared)\\n  Type: http\\n'")}}, env: "CLAUDE"}}
		if f := c.probe(t.Context()); f.State != Conflict || !strings.Contains(f.Remedy, "`claude mcp remove "+want+" mooncite`") {
			t.Errorf("%+v", f)
		}
	}
	for text, missing := range map[string]bool{
		"No MCP server named \"mooncite\". Configured servers: other": true,
		"No MCP server found with name: mooncite":                     true,
		"Error: command not found":                                    false,
		"No MCP server named \"other\".":                              false,
		"No MCP server named \"mooncite2\".":                          false,
	} {
		if claudeMissing.MatchString(text) != missing {
			t.Errorf("%q means missing: %t", text, !missing)
		}
	}
}

func TestPackagesOfPi(t *testing.T) {
	for source, ours := range map[string]bool{
		"npm:mooncite": true, "npm:mooncite@1.2": true, "npm:@whenmoon-afk/mooncite@4.0.6": true, "git:github.com/x/mooncite": true,
		"git:github.com/x/mooncite@v1": true, "https://example.com/x/mooncite.git": true, "../elsewhere/mooncite": true,
		"npm:mooncite-theme": false, "npm:other": false, "git:github.com/mooncite/other": false, "": false,
	} {
		if namesUs(source) != ours {
			t.Errorf("%q is of our name: %t", source, !ours)
		}
	}
}

// What an entry of ours picks from the package.
func TestEntryOfPiThatLeavesOut(t *testing.T) {
	for entry, off := range map[string]bool{
		`"../x"`: false, `{"source":"../x"}`: false, `{"source":"../x","skills":[]}`: false, `{"source":"../x","extensions":null}`: false,
		`{"source":"../x","extensions":["pi/mooncite.ts"]}`: false, `{"source":"../x","extensions":["+pi/mooncite.ts"]}`: false,
		`{"source":"../x","extensions":["./pi/*.ts"]}`: false, `{"source":"../x","extensions":["!other.ts"]}`: false,
		`{"source":"../x","extensions":[]}`: true, `{"source":"../x","extensions":["-pi/mooncite.ts"]}`: true,
		`{"source":"../x","extensions":["other.ts"]}`: true, `{"source":"../x","extensions":["pi/*","!pi/mooncite.ts"]}`: true,
	} {
		if leavesOut([]byte(entry)) != off {
			t.Errorf("%s leaves the extension out: %t", entry, !off)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1.0.0", "1.0.1", true}, {"1.9", "1.10", true}, {"1.0.0", "1.0.0", false}, {"2.0", "1.9", false},
		{"0.1.0-dev", "0.1.0", true}, {"0.1.0", "0.1.0-dev", false}, {"0.1.0-a", "0.1.0-b", true},
		{"dev", "1.0.0", false}, {"1.0.0", "dev", false}, {"1.0.0", "", false},
	} {
		if older(c.a, c.b) != c.want {
			t.Errorf("older(%q, %q) is %t", c.a, c.b, !c.want)
		}
	}
}

func TestPackageComesAndGoes(t *testing.T) {
	ours := func(raw []byte) bool { return string(raw) == `"ours"` }
	for _, c := range []struct{ before, with string }{
		{"{\"packages\": [ \"a\",\n   \"b\" ],\t\"x\": 1.0}\n\n", "{\"packages\": [ \"a\",\n   \"b\",\n   \"ours\" ],\t\"x\": 1.0}\n\n"},
		{"{\"x\":{\"packages\":[1]},\"packages\":[{\"source\":\"a,[b\"}]}", "{\"x\":{\"packages\":[1]},\"packages\":[{\"source\":\"a,[b\"},\"ours\"]}"},
		{"{\"packages\":[]}", "{\"packages\":[\"ours\"]}"},
		{"{\"packages\": [ ]}", "{\"packages\": [\"ours\" ]}"},
		// Without a list there is one for as long as it is needed.
		{"{}", "{\"packages\": [\"ours\"]}"},
		{"{\n}\n", "{\"packages\": [\"ours\"]\n}\n"},
		{"{\r\n\t\"theme\":   \"dark\" ,\r\n\r\n\t\"x\": 1.0\r\n}\r\n", "{\r\n\t\"theme\":   \"dark\" ,\r\n\r\n\t\"x\": 1.0,\r\n\r\n\t\"packages\": [\"ours\"]\r\n}\r\n"},
		{"{ \"x\":{\"packages\":[1]}}", "{ \"x\":{\"packages\":[1]}, \"packages\": [\"ours\"]}"},
	} {
		var meant map[string]any
		if err := json.Unmarshal([]byte(c.before), &meant); err != nil {
			t.Fatal(err)
		}
		list, had := meant["packages"].([]any)
		meant["packages"] = append([]any{}, list...)
		without := indented(meant) // Pi leaves an empty list
		meant["packages"] = append(list, "ours")
		got, ok := withPackage([]byte(c.before), indented(meant), ours)
		if !ok || string(got) != c.with {
			t.Errorf("%q became %q", c.before, got)
		}
		if got, ok := withoutPackage([]byte(c.with), without, ours, !had); !ok || string(got) != c.before {
			t.Errorf("%q came back as %q", c.before, got)
		}
		// What the client changed besides is its own matter.
		meant["more"] = true
		if got, ok := withPackage([]byte(c.before), indented(meant), ours); ok {
			t.Errorf("a change was taken back: %q", got)
		}
	}
	for _, c := range []struct{ before, after, want string }{
		{`{"packages":["ours", "b" ]}`, `{"packages":["b"]}`, `{"packages":["b" ]}`},
		{`{"a":1, "packages": ["ours", "b"]}`, `{"a":1,"packages":["b"]}`, `{"a":1, "packages": ["b"]}`}, // the list is another's too by now
		{`{"packages": ["ours"], "b": 2}`, `{"packages":[],"b":2}`, `{"b": 2}`},
	} {
		if got, ok := withoutPackage([]byte(c.before), []byte(c.after), ours, true); !ok || string(got) != c.want {
			t.Errorf("%s became %s", c.before, got)
		}
	}
	for _, bad := range []string{"", "[]", "{", `{"packages":{}}`, `{"packages":null}`, `{"packages":["a"`, `{"packages":["a"]`, `{"x":1}`, `{"packages":["a"],"packages":["b"]}`} {
		if got, ok := withPackage([]byte(bad), []byte(`{"packages":["ours"]}`), ours); ok {
			t.Errorf("%q became %q", bad, got)
		}
		if got, ok := withoutPackage([]byte(bad), []byte(`{"packages":[]}`), ours, true); ok {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// The lists that OMP can give, and what they mean.
func TestPluginsOfOMP(t *testing.T) {
	root := t.TempDir()
	places := Places{Root: root}
	if err := os.MkdirAll(places.Package(), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(places.Package(), link); err != nil {
		t.Fatal(err)
	}
	ours := `{"name":"mooncite","path":"` + link + `"}`
	for list, want := range map[string]State{
		`{"npm":[],"marketplace":[]}`:                                                     Missing,
		`{"npm":[{"name":"other","path":"` + link + `"}]}`:                                Missing,
		`{"npm":[` + ours + `]}`:                                                          Exact,
		`{"npm":[` + ours + `,` + ours + `]}`:                                             Conflict,
		`{"npm":[{"name":"mooncite","path":"/elsewhere"}]}`:                               Conflict,
		`{"npm":[{"name":"@whenmoon-afk/mooncite","path":"` + link + `"}]}`:               Conflict,
		`{"npm":[` + ours + `],"marketplace":[{"id":"mooncite@market"}]}`:                 Conflict,
		`{"npm":[` + ours + `],"marketplace":[{"id":"mooncite-theme@market"},{"id":""}]}`: Exact,
		`[]`:    Unavailable,
		`hello`: Unavailable,
	} {
		file := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &omp{base{run: commands{map[string]string{"PATH": "/usr/bin:/bin", "OMP": script(t, "cat "+file)}}, places: places, env: "OMP"}}
		if got := c.probe(t.Context()); got.State != want {
			t.Errorf("%s means %s, want %s", list, got.State, want)
		}
	}
}
