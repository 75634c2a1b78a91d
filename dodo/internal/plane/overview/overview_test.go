package overview_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/overview"
	"localmcp/internal/op"
)

// world is the overview of a workspace of these files.
type world struct {
	t     *testing.T
	root  string
	store *state.Store
	tree  *workspace.Tree
	overview.Config
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: filepath.Join(dir, "work")}
	for _, d := range []string{"work", "state"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		w.write(name, text, 0o644)
	}
	if w.store, err = state.Open(context.Background(), filepath.Join(dir, "state"), state.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	if w.tree, err = workspace.Open(w.root, workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.tree.Close() })
	w.Config = overview.Config{
		Tree: w.tree, Store: w.store, Workspace: "ws_1", Epoch: "boot_1", Limits: contract.DefaultLimits, SearchBackend: "builtin",
		Standing: func(context.Context) (contract.Trust, contract.AccessMode, error) {
			return contract.TrustEdit, contract.AccessManaged, nil
		},
	}
	return w
}

func (w *world) write(name, text string, mode os.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

// run runs an operation as the gate does, without its rules.
func (w *world) run(name, args string, p contract.Principal) (data map[string]any, truncated bool, err error) {
	w.t.Helper()
	for _, o := range overview.New(w.Config).Ops() {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(json.RawMessage(args))
		if err != nil {
			return nil, false, err
		}
		prepared, err := b.Prepare(context.Background(), contract.Call{Principal: p})
		if err != nil {
			return nil, false, err
		}
		raw, err := op.Encode(prepared.Done.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		return data, prepared.Done.Truncated, json.Unmarshal(raw, &data)
	}
	w.t.Fatal(name)
	return nil, false, nil
}

func (w *world) overview() map[string]any {
	w.t.Helper()
	d, _, err := w.run("project_overview", "{}", contract.LocalOwner())
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func words(v any) []string {
	var list []string
	for _, x := range v.([]any) {
		list = append(list, x.(string))
	}
	return list
}

// TestOverview: the context, the rules, and a picture of the project; secrets are not in it.
func TestOverview(t *testing.T) {
	w := newWorld(t, map[string]string{
		"README.md": "# Tea\n", "go.mod": "module tea\n", "go.sum": "", "a.go": "package a\n", "b.go": "package a\n", "s.py": "x = 1\n",
		".env": "TOKEN=hunter2\n", "node_modules/x/i.js": "1", ".git/HEAD": "ref: refs/heads/teapot\n", "AGENTS.md": "obey me\n",
	})
	w.Note = ".dodo.json is not used: it is broken."
	d := w.overview()
	if d["workspaceId"] != "ws_1" || d["workspaceEpoch"] != "boot_1" || d["root"] != w.root || d["trustMode"] != "edit" || d["accessMode"] != "managed" {
		t.Errorf("%v", d)
	}
	if got := words(d["languages"]); !slices.Equal(got, []string{"Go", "Python"}) {
		t.Errorf("languages %v", got)
	}
	if got := words(d["manifests"]); !slices.Equal(got, []string{"go.mod"}) || d["packageManager"] != "go" {
		t.Errorf("manifests %v, %v", got, d["packageManager"])
	}
	if g := d["git"].(map[string]any); g["isRepo"] != true || g["branch"] != "teapot" {
		t.Errorf("git %v", g)
	}
	if docs := d["docs"].([]any); len(docs) != 2 || docs[0].(map[string]any)["preview"] != "# Tea\n" {
		t.Errorf("docs %v", docs)
	}
	if d["projectConfigNote"] != w.Note || d["instructions"] == "" {
		t.Errorf("%v", d["projectConfigNote"])
	}
	all, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{".env", "hunter2", "HEAD", "node_modules"} {
		if strings.Contains(string(all), hidden) {
			t.Errorf("%s is in the overview", hidden)
		}
	}
}

// TestOverviewOfLittle: an empty workspace, and one of no repository.
func TestOverviewOfLittle(t *testing.T) {
	d := newWorld(t, nil).overview()
	for _, list := range []string{"languages", "manifests", "docs"} {
		if len(d[list].([]any)) != 0 {
			t.Errorf("%s: %v", list, d[list])
		}
	}
	if g := d["git"].(map[string]any); g["isRepo"] != false || d["treeTruncated"] != false {
		t.Errorf("%v", d)
	}
}

// TestDocumentsAreCut: at a character, and never made into something else.
func TestDocumentsAreCut(t *testing.T) {
	w := newWorld(t, map[string]string{
		"README.md": strings.Repeat("x", 1999) + "é and more", "AGENTS.md": "bad \xff byte", "CLAUDE.md": "binary \x00",
	})
	docs := w.overview()["docs"].([]any)
	if len(docs) != 2 {
		t.Fatalf("%v", docs)
	}
	long, bad := docs[0].(map[string]any), docs[1].(map[string]any)
	if p := long["preview"].(string); p != strings.Repeat("x", 1999) || !strings.Contains(long["note"].(string), "beginning only") {
		t.Errorf("%d bytes, %v", len(p), long["note"])
	}
	if p := bad["preview"].(string); !utf8.ValidString(p) || p != "bad \uFFFD byte" {
		t.Errorf("%q", p)
	}
}

// TestDocumentsShowWhatIsHidden: what a reader of the text would not see is written out.
func TestDocumentsShowWhatIsHidden(t *testing.T) {
	w := newWorld(t, map[string]string{"README.md": "\ufeffa\r\nb\tc\x1b[8mhidden\u202edne\r\n"})
	docs := w.overview()["docs"].([]any)
	if p := docs[0].(map[string]any)["preview"].(string); p != "a\nb\tc\\u{1b}[8mhidden\\u{202e}dne\n" {
		t.Errorf("%q", p)
	}
}

// TestTreeIsBounded: a large workspace gives a part and says so.
func TestTreeIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 400 {
		w.write(filepath.Join("d", strings.Repeat("n", 40)+string(rune('a'+i%26))+string(rune('a'+i/26))), "", 0o644)
	}
	d, truncated, err := w.run("project_overview", "{}", contract.LocalOwner())
	if err != nil || !truncated || d["treeTruncated"] != true {
		t.Fatalf("%v %v", truncated, err)
	}
	if raw, _ := json.Marshal(d); len(raw) > 12_000 {
		t.Errorf("%d bytes", len(raw))
	}
}

// TestSurfaceIsSaid: only the small surfaces count their tools.
func TestSurfaceIsSaid(t *testing.T) {
	w := newWorld(t, nil)
	w.Surface = overview.Surface{Kind: "full", Compact: 4, Full: 30, Hybrid: 20}
	if d := w.overview(); d["toolSurface"] != nil || d["fullToolCount"] != nil {
		t.Errorf("%v", d["toolSurface"])
	}
	w.Surface.Kind = "compact"
	if d := w.overview(); d["toolSurface"] != "compact" || d["fullToolCount"] != 30.0 || d["hybridToolCount"] != nil {
		t.Errorf("%v", d)
	}
	w.Surface.Kind = "hybrid"
	if d := w.overview(); d["hybridToolCount"] != 20.0 {
		t.Errorf("%v", d)
	}
}

// TestToolsAreNeverOfTheProject: a program in the workspace is not taken for a tool, also
// when the path begins with it.
func TestToolsAreNeverOfTheProject(t *testing.T) {
	w := newWorld(t, nil)
	w.write("bin/git", "#!/bin/sh\n", 0o755)
	outside := t.TempDir()
	for name, mode := range map[string]os.FileMode{"make": 0o755, "node": 0o644} {
		if err := os.WriteFile(filepath.Join(outside, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	w.Path = []string{filepath.Join(w.root, "bin"), "bin", "", outside}
	d, _, err := w.run("environment_info", "{}", contract.LocalOwner())
	if err != nil {
		t.Fatal(err)
	}
	tools := d["tools"].(map[string]any)
	if len(tools) != 16 || tools["git"] != nil || tools["node"] != nil || tools["make"] != filepath.Join(outside, "make") || d["shell"] != nil {
		t.Errorf("%v", d)
	}
}

// TestChoice: the list to choose from is an answer of project_overview as its schema says.
func TestChoice(t *testing.T) {
	var many []overview.Project
	for i := range 150 {
		many = append(many, overview.Project{ProjectID: fmt.Sprint("prj_", i), DisplayName: "x", WorkspaceID: "ws_1", Availability: "ready"})
	}
	c := overview.Choose(many, contract.AccessPersonal)
	reply := contract.Success("", "", c.Result)
	reply.Most = 1 << 20
	encoded, err := reply.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Op.Fits(encoded); err != nil {
		t.Error(err)
	}
	if !c.Result.Truncated || c.Op.Name != "project_overview" {
		t.Errorf("%+v", c.Result.Truncated)
	}
}

// TestApprovalStatusIsOnesOwn: a caller sees its own questions and no other's.
func TestApprovalStatusIsOnesOwn(t *testing.T) {
	w := newWorld(t, nil)
	asked, used, err := w.store.Consume(context.Background(), state.Question{
		Workspace: "ws_1", Epoch: "boot_1", Principal: contract.LocalGrant, Tool: "write_file", Digest: "sha256:1", Summary: "create 1 file",
	}, time.Minute)
	if err != nil || used {
		t.Fatal(err, used)
	}
	args := `{"approvalId":"` + asked.ID + `"}`
	d, _, err := w.run("approval_status", args, contract.LocalOwner())
	if err != nil || d["status"] != "pending" || d["tool"] != "write_file" || d["summary"] != "create 1 file" {
		t.Errorf("%v %v", d, err)
	}
	if _, _, err := w.run("approval_status", args, contract.Principal{GrantID: "g2"}); !errors.Is(err, contract.NotFound) {
		t.Errorf("another caller: %v", err)
	}
}
