package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/testenv"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func place(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return filepath.Join(dir, "dodo")
}

func TestDir(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
		code error
	}{
		{map[string]string{"HOME": "/h"}, "/h/.local/state/dodo", nil},
		{map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/dodo", nil},
		{map[string]string{"HOME": "/h", "XDG_STATE_HOME": "x"}, "/h/.local/state/dodo", nil},
		{map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/x", "DODO_CONFIG_DIR": "/d/"}, "/d", nil},
		{map[string]string{"HOME": "/h", "DODO_CONFIG_DIR": "d"}, "", contract.InvalidInput},
		{map[string]string{"HOME": "h"}, "", contract.InvalidInput},
		{map[string]string{}, "", contract.InvalidInput},
	} {
		got, err := config.Dir(c.env)
		if got != c.want || !errors.Is(err, c.code) {
			t.Errorf("%v: %q, %v", c.env, got, err)
		}
	}
}

func TestParseIsStrict(t *testing.T) {
	for text, want := range map[string]string{ // a part of the sentence
		`{"version":1,"colour":"red"}`:                       `"colour"`,
		`{"version":1,"limits":{"readFileByte":20000}}`:      `"limits.readFileByte"`,
		`{"version":1,"limits":{"readFileBytes":1}}`:         `"limits.readFileBytes" cannot be used: it must be 16384 to 16777216`,
		`{"version":1,"limits":{"readFileBytes":"8"}}`:       `"limits.readFileBytes" cannot be used: it has the wrong type`,
		`{"version":1,"limits":{"readFileBytes":8388608.5}}`: `"limits.readFileBytes"`,
		`{"version":1,"limits":null}`:                        `"limits.requestBodyBytes"`,
		`{"version":1,"searchBackend":"rg"}`:                 `"searchBackend" cannot be used: it must be one of auto, builtin`,
		`{"version":1,"toolSurface":"huge"}`:                 `"toolSurface"`,
		`{"version":1,"secretDeny":["a","b\u0000"]}`:         `pattern 2`,
		`{"version":1,"secretDeny":[""]}`:                    `pattern 1`,
		`{"version":1,"secretDeny":"*.pem"}`:                 `"secretDeny"`,
		`{"version":1,"secretDeny":["*.pem","bad["]}`:        `pattern 2, "bad[", is not well formed`,
		`{"version":1,"secretAllow":["a\\"]}`:                `pattern 1, "a\\", is not well formed`,
		`{"version":1,"allowWebFetch":"true"}`:               `"allowWebFetch" cannot be used: it has the wrong type`,
		`{"version":1,"allowWebFetch":1}`:                    `"allowWebFetch"`,
		`{"version":1,"egressAllow":["*","http://x"]}`:       `"egressAllow" cannot be used: entry 2, "http://x" cannot be used: it is a URL`,
		`{"version":1,"egressDeny":["0x7f.1"]}`:              `entry 1, "0x7f.1" cannot be used`,
		`{"version":1,"egressDeny":[""]}`:                    `entry 1`,
		`{"version":1,"egressDeny":"*"}`:                     `"egressDeny"`,
		`{"version":1,"accessMode":1}`:                       `"accessMode"`,
		`{"version":1,"Version":1}`:                          `"Version"`,
		`{"version":1,"version":1}`:                          `"version" twice`,
		`{"version":2}`:                                      `newer than this program's 1`,
		`{"version":0}`:                                      `"version"`,
		`{}`:                                                 `"version"`,
		`{"version":1`:                                       `not valid JSON`,
		`[]`:                                                 `not a JSON object`,
		``:                                                   `not valid JSON`,
		`{"version":1} {}`:                                   `not valid JSON`,
	} {
		_, err := config.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.From(err).Hint == "" {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	many := make([]string, 201)
	for i := range many {
		many[i] = "x"
	}
	list, _ := json.Marshal(many)
	for _, name := range []string{"secretDeny", "egressAllow", "egressDeny"} {
		if _, err := config.Parse(fmt.Appendf(nil, `{"version":1,%q:%s}`, name, list)); err == nil {
			t.Errorf("%s: 201", name)
		}
	}
}

// Only what widens authority falls back by itself, and only to less.
func TestAccessModeThatIsNotUnderstood(t *testing.T) {
	for text, want := range map[string]contract.AccessMode{
		`{"version":1}`: contract.AccessManaged, `{"version":1,"accessMode":"open"}`: contract.AccessManaged,
		`{"version":1,"accessMode":"managed"}`: contract.AccessManaged, `{"version":1,"accessMode":"personal"}`: contract.AccessPersonal,
	} {
		c, err := config.Parse([]byte(text))
		if err != nil || c.AccessMode != want {
			t.Errorf("%s: %q, %v", text, c.AccessMode, err)
		}
	}
}

func TestFreshAndUsedInstallations(t *testing.T) {
	dir := place(t)
	c, err := config.Load(dir)
	must(t, err)
	if d := cmp.Diff(config.Default(), c); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("reading made the directory")
	}
	c, err = config.Ensure(t.Context(), dir)
	must(t, err)
	if d := cmp.Diff(config.Default(), c); d != "" || c.AccessMode != contract.AccessPersonal {
		t.Error(d)
	}
	path := filepath.Join(dir, config.FileName)
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	data, err := os.ReadFile(path)
	must(t, err)
	testenv.Golden(t, "testdata/fresh.json", data)

	own := []byte(`{"accessMode": "personal",  "version": 1}`)
	must(t, os.WriteFile(path, own, 0o600))
	_, err = config.Ensure(t.Context(), dir)
	must(t, err)
	if data, err := os.ReadFile(path); err != nil || string(data) != string(own) {
		t.Errorf("the owner's own writing was changed: %s %v", data, err)
	}

	s, err := state.Open(t.Context(), dir, state.Options{})
	must(t, err)
	must(t, s.Close())
	must(t, os.Remove(path))
	if c, err := config.Load(dir); err != nil || c.AccessMode != contract.AccessManaged {
		t.Errorf("the file of a used installation is gone: %q, %v", c.AccessMode, err)
	}
	if c, err := config.Ensure(t.Context(), dir); err != nil || c.AccessMode != contract.AccessManaged {
		t.Errorf("%q, %v", c.AccessMode, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"open to others": func(path string) error { return os.Chmod(path, 0o644) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		},
		"a second name": func(path string) error { return os.Link(path, path+".also") },
		"too large":     func(path string) error { return os.Truncate(path, 2<<20) },
		"broken":        func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"open place":    func(path string) error { return os.Chmod(filepath.Dir(path), 0o755) },
	} {
		dir := place(t)
		_, err := config.Ensure(t.Context(), dir)
		must(t, err)
		must(t, spoil(filepath.Join(dir, config.FileName)))
		before := testenv.Fingerprint(t, dir)
		_, err = config.Load(dir)
		if err == nil || fault.From(err).Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if name == "broken" && !strings.Contains(fault.From(err).Hint, filepath.Join(dir, config.FileName)) {
			t.Errorf("the hint does not say where the file is: %s", fault.From(err).Hint)
		}
		if _, err := config.Update(t.Context(), dir, func(*config.Config) error { return nil }); err == nil {
			t.Errorf("%s: it was replaced", name)
		}
		if d := cmp.Diff(before, testenv.Fingerprint(t, dir)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestEverySettingCanBeSetAndReadBack(t *testing.T) {
	dir := place(t)
	words := map[string][]string{
		"accessMode": {"managed"}, "toolSurface": {"hybrid"}, "searchBackend": {"builtin"}, "secretDeny": {"*.key", "vault/"},
		"secretAllow": {"example.pem"}, "commandSandbox": {"require"}, "jobNetwork": {"none"}, "envAllowlist": {"CI", "GOFLAGS"},
		"sandboxReadPaths": {"/srv/sdk"}, "gitHooks": {"sandbox"},
		"allowWebFetch": {"true"}, "egressAllow": {"*", "localhost:3000", "[fd00::/8]:443"}, "egressDeny": {"*.example.com"},
		"publicUrl": {"https://dodo.example.com:8443"}, "port": {"8080"}, "allowedHosts": {"box.local", "10.0.0.5:443", "[::1]:80"},
		"allowedOrigins": {"https://app.example.com", "http://localhost:5173"}, "clientRegistration": {"off"}, "clientMetadata": {"on"},
		"startupProject": {"prj_00000000"},
	}
	for _, s := range config.Settings() {
		w, ok := words[s.Name]
		if strings.HasPrefix(s.Name, "limits.") {
			w, ok = []string{strings.Split(s.Bounds, " ")[0]}, true
		}
		if !ok || s.Doc == "" || s.Bounds == "" {
			t.Fatalf("%s: no value to try, or no text", s.Name)
		}
		_, err := config.Update(t.Context(), dir, func(c *config.Config) error { return s.Set(c, w) })
		must(t, err)
		c, err := config.Load(dir)
		must(t, err)
		var got []string
		switch v := s.Value(c).(type) {
		case string:
			got = []string{v}
		case bool:
			got = []string{strconv.FormatBool(v)}
		case int:
			got = []string{strconv.Itoa(v)}
		case []string:
			got = v
		}
		if d := cmp.Diff(w, got); d != "" {
			t.Errorf("%s: %s", s.Name, d)
		}
	}
	before := testenv.Fingerprint(t, dir)
	for _, c := range []struct {
		name  string
		words []string
	}{
		{"limits.readFileBytes", []string{"1"}}, {"limits.commandBytes", []string{"x"}}, {"accessMode", []string{"all"}},
		{"searchBackend", []string{"auto", "auto"}}, {"toolSurface", nil}, {"secretDeny", []string{"bad["}}, {"secretAllow", []string{"["}},
		{"commandSandbox", []string{"full"}}, {"jobNetwork", []string{"all"}}, {"gitHooks", []string{"on"}},
		{"envAllowlist", []string{"A=B"}}, {"envAllowlist", []string{"LD_PRELOAD"}}, {"envAllowlist", []string{"1A"}}, {"envAllowlist", []string{""}}, {"envAllowlist", []string{"DODO_X"}}, {"envAllowlist", []string{"HOME"}},
		{"sandboxReadPaths", []string{"relative"}}, {"sandboxReadPaths", []string{"/"}}, {"sandboxReadPaths", []string{"/a/../b"}},
		{"sandboxReadPaths", []string{"/proc"}}, {"sandboxReadPaths", []string{"/sys/kernel"}}, {"sandboxReadPaths", []string{"/run/user/1000"}}, {"sandboxReadPaths", []string{"/var"}}, {"sandboxReadPaths", []string{"/tmp"}},
		{"allowWebFetch", []string{"yes"}}, {"egressAllow", []string{"*", "10.0.0.1/8"}}, {"egressDeny", []string{"a b"}},
		{"publicUrl", []string{"http://dodo.example.com"}}, {"publicUrl", []string{"https://dodo.example.com/mcp"}}, {"publicUrl", []string{"https://a@example.com"}},
		{"publicUrl", []string{"https://Example.com"}}, {"publicUrl", []string{"https://example.com:443"}}, {"publicUrl", []string{"https://"}}, {"publicUrl", []string{"example.com"}},
		{"publicUrl", []string{"https://example.com?"}}, {"publicUrl", []string{"https://example.com#"}}, {"publicUrl", []string{"https://a..b"}},
		{"port", []string{"0"}}, {"port", []string{"65536"}}, {"allowedHosts", []string{"*.example.com"}}, {"allowedHosts", []string{"a:0"}}, {"allowedHosts", []string{"a/b"}},
		{"allowedOrigins", []string{"null"}}, {"allowedOrigins", []string{"*"}}, {"allowedOrigins", []string{"https://a.example/"}}, {"allowedOrigins", []string{"file:///x"}},
		{"clientRegistration", []string{"yes"}}, {"clientMetadata", []string{""}}, {"startupProject", []string{"x"}},
	} {
		name, w := c.name, c.words
		s, ok := config.Find(name)
		if !ok {
			t.Fatal(name)
		}
		if _, err := config.Update(t.Context(), dir, func(c *config.Config) error { return s.Set(c, w) }); !errors.Is(err, contract.InvalidInput) {
			t.Errorf("%s %v: %v", name, w, err)
		}
	}
	if _, ok := config.Find("limits.none"); ok {
		t.Error("found what is not there")
	}
	if d := cmp.Diff(before, testenv.Fingerprint(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestIssuer: a public address that cannot be used is told when the server starts, and does
// not keep the file from being read.
func TestIssuer(t *testing.T) {
	c := config.Default()
	if got, err := c.Issuer(21730); got != "http://127.0.0.1:21730" || err != nil {
		t.Error(got, err)
	}
	c, err := config.Parse([]byte(`{"version":1,"publicUrl":"https://dodo.example.com/"}`))
	must(t, err)
	if got, err := c.Issuer(1); got != "https://dodo.example.com" || err != nil {
		t.Error(got, err)
	}
	c, err = config.Parse([]byte(`{"version":1,"publicUrl":"http://dodo.example.com"}`))
	must(t, err)
	if _, err := c.Issuer(1); !errors.Is(err, contract.InvalidInput) || !strings.Contains(err.Error(), "publicUrl") {
		t.Error(err)
	}
}

const workerVariable = "CONFIG_TEST_WORKER"

// TestMain is also a process that adds patterns one at a time.
func TestMain(m *testing.M) {
	job := os.Getenv(workerVariable)
	if job == "" {
		os.Exit(m.Run())
	}
	dir, name, _ := strings.Cut(job, "|")
	for i := range 20 {
		if _, err := config.Update(context.Background(), dir, func(c *config.Config) error {
			c.SecretDeny = append(c.SecretDeny, fmt.Sprintf("%s%d", name, i))
			return nil
		}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// Two processes that change the file at once lose nothing of each other.
func TestChangesOfTwoProcesses(t *testing.T) {
	dir := place(t)
	self, err := os.Executable()
	must(t, err)
	var workers []*exec.Cmd
	for _, name := range []string{"a", "b", "c"} {
		w := exec.Command(self)
		w.Env = append(os.Environ(), workerVariable+"="+dir+"|"+name)
		w.Stderr = os.Stderr
		must(t, w.Start())
		workers = append(workers, w)
	}
	for _, w := range workers {
		must(t, w.Wait())
	}
	c, err := config.Load(dir)
	must(t, err)
	if len(c.SecretDeny) != 60 {
		t.Errorf("%d of 60 changes are there", len(c.SecretDeny))
	}
}

func TestHints(t *testing.T) {
	h, err := config.ParseHints([]byte(`{"name":"Demo","description":"a\nb","exclude":["dist/","*.min.js"],
		"tasks":[{"id":"test","title":"Run the tests","program":"go","args":["test","./..."],"cwd":"src"}]}`))
	must(t, err)
	if d := cmp.Diff(config.Hints{Name: "Demo", Description: "a\nb", Exclude: []string{"dist/", "*.min.js"},
		Tasks: []config.Task{{ID: "test", Title: "Run the tests", Program: "go", Args: []string{"test", "./..."}, Cwd: "src"}}}, h); d != "" {
		t.Error(d)
	}
	task := func(more string) string { return `{"tasks":[{"id":"a","title":"t","program":"p"` + more + `}]}` }
	if _, err := config.ParseHints([]byte(task(""))); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		`{"root":"/"}`, `{"trust":"trusted"}`, `{"limits":{}}`, `{"allowDesktop":true}`, `{"exclude":["!secret"]}`, `{"exclude":"x"}`, `{"exclude":[""]}`,
		`{"name":"a\u0007"}`, `{"name":1}`, `[]`, `{`, ``, `{"name":"` + strings.Repeat("x", 101) + `"}`, strings.Repeat(" ", 64<<10) + `{}`,
		`{"exclude":["["]}`, `{"exclude":["a","/"]}`,
		`{"exclude":["x"` + strings.Repeat(`,"x"`, 200) + `]}`,
		task(`,"env":{}`), task(`,"cwd":"/etc"`), task(`,"cwd":"a/../.."`), task(`,"args":["a\u0000"]`), `{"tasks":[{"id":"a b","title":"t","program":"p"}]}`,
		`{"tasks":[{"id":"a","title":"","program":"p"}]}`, `{"tasks":[{"id":"a","title":"t","program":"p"},{"id":"a","title":"t","program":"p"}]}`,
	} {
		h, err := config.ParseHints([]byte(text))
		if !errors.Is(err, contract.InvalidInput) || !cmp.Equal(h, config.Hints{}) {
			t.Errorf("%.60s: %+v, %v", text, h, err)
		}
		if err != nil && strings.Contains(err.Error(), "trust") {
			t.Error("the sentence has text of the file")
		}
	}
}
