package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/search"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// plant writes files below a new directory, and returns it.
func plant(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, text := range files {
		full := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, []byte(text), 0o644))
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, root string) *workspace.Tree {
	t.Helper()
	tree, err := workspace.Open(root, workspace.Options{})
	must(t, err)
	t.Cleanup(func() { tree.Close() })
	return tree
}

// clock is a time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func service(t testing.TB, files map[string]string) (*search.Service, *search.Config, *clock) {
	t.Helper()
	at := &clock{time.Unix(1e9, 0)}
	c := search.Config{
		Tree: open(t, plant(t, files)), Workspace: "ws_1", Epoch: "e1",
		Limits: contract.DefaultLimits(), Now: at.now,
	}
	return search.New(c), &c, at
}

// call runs an operation as a caller and returns its answer as a client reads it.
func call(s *search.Service, who, name, args string) (answer, error) {
	for _, o := range s.Ops() {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(json.RawMessage(args))
		if err != nil {
			return answer{}, err
		}
		act, err := b.Prepare(context.Background(), contract.Call{Principal: contract.Principal{GrantID: who}})
		if err != nil {
			return answer{}, err
		}
		a := answer{Truncated: act.Done.Truncated, Cursor: act.Done.NextCursor, Warnings: act.Done.Warnings}
		data, err := op.Encode(act.Done.Data)
		if err != nil {
			return answer{}, err
		}
		a.size = len(data)
		return a, json.Unmarshal(data, &a.Data)
	}
	return answer{}, errors.New("no such operation")
}

type answer struct {
	Data      data
	Truncated bool
	Cursor    string
	Warnings  []string
	size      int
}

type data struct {
	Matches []struct {
		Path           string
		Line, Column   int
		LineText       string
		LineTextColumn int
		Before, After  []string
	}
	Files []struct {
		Path    string
		Matches int
		Size    int64
		MtimeMs int64
	}
	TotalMatches, TotalFiles, FilesScanned, ProjectCount, Count int
	Backend                                                     string
	Skipped                                                     struct{ Large, Binary, Unreadable int }
	Project                                                     *project
	Sources                                                     []struct{ Path, Hash string }
	Projects                                                    []struct {
		TotalMatches int
		Project      project
		Matches      []struct{ Path string }
	}
	Failures []struct {
		ProjectID, Code string
		Retryable       bool
	}
}

type project struct {
	ProjectID, WorkspaceID, WorkspaceEpoch, SourceHash string
	ReadOnly, Available                                bool
}

// lines are the matches as "path:line:column text".
func (a answer) lines() []string {
	list := []string{}
	for _, m := range a.Data.Matches {
		list = append(list, fmt.Sprintf("%s:%d:%d %s", m.Path, m.Line, m.Column, m.LineText))
	}
	return list
}

func (a answer) files() []string {
	list := []string{}
	for _, f := range a.Data.Files {
		list = append(list, fmt.Sprintf("%s %d", f.Path, f.Matches))
	}
	return list
}

// ask calls search_code and fails the test on an error.
func ask(t testing.TB, s *search.Service, args string) answer {
	t.Helper()
	a, err := call(s, "me", "search_code", args)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return a
}

func want(t testing.TB, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// refused checks the code of an error and that it says what to do.
func refused(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	f := fault.From(err)
	if f.Code != code || f.Hint == "" {
		t.Fatalf("error %v with hint %q, want %s", err, f.Hint, code)
	}
	return f
}

var small = map[string]string{
	"a.go":              "package a\n\n// needle here\nfunc A() { needle() }\n",
	"a/b.go":            "x needle\r\nlast Needle",
	"a-b.txt":           "needle needle\n",
	".gitignore":        "ignored/\n",
	"ignored/c.go":      "needle\n",
	".env":              "needle=secret\n",
	".git/config":       "needle\n",
	"wide.txt":          "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\n\x00",
	"bom.txt":           "\xef\xbb\xbfneedle\n",
	"bin":               "needle\x00\n",
	"latebin":           "needle\n" + strings.Repeat("x", 70<<10) + "\x00",
	"pair.txt":          "\u00e9\U0001F600 needle\n",
	"node_modules/m.js": "needle\n",
}

func TestSearch(t *testing.T) {
	s, _, _ := service(t, small)
	a := ask(t, s, `{"query":"needle"}`)
	want(t, []string{
		"a/b.go:1:3 x needle", "a-b.txt:1:1 needle needle", "a.go:3:4 // needle here", "a.go:4:12 func A() { needle() }",
		"bom.txt:1:1 needle", "pair.txt:1:5 \u00e9\U0001F600 needle", "wide.txt:1:1 needle",
	}, a.lines())
	want(t, []string{"a/b.go 1", "a-b.txt 1", "a.go 2", "bom.txt 1", "pair.txt 1", "wide.txt 1"}, a.files())
	if a.Data.TotalMatches != 7 || a.Data.TotalFiles != 6 || a.Data.Backend != "builtin" || a.Data.FilesScanned != 7 || a.Data.Skipped.Binary != 2 || a.Truncated || a.Cursor != "" {
		t.Errorf("%+v", a)
	}
	want(t, []string{"a/b.go 2", "a-b.txt 1", "a.go 2", "bom.txt 1", "ignored/c.go 1", "node_modules/m.js 1", "pair.txt 1", "wide.txt 1"},
		ask(t, s, `{"query":"NEEDLE","caseSensitive":false,"includeIgnored":true,"outputMode":"count"}`).files())
	want(t, []string{"a/b.go:1:3 x needle", "a/b.go:2:6 last Needle"}, ask(t, s, `{"query":"[nN]eedle$|needle\\r$","mode":"regex","paths":["a"]}`).lines())
	files := ask(t, s, `{"query":"needle","outputMode":"files","fileGlob":"*.go"}`)
	if want(t, []string{"a/b.go 1", "a.go 2"}, files.files()); files.Data.Matches != nil {
		t.Error("mode files shows lines")
	}
	want(t, []string{"a/b.go 1"}, ask(t, s, `{"query":"needle","outputMode":"files","fileGlob":"a/**"}`).files())
	want(t, []string{"ignored/c.go 1"}, ask(t, s, `{"query":"needle","outputMode":"files","paths":["ignored/c.go"]}`).files())
	want(t, []string{"a/b.go 1", "a.go 2"}, ask(t, s, `{"query":"needle","outputMode":"files","paths":["a.go","a","./a/b.go","a.go"]}`).files())
	if a := ask(t, s, `{"query":"nowhere to be found"}`); a.Data.Matches == nil || a.Data.Files == nil || a.Data.FilesScanned != 8 {
		t.Errorf("%+v", a)
	}
}

func TestContext(t *testing.T) {
	s, _, _ := service(t, map[string]string{"f": "1\r\n2\n3 x\n4\n5 x\n6"})
	show := func(args string) string {
		var parts []string
		for _, m := range ask(t, s, args).Data.Matches {
			parts = append(parts, fmt.Sprintf("%q %s %q", m.Before, m.LineText, m.After))
		}
		return strings.Join(parts, "; ")
	}
	for args, want := range map[string]string{
		`{"query":"x","contextLines":1}`:                   `["2"] 3 x ["4"]; ["4"] 5 x ["6"]`,
		`{"query":"x","contextLines":9}`:                   `["1" "2"] 3 x ["4" "5 x" "6"]; ["1" "2" "3 x" "4"] 5 x ["6"]`,
		`{"query":"x","contextLines":1,"contextBefore":0}`: `[] 3 x ["4"]; [] 5 x ["6"]`,
		`{"query":"1","contextBefore":3}`:                  `[] 1 []`,
		`{"query":"6","contextAfter":3,"contextBefore":1}`: `["5 x"] 6 []`,
	} {
		if got := show(args); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("\u00e9", 3000) + "needle" + strings.Repeat("y", 3000)
	s, _, _ := service(t, map[string]string{"a": long, "b": "needle" + long, "c": strings.Repeat("z", 500), "d": strings.Repeat("\u00e9", 500) + "q"})
	a := ask(t, s, `{"query":"needle"}`)
	if m := a.Data.Matches[0]; m.Column != 3001 || m.LineTextColumn != 2901 || m.LineText != strings.Repeat("\u00e9", 100)+"needle"+strings.Repeat("y", 394) {
		t.Errorf("%+v", m)
	}
	if m := a.Data.Matches[1]; m.Column != 1 || m.LineTextColumn != 0 || m.LineText != "needle"+strings.Repeat("\u00e9", 494) {
		t.Errorf("%+v", m)
	}
	if m := ask(t, s, `{"query":"zz"}`).Data.Matches[0]; len(m.LineText) != 500 {
		t.Errorf("%+v", m)
	}
	if m := ask(t, s, `{"query":"q"}`).Data.Matches[0]; m.LineText != strings.Repeat("\u00e9", 100)+"q" || m.LineTextColumn != 401 {
		t.Errorf("%+v", m)
	}
}

func TestPaging(t *testing.T) {
	files := map[string]string{}
	for i := range 7 {
		files[fmt.Sprintf("d%d/f", i)] = strings.Repeat("hit\nno\n", 4)
	}
	s, c, at := service(t, files)
	whole := ask(t, s, `{"query":"hit"}`)
	var got []string
	cursor := ""
	for range 10 {
		a := ask(t, s, fmt.Sprintf(`{"query":"hit","maxResults":3,"cursor":%q}`, cursor))
		if a.Data.TotalMatches != 28 {
			t.Errorf("of a page: %d in all", a.Data.TotalMatches)
		}
		got = append(got, a.lines()...)
		if cursor = a.Cursor; cursor == "" {
			break
		} else if !a.Truncated {
			t.Error("a page with a cursor is not called truncated")
		}
	}
	want(t, whole.lines(), got)

	first := ask(t, s, `{"query":"hit","maxResults":3}`).Cursor
	again := fmt.Sprintf(`{"query":"hit","cursor":%q}`, first)
	_, err := call(s, "other", "search_code", again)
	refused(t, err, contract.Forbidden)
	_, err = call(s, "me", "search_code", fmt.Sprintf(`{"query":"no","cursor":%q}`, first))
	refused(t, err, contract.InvalidInput)
	_, err = call(s, "me", "search_code", fmt.Sprintf(`{"query":"hit","outputMode":"count","cursor":%q}`, first))
	refused(t, err, contract.InvalidInput)
	if a := ask(t, s, again); len(a.Data.Matches) != 25 {
		t.Errorf("%d matches after the first three", len(a.Data.Matches))
	}
	_, err = call(s, "me", "search_code", again)
	if f := refused(t, err, contract.NotFound); !f.Retryable {
		t.Error("a used cursor is not retryable")
	}
	last := ask(t, s, `{"query":"hit","maxResults":3}`).Cursor
	at.at = at.at.Add(5 * time.Minute)
	_, err = call(s, "me", "search_code", fmt.Sprintf(`{"query":"hit","cursor":%q}`, last))
	refused(t, err, contract.NotFound)
	other := *c
	other.Epoch = "e2"
	_, err = call(search.New(other), "me", "search_code", fmt.Sprintf(`{"query":"hit","cursor":%q}`, last))
	refused(t, err, contract.NotFound)

	// A search that fails does not use the cursor up.
	again = fmt.Sprintf(`{"query":"hit","paths":["d0","d1"],"cursor":%q}`, ask(t, s, `{"query":"hit","maxResults":3,"paths":["d0","d1"]}`).Cursor)
	gone := filepath.Join(c.Tree.Root(), "d1")
	must(t, os.Rename(gone, gone+".away"))
	_, err = call(s, "me", "search_code", again)
	refused(t, err, contract.NotFound)
	must(t, os.Rename(gone+".away", gone))
	if a := ask(t, s, again); len(a.Data.Matches) != 5 {
		t.Errorf("%d matches after a search that failed", len(a.Data.Matches))
	}
}

// An answer stays within its size, says so, and goes on.
func TestSize(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("some/where/file%03d", i)] = strings.Repeat("\x01hit ", 300) + "\n"
	}
	s, c, _ := service(t, files)
	for args, most := range map[string]int{
		`{"query":"hit"}`: 10_000 + 1000, `{"query":"hit","maxResults":100}`: c.Limits.ToolContentBytes - 3000,
		`{"query":"hit","contextLines":10}`: c.Limits.ToolContentBytes - 3000,
	} {
		a := ask(t, s, args)
		if a.size > most || a.size < most/2 || a.Cursor == "" || !a.Truncated || a.Data.TotalMatches != 300 {
			t.Errorf("%s: %d bytes, at most %d; %d matches, cursor %q", args, a.size, most, len(a.Data.Matches), a.Cursor)
		}
	}
	c.Limits.ToolContentBytes = 8192
	if a := ask(t, search.New(*c), `{"query":"hit","contextLines":10,"maxResults":100}`); len(a.Data.Matches) == 0 || a.size > 8192 {
		t.Errorf("the smallest answer has %d matches in %d bytes", len(a.Data.Matches), a.size)
	}
	if a := ask(t, s, `{"query":"hit","outputMode":"files","maxResults":100}`); len(a.Data.Files) != 100 || !a.Truncated || a.Cursor != "" || a.Data.TotalFiles != 300 {
		t.Errorf("%d files, truncated %v, cursor %q", len(a.Data.Files), a.Truncated, a.Cursor)
	}
}

func TestSkips(t *testing.T) {
	_, c, _ := service(t, map[string]string{"large": "needle " + strings.Repeat("x", 20000), "small": "needle"})
	must(t, os.Link(filepath.Join(c.Tree.Root(), "small"), filepath.Join(c.Tree.Root(), "other")))
	must(t, os.WriteFile(filepath.Join(c.Tree.Root(), "here"), []byte("needle"), 0o644))
	c.Limits.ReadFileBytes = 16384
	s := search.New(*c)
	a := ask(t, s, `{"query":"needle"}`)
	want(t, []string{"here:1:1 needle"}, a.lines())
	if a.Data.Skipped.Large != 1 || a.Data.Skipped.Unreadable != 2 || len(a.Warnings) != 2 {
		t.Errorf("%+v", a)
	}
}

func TestRefusals(t *testing.T) {
	s, _, _ := service(t, small)
	for args, code := range map[string]fault.Code{
		`{"query":"a","paths":["../x"]}`:                                         contract.PathDenied,
		`{"query":"a","paths":[".env"]}`:                                         contract.SecretPathDenied,
		`{"query":"a","paths":[".git"]}`:                                         contract.PathDenied,
		`{"query":"a","paths":["nothing"]}`:                                      contract.NotFound,
		`{"query":"a","fileGlob":"["}`:                                           contract.InvalidInput,
		`{"query":"(","mode":"regex"}`:                                           contract.InvalidInput,
		`{"query":"a\nb"}`:                                                       contract.InvalidInput,
		`{"query":"(?=a)","mode":"regex"}`:                                       contract.InvalidInput,
		`{"query":"(a)\\1","mode":"regex"}`:                                      contract.InvalidInput,
		`{"query":"((a{9}){90}){9}","mode":"regex"}`:                             contract.InvalidInput,
		`{"query":"(a{90}b{90}){50}|(c{90}){9}","mode":"regex"}`:                 contract.InvalidInput,
		`{"query":"a","projectId":"prj_00000000"}`:                               contract.NotSupported,
		`{"query":"a","projectId":"x"}`:                                          contract.InvalidInput,
		`{"query":"a","projectIds":["prj_00000000","prj_00000000"]}`:             contract.InvalidInput,
		`{"query":"a","projectId":"prj_00000000","projectIds":["prj_00000001"]}`: contract.InvalidInput,
		`{"query":"a","projectIds":["prj_00000001"],"cursor":"cur_1"}`:           contract.InvalidInput,
		`{"query":"a","cursor":"cur_1"}`:                                         contract.NotFound,
	} {
		_, err := call(s, "me", "search_code", args)
		if f := fault.From(err); f == nil || f.Code != code || f.Hint == "" {
			t.Errorf("%s: %v (hint %q), want %s", args, err, f.Hint, code)
		}
	}
	_, err := call(s, "me", "search_code", `{"query":"abc(d","mode":"regex"}`)
	if f := refused(t, err, contract.InvalidInput); f.Detail["at"] != 0 || f.Detail["fragment"] != "abc(d" {
		t.Errorf("%+v", f.Detail)
	}
	_, err = call(s, "me", "search_code", `{"query":"abc[z-a]","mode":"regex"}`)
	if f := refused(t, err, contract.InvalidInput); f.Detail["at"] != 4 || f.Detail["fragment"] != "z-a" {
		t.Errorf("%+v", f.Detail)
	}
}

func TestTimeout(t *testing.T) {
	files := map[string]string{}
	for i := range 4 {
		files[fmt.Sprint("f", i)] = strings.Repeat("\u00e4\u00f6xy", 1<<18)
	}
	_, c, _ := service(t, files)
	c.Limits.SearchTimeoutMs = 100
	start := time.Now()
	_, err := call(search.New(*c), "me", "search_code", `{"query":"(\\pL{1,90}y){9}[^\\pL]","mode":"regex"}`)
	if f := refused(t, err, contract.Timeout); !f.Retryable {
		t.Error("not retryable")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// others are projects of the owner for tests.
type others map[string]workspace.View

func (o others) View(_ context.Context, who contract.Principal, id string) (workspace.View, error) {
	v, ok := o[id]
	if !ok || who.GrantID != "me" {
		return v, fault.New(contract.Forbidden, "not for this caller").WithHint("ask the owner")
	}
	return v, nil
}

func TestProjects(t *testing.T) {
	_, c, _ := service(t, map[string]string{"own": "needle"})
	projects := others{}
	for _, id := range []string{"prj_00000001", "prj_00000002"} {
		tree := open(t, plant(t, map[string]string{id + ".txt": strings.Repeat("needle\n", 10)}))
		projects[id] = workspace.View{Tree: tree, Project: workspace.Project{ProjectID: id, WorkspaceID: "ws_" + id, WorkspaceEpoch: "e", Available: true, ReadOnly: true}}
	}
	c.Projects = projects
	s := search.New(*c)
	a := ask(t, s, `{"query":"needle","projectId":"prj_00000001","maxResults":2}`)
	p := a.Data.Project
	if p == nil || p.ProjectID != "prj_00000001" || p.WorkspaceID != "ws_prj_00000001" || !p.ReadOnly || !p.Available || a.Cursor == "" {
		t.Fatalf("%+v", a)
	}
	if h := contract.Hash([]byte(strings.Repeat("needle\n", 10))); len(a.Data.Sources) != 1 || a.Data.Sources[0].Hash != h {
		t.Errorf("%+v", a.Data.Sources)
	}
	_, err := call(s, "me", "search_code", fmt.Sprintf(`{"query":"needle","cursor":%q}`, a.Cursor))
	if err == nil {
		t.Error("a cursor of a project goes on in the workspace")
	}
	a = ask(t, s, `{"query":"needle","projectIds":["prj_00000001","prj_00000009","prj_00000002"],"maxResults":9}`)
	if len(a.Data.Projects) != 2 || a.Data.ProjectCount != 3 || a.Data.TotalMatches != 20 || !a.Truncated || a.Cursor != "" {
		t.Fatalf("%+v", a)
	}
	for i, p := range a.Data.Projects {
		if len(p.Matches) != 3 || p.TotalMatches != 10 || p.Project.ProjectID != []string{"prj_00000001", "prj_00000002"}[i] {
			t.Errorf("%+v", p)
		}
	}
	if f := a.Data.Failures; len(f) != 1 || f[0].ProjectID != "prj_00000009" || f[0].Code != "FORBIDDEN" {
		t.Errorf("%+v", f)
	}
}

func TestGlobFiles(t *testing.T) {
	s, c, _ := service(t, small)
	names := func(args string) []string {
		t.Helper()
		a, err := call(s, "me", "glob_files", args)
		must(t, err)
		list := []string{}
		for _, f := range a.Data.Files {
			list = append(list, f.Path)
		}
		return append(list, fmt.Sprint(a.Data.Count, a.Truncated))
	}
	for i, name := range []string{"bom.txt", "a/b.go", "a.go"} {
		at := time.Unix(2e9+int64(i), 0)
		must(t, os.Chtimes(filepath.Join(c.Tree.Root(), name), at, at))
	}
	want(t, []string{"a/b.go", "a.go", "2 false"}, names(`{"pattern":"*.go"}`))
	want(t, []string{"a/b.go", "a.go", "ignored/c.go", "3 false"}, names(`{"pattern":"*.go","includeIgnored":true}`))
	want(t, []string{"a.go", "a/b.go", "2 false"}, names(`{"pattern":"*.go","sortBy":"mtime"}`))
	want(t, []string{"a.go", "a/b.go", "bom.txt", "6 true"}, names(`{"pattern":"*.{go,txt}","sortBy":"mtime","maxResults":3}`))
	want(t, []string{"a/b.go", "1 false"}, names(`{"pattern":"*.go","path":"a"}`))
	want(t, []string{"a/b.go", "1 false"}, names(`{"pattern":"a/*"}`))
	want(t, []string{"a/b.go", "1 false"}, names(`{"pattern":"/b.go","path":"a"}`))
	want(t, []string{"0 false"}, names(`{"pattern":"*.env"}`))
	a, err := call(s, "me", "glob_files", `{"pattern":"a.go"}`)
	must(t, err)
	if f := a.Data.Files[0]; f.Size != int64(len(small["a.go"])) || f.MtimeMs != 2000000002000 {
		t.Errorf("%+v", f)
	}
	for args, code := range map[string]fault.Code{
		`{"pattern":"["}`: contract.InvalidInput, `{"pattern":"a","path":"a.go"}`: contract.PathDenied, `{"pattern":"a","path":".git"}`: contract.PathDenied,
		`{"pattern":"a","path":"none"}`: contract.NotFound,
	} {
		_, err := call(s, "me", "glob_files", args)
		refused(t, err, code)
	}
}

// The operations can be shown without a workspace.
func TestOpsOfNoService(t *testing.T) {
	for _, o := range (*search.Service)(nil).Ops() {
		if len(o.InputSchema()) == 0 || len(o.OutputSchema()) == 0 || o.Gateway != "dodo_read" || !o.ReadOnly {
			t.Errorf("%+v", o.Def)
		}
	}
}

// Of many files, those shown are the first in the order asked for, and all are counted.
func TestGlobFilesKeepsTheFirst(t *testing.T) {
	files := map[string]string{}
	for i := range 700 {
		files[fmt.Sprintf("%02d/f%03d.x", i%13, i)] = ""
	}
	s, c, _ := service(t, files)
	for i, name := range []string{"07/f007.x", "12/f688.x"} {
		at := time.Unix(4e9+int64(i), 0)
		must(t, os.Chtimes(filepath.Join(c.Tree.Root(), name), at, at))
	}
	for args, first := range map[string]string{
		`{"pattern":"*.x","maxResults":2}`:                  "00/f000.x 00/f013.x",
		`{"pattern":"*.x","maxResults":2,"sortBy":"mtime"}`: "12/f688.x 07/f007.x",
		`{"pattern":"**/f*","maxResults":1}`:                "00/f000.x",
		`{"pattern":"1*/*","maxResults":1}`:                 "10/f010.x",
	} {
		a, err := call(s, "me", "glob_files", args)
		must(t, err)
		var got []string
		for _, f := range a.Data.Files {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != first || !a.Truncated || a.Data.Count != 700 && !strings.Contains(args, "1*") {
			t.Errorf("%s: %v of %d, truncated %v", args, got, a.Data.Count, a.Truncated)
		}
	}
}

// What is found for a change is all there is, or it is an error.
func TestFind(t *testing.T) {
	s, c, _ := service(t, small)
	find := func(paths []workspace.Path, glob string, max int) string {
		t.Helper()
		list, err := s.Find(context.Background(), "needle", paths, glob, false, max)
		must(t, err)
		return fmt.Sprint(list)
	}
	if got := find(nil, "*.go", 10); got != "[a/b.go a.go]" {
		t.Error(got)
	}
	if got := find(nil, "", 2); got != "[a/b.go a-b.txt]" {
		t.Error(got)
	}
	if testing.Short() {
		return
	}
	for i := range 20_001 {
		dir := filepath.Join(c.Tree.Root(), "many", fmt.Sprint(i%20))
		if i < 20 {
			must(t, os.MkdirAll(dir, 0o755))
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
	}
	_, err := s.Find(context.Background(), "needle", nil, "", false, 10)
	refused(t, err, contract.ResourceLimit)
	if a := ask(t, s, `{"query":"needle"}`); !a.Truncated || len(a.Warnings) != 1 || a.Data.FilesScanned > 20_000 {
		t.Errorf("%+v", a)
	}
}

// TestNamesThatNoToolTakes: what is found and cannot be opened by anybody is said to be that.
func TestNamesThatNoToolTakes(t *testing.T) {
	s, _, _ := service(t, map[string]string{"a": "needle", "b\xff": "needle", `c\d`: "needle"})
	a, err := call(s, "g", "search_code", `{"query":"needle"}`)
	must(t, err)
	if !strings.Contains(strings.Join(a.Warnings, ""), "cannot be opened: 2") {
		t.Errorf("warnings %q", a.Warnings)
	}
}
