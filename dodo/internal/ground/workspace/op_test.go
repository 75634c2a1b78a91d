package workspace

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// ask runs an operation and decodes its data into out.
func ask(t testing.TB, s *Service, name, args string, out any) (contract.Result, error) {
	t.Helper()
	for _, o := range s.Ops() {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(json.RawMessage(args))
		if err != nil {
			return contract.Result{}, err
		}
		p, err := b.Prepare(t.Context(), contract.Call{Principal: contract.LocalOwner()})
		if err != nil {
			return contract.Result{}, err
		}
		raw, err := op.Encode(contract.Success("ws_1", "boot_1", *p.Done))
		must(t, err)
		if len(raw) > s.limits.ToolContentBytes {
			t.Errorf("%s %s: an answer of %d bytes", name, args, len(raw))
		}
		raw, err = op.Encode(p.Done.Data)
		must(t, err)
		must(t, json.Unmarshal(raw, out))
		return *p.Done, nil
	}
	t.Fatalf("there is no %s", name)
	return contract.Result{}, nil
}

func service(t testing.TB, dir string, o Options) *Service {
	return NewService(tree(t, dir, o), contract.DefaultLimits(), nil)
}

func TestOpsCanBeShownWithoutAService(t *testing.T) {
	var s *Service
	var names []string
	for _, o := range s.Ops() {
		names = append(names, o.Name)
		if !o.ReadOnly || o.Destructive || !o.Idempotent || o.OpenWorld || o.Gateway != "dodo_read" || o.Scope != contract.ScopeRead {
			t.Errorf("%s: %+v", o.Name, o.Def)
		}
	}
	if diff := cmp.Diff([]string{"list_files", "read_files", "read_image", "read_instructions"}, names); diff != "" {
		t.Error(diff)
	}
}

type listing struct {
	Tree       json.RawMessage
	EntryCount int
	Project    *Project
}

func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{
		"a.txt": "hello", "b/c/d/e.txt": "", "b/x": "1", "empty/": "", "node_modules/m": "", ".env": "secret", ".git/config": "",
	})
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	s := service(t, dir, Options{})
	var got listing
	a, err := ask(t, s, "list_files", `{}`, &got)
	must(t, err)
	want := `{"path":".","type":"dir","children":[{"path":"a.txt","type":"file","size":5},` +
		`{"path":"b","type":"dir","children":[{"path":"b/c","type":"dir"},{"path":"b/x","type":"file","size":1}]},` +
		`{"path":"empty","type":"dir","children":[]}]}`
	if string(got.Tree) != want || got.EntryCount != 5 || a.Truncated {
		t.Errorf("%d entries, truncated %v: %s", got.EntryCount, a.Truncated, got.Tree)
	}
	a, err = ask(t, s, "list_files", `{"path":"b/","depth":10}`, &got)
	must(t, err)
	want = `{"path":"b","type":"dir","children":[{"path":"b/c","type":"dir","children":[{"path":"b/c/d","type":"dir","children":[{"path":"b/c/d/e.txt","type":"file","size":0}]}]},{"path":"b/x","type":"file","size":1}]}`
	if string(got.Tree) != want || got.EntryCount != 4 || a.Truncated {
		t.Errorf("%d entries: %s", got.EntryCount, got.Tree)
	}
	// What does not fit is what is deepest.
	a, err = ask(t, s, "list_files", `{"depth":3,"maxEntries":4,"includeIgnored":true}`, &got)
	must(t, err)
	want = `{"path":".","type":"dir","children":[{"path":"a.txt","type":"file","size":5},{"path":"b","type":"dir","truncated":true},{"path":"empty","type":"dir","truncated":true},{"path":"node_modules","type":"dir","truncated":true}]}`
	if string(got.Tree) != want || got.EntryCount != 4 || !a.Truncated {
		t.Errorf("%d entries: %s", got.EntryCount, got.Tree)
	}
	for path, code := range map[string]fault.Code{
		"a.txt": contract.PathDenied, "none": contract.NotFound, ".git": contract.PathDenied, ".ssh": contract.SecretPathDenied,
		"link": contract.PathDenied, "..": contract.PathDenied, "": contract.PathDenied,
	} {
		_, err := ask(t, s, "list_files", fmt.Sprintf(`{"path":%q}`, path), &got)
		refused(t, err, code)
	}
	_, err = ask(t, s, "list_files", `{"projectId":"prj_0123456789"}`, &got)
	refused(t, err, contract.NotSupported)
}

func TestListFilesIsBounded(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("é", 100)
	for i := range 30 {
		for j := range 30 {
			files(t, dir, map[string]string{fmt.Sprintf("%s%d/%s%d", long, i, long, j): ""})
		}
	}
	s := service(t, dir, Options{})
	s.limits.TreeEntriesMax = 5000
	for args, most := range map[string]int{`{}`: contract.UsualAnswer, `{"depth":10,"maxEntries":2000}`: s.limits.Room()} {
		var got listing
		a, err := ask(t, s, "list_files", args, &got)
		must(t, err)
		if !a.Truncated || len(got.Tree) > most+1000 || len(got.Tree) < most/2 {
			t.Errorf("%s: %d bytes, truncated %v", args, len(got.Tree), a.Truncated)
		}
	}
}

type project struct{ tree *Tree }

func (p project) View(_ context.Context, _ contract.Principal, id string) (View, error) {
	if id != "prj_0123456789" {
		return View{}, fault.New(contract.Forbidden, "not yours").WithHint("ask the owner")
	}
	return View{p.tree, Project{ProjectID: id, WorkspaceID: "ws_2", ReadOnly: true}}, nil
}

func TestReadingFromAnotherProject(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	files(t, here, map[string]string{"f": "here"})
	files(t, there, map[string]string{"f": "there", ".env": "secret"})
	s := NewService(tree(t, here, Options{}), contract.DefaultLimits(), project{tree(t, there, Options{})})
	var got reading
	_, err := ask(t, s, "read_files", `{"files":[{"path":"f"},{"path":".env"}],"projectId":"prj_0123456789"}`, &got)
	must(t, err)
	if got.Files[0].text() != "there" || got.Errors[0].Error.Code != contract.SecretPathDenied || got.Project.WorkspaceID != "ws_2" {
		t.Errorf("%+v", got)
	}
	var l listing
	_, err = ask(t, s, "list_files", `{"projectId":"prj_0123456789"}`, &l)
	must(t, err)
	if l.EntryCount != 1 || l.Project == nil {
		t.Errorf("%+v", l)
	}
	_, err = ask(t, s, "list_files", `{"projectId":"prj_9999999999"}`, &l)
	refused(t, err, contract.Forbidden)
	_, err = ask(t, s, "list_files", `{"projectId":"prj_u"}`, &l)
	refused(t, err, contract.InvalidInput)
}

type reading = readOutput

func (f fileRead) text() string {
	if f.Content == nil {
		return "(null)"
	}
	return *f.Content
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	var wide []byte
	for _, u := range utf16.Encode([]rune("häh\n")) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	files(t, dir, map[string]string{
		"lines": "one\ntwo\r\nthree\nfour", "bin": png, "latin": "gr\xfc\xdfe\n", "wide": "\xff\xfe" + string(wide), ".env": "secret", "d/x": "", "empty": "", "esc": "a\x1b[2Jb\n",
	})
	s := service(t, dir, Options{})
	var got reading
	a, err := ask(t, s, "read_files", `{"files":[
		{"path":"./lines"},{"path":"lines","startLine":2,"endLine":3,"numbered":true},{"path":"lines","tailLines":1},{"path":"lines","byteOffset":4,"maxBytes":32},
		{"path":"bin"},{"path":"latin","encoding":"windows-1252"},{"path":"wide"},{"path":"empty"},{"path":"esc"}]}`, &got)
	must(t, err)
	if len(got.Errors) > 0 || len(got.Files) != 9 {
		t.Fatalf("%+v", got)
	}
	want := []string{"one\ntwo\r\nthree\nfour", "     2\ttwo\r\n     3\tthree\n", "four", "two\r\nthree\nfour", "(null)", "grüße\n", "häh\n", "", "a\x1b[2Jb\n"}
	for i, f := range got.Files {
		if f.text() != want[i] {
			t.Errorf("file %d: %q, want %q", i, f.text(), want[i])
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Path))
		must(t, err)
		if *f.Hash != contract.Hash(data) || f.Size != int64(len(data)) || f.Truncated || f.Path == "" {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	whole, some, bin := got.Files[0], got.Files[1], got.Files[4]
	if *whole.StartLine != 1 || *whole.EndLine != 4 || *whole.TotalLines != 4 || whole.Partial || *whole.Encoding != "utf-8" || whole.NextOffset != nil || whole.MIMEType != "text/plain" {
		t.Errorf("whole: %+v", whole)
	}
	if *some.StartLine != 2 || *some.EndLine != 3 || !some.Partial || *some.NextOffset != 15 {
		t.Errorf("some: %+v", some)
	}
	if bin.Kind != "PNG image" || bin.MIMEType != "image/png" || bin.Encoding != nil || bin.TotalLines != nil || bin.Size != int64(len(png)) {
		t.Errorf("binary: %+v", bin)
	}
	for _, i := range []int{0, 5, 6} { // what was read as text is text
		if f := got.Files[i]; f.Kind != "text" {
			t.Errorf("file %d is called %q", i, f.Kind)
		}
	}
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "file 9 ") {
		t.Errorf("warnings %q", a.Warnings)
	}

	_, err = ask(t, s, "read_files", `{"files":[{"path":"none"},{"path":".env"},{"path":".git/config"},{"path":"d"},{"path":"latin"},{"path":"lines","startLine":9},
		{"path":"lines","startLine":3,"endLine":2},{"path":"../x"},{"path":"bin","encoding":"utf-8"},{"path":"lines","tailLines":1,"byteOffset":0}]}`, &got)
	must(t, err)
	var codes []fault.Code
	for _, e := range got.Errors {
		codes = append(codes, e.Error.Code)
	}
	if diff := cmp.Diff([]fault.Code{
		contract.NotFound, contract.SecretPathDenied, contract.PathDenied, contract.PathDenied, contract.UnsupportedEncoding, contract.InvalidInput,
		contract.InvalidInput, contract.PathDenied, contract.UnsupportedEncoding, contract.InvalidInput,
	}, codes); diff != "" || len(got.Files) > 0 {
		t.Errorf("%s\n%+v", diff, got)
	}
	if hint := got.Errors[4].Error.Recovery; !strings.HasSuffix(hint, "utf-16le, utf-16be, windows-1252, iso-8859-1, shift_jis, gb18030") {
		t.Errorf("the hint is %q", hint)
	}
	for _, args := range []string{`{"files":[]}`, `{"files":[{"path":"a","encoding":"ebcdic"}]}`, `{"files":[{"path":"a","startLine":0}]}`, `{"files":[{"path":"a","lines":1}]}`} {
		if _, err := ask(t, s, "read_files", args, &got); !errors.Is(err, op.InvalidArgument) {
			t.Errorf("%s: %v", args, err)
		}
	}
	s.limits.ReadBatchMax = 1
	_, err = ask(t, s, "read_files", `{"files":[{"path":"a"},{"path":"b"}]}`, &got)
	refused(t, err, contract.ResourceLimit)
}

// The answer is shared: small files come whole, the large ones get what is left, whatever
// their characters take as JSON.
func TestReadFilesShareTheAnswer(t *testing.T) {
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	runes := []rune("a\"\\\x01\x7f\nü€😀\t")
	var odd strings.Builder
	for odd.Len() < 200_000 {
		odd.WriteRune(runes[rnd.IntN(len(runes))])
	}
	files(t, dir, map[string]string{"big": strings.Repeat("0123456789abcde\n", 10_000), "odd": odd.String(), "small": "small\n", "ctl": strings.Repeat("\x01", 100_000)})
	s := service(t, dir, Options{})
	var got reading
	a, err := ask(t, s, "read_files", `{"files":[{"path":"big"},{"path":"odd"},{"path":"ctl"},{"path":"small"}]}`, &got)
	must(t, err)
	if len(got.Errors) > 0 || !a.Truncated || got.Files[3].text() != "small\n" || got.Files[3].Truncated {
		t.Fatalf("%+v", got.Errors)
	}
	total := 0
	for _, f := range got.Files[:3] {
		if !f.Truncated || !f.Partial || f.NextOffset == nil || !utf8.ValidString(f.text()) {
			t.Errorf("%s: %+v", f.Path, f)
		}
		total += op.EncodedLen(f.text())
	}
	if total < 40_000 {
		t.Errorf("only %d bytes of the answer were used", total)
	}
	// Reading on by nextOffset gives all of it.
	var all strings.Builder
	for next := int64(0); ; {
		_, err := ask(t, s, "read_files", fmt.Sprintf(`{"files":[{"path":"odd","byteOffset":%d}]}`, next), &got)
		must(t, err)
		all.WriteString(got.Files[0].text())
		if got.Files[0].NextOffset == nil {
			break
		}
		next = *got.Files[0].NextOffset
	}
	if all.String() != odd.String() {
		t.Error("what was read by parts is not the file")
	}
}

// The last lines of a large log come by seeking, in constant memory.
func TestReadFilesOfALargeLog(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "log")
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	if err := f.Truncate(5 << 30); err != nil {
		t.Skipf("the file system takes no file of 5 GiB: %v", err)
	}
	_, err = f.WriteAt([]byte("\nlast but one\nlast\n"), 5<<30)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("begin\n", 20_000)), 0)
	must(t, err)
	s := service(t, dir, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	var got reading
	_, err = ask(t, s, "read_files", `{"files":[{"path":"log","tailLines":2},{"path":"log","maxBytes":32},{"path":"log"}]}`, &got)
	must(t, err)
	if d := time.Since(begun); d > time.Second {
		t.Errorf("it took %v", d)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	if len(got.Files) != 2 || got.Files[0].text() != "last but one\nlast\n" || got.Files[0].Hash != nil || got.Files[0].TotalLines != nil || !got.Files[0].Partial {
		t.Errorf("%+v", got)
	}
	if len(got.Errors) != 1 || got.Errors[0].Error.Code != contract.FileTooLarge {
		t.Errorf("%+v", got.Errors)
	}
}

// The end of a log that is written all the time can be read.
func TestReadFilesOfABusyLog(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"log": strings.Repeat("a line of the log\n", 200_000)})
	s := service(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for ctx.Err() == nil {
			f.WriteString("a line of the log\n")
			time.Sleep(100 * time.Microsecond)
		}
	})
	unsettled := 0
	for range 20 {
		var got reading
		_, err := ask(t, s, "read_files", `{"files":[{"path":"log","tailLines":2},{"path":"log"}]}`, &got)
		must(t, err)
		if got.Files[0].text() != "a line of the log\na line of the log\n" {
			t.Fatalf("%+v", got)
		}
		if got.Files[0].Hash == nil {
			unsettled++
		}
		for _, e := range got.Errors {
			if e.Error.Code != contract.FileChanged {
				t.Errorf("%+v", e)
			}
		}
	}
	cancel()
	wg.Wait()
	if unsettled == 0 {
		t.Log("the log held still for every read")
	}
}

func TestReadImage(t *testing.T) {
	dir := t.TempDir()
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	must(t, err)
	pictures := map[string]string{"a.txt": string(png), "b": "\xff\xd8\xff\xe0..", "c": "GIF89a\x01\x00\x01\x00..", "d": "RIFF\x00\x00\x00\x00WEBPVP8 "}
	files(t, dir, pictures)
	files(t, dir, map[string]string{"x.png": "<svg/>", "large": string(png) + strings.Repeat("\x00", 2000), ".env": string(png)})
	s := service(t, dir, Options{})
	for name, mime := range map[string]string{"a.txt": "image/png", "b": "image/jpeg", "c": "image/gif", "d": "image/webp"} {
		var got imageOutput
		a, err := ask(t, s, "read_image", fmt.Sprintf(`{"path":%q}`, name), &got)
		must(t, err)
		if diff := cmp.Diff(imageOutput{name, mime, len(pictures[name])}, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]op.Block{{MIME: mime, Data: []byte(pictures[name])}}, a.Blocks); diff != "" {
			t.Error(diff)
		}
	}
	for args, code := range map[string]fault.Code{
		`{"path":"x.png"}`: contract.UnsupportedEncoding, `{"path":"large","maxBytes":1024}`: contract.FileTooLarge,
		`{"path":".env"}`: contract.SecretPathDenied, `{"path":"none"}`: contract.NotFound, `{"path":"."}`: contract.PathDenied,
	} {
		_, err := ask(t, s, "read_image", args, &imageOutput{})
		refused(t, err, code)
	}
}

func TestReadInstructions(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{
		"AGENTS.md": "\ufeffUse tabs.\r\nNo \u202eevil\x1b.\n", "CONTRIBUTING.md": "be kind", "README.md": "no", ".cursor/rules/b.mdc": "b", ".cursor/rules/a.MD": "a",
		".cursor/rules/x.json": "no", ".claude/notes.txt": "n", ".claude/sub/deep.md": "no", "CLAUDE.md": "bad \xff bytes", ".gitignore": ".claude/\n",
	})
	must(t, os.Symlink("AGENTS.md", filepath.Join(dir, "GEMINI.md")))
	s := service(t, dir, Options{})
	var got instructionsOutput
	a, err := ask(t, s, "read_instructions", `{}`, &got)
	must(t, err)
	want := []instructions{
		{"AGENTS.md", "Use tabs.\nNo \\u{202e}evil\\u{1b}.\n", false}, {"CONTRIBUTING.md", "be kind", false},
		{".cursor/rules/a.MD", "a", false}, {".cursor/rules/b.mdc", "b", false}, {".claude/notes.txt", "n", false},
	}
	if diff := cmp.Diff(want, got.Files); diff != "" || a.Truncated || got.Note == "" {
		t.Error(diff)
	}

	files(t, dir, map[string]string{"AGENTS.md": strings.Repeat("é\"", 30_000), "CONTRIBUTING.md": strings.Repeat("\n", 90_000)})
	for _, per := range []int{1024, 32768, 131072} {
		a, err = ask(t, s, "read_instructions", fmt.Sprintf(`{"maxBytesPerFile":%d}`, per), &got)
		must(t, err)
		if !a.Truncated || len(got.Files) < 1 || !got.Files[0].Truncated || len(got.Files[0].Content) > per || !utf8.ValidString(got.Files[0].Content) {
			t.Errorf("at most %d: %d files, truncated %v", per, len(got.Files), a.Truncated)
		}
	}

	must(t, os.Rename(dir, dir+".moved"))
	_, err = ask(t, s, "read_instructions", `{}`, &got)
	refused(t, err, contract.PathDenied)
	must(t, os.Rename(dir+".moved", dir))
}

// TestReadingShowsNothingClosed puts one word into everything that is closed, and
// looks for it and for the names in whatever the operations say.
func TestReadingShowsNothingClosed(t *testing.T) {
	dir := t.TempDir()
	closed := []string{
		".env", "a/.ENV.local", ".ssh/id", "x.pem", ".git/config", "a/.git/config", "b/.git", ".cursor/rules/secrets.md", ".claude/credentials.json", "state/db",
		".dodo-cs_1-0123456789abcdef",
	}
	for _, name := range closed {
		files(t, dir, map[string]string{name: "hunter2"})
	}
	files(t, dir, map[string]string{"AGENTS.md": "open"})
	for _, link := range []string{"CLAUDE.md", ".cursorrules", "l.png"} {
		must(t, os.Symlink(filepath.Join(dir, ".env"), filepath.Join(dir, link)))
	}
	must(t, os.Link(filepath.Join(dir, ".env"), filepath.Join(dir, "CONTRIBUTING.md")))
	s := service(t, dir, Options{Hidden: []string{filepath.Join(dir, "state")}})
	var calls []string
	for _, name := range append(closed, "CLAUDE.md", "l.png", "CONTRIBUTING.md") {
		calls = append(calls, "read_files "+fmt.Sprintf(`{"files":[{"path":%q}]}`, name), "read_image "+fmt.Sprintf(`{"path":%q}`, name), "list_files "+fmt.Sprintf(`{"path":%q}`, filepath.Dir(name)))
	}
	calls = append(calls, "read_instructions {}", `list_files {"depth":10,"includeIgnored":true}`)
	for _, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		var got json.RawMessage
		a, err := ask(t, s, name, args, &got)
		if err != nil {
			got = json.RawMessage(fault.From(err).Error() + fault.From(err).Hint)
		}
		if strings.Contains(string(got), "hunter2") || len(a.Blocks) > 0 {
			t.Errorf("%s: %s", c, got)
		}
		if name != "list_files" {
			continue
		}
		for _, hidden := range closed {
			if strings.Contains(string(got), `/`+filepath.Base(hidden)+`"`) || strings.Contains(string(got), `:"`+hidden+`"`) {
				t.Errorf("%s shows %s: %s", c, hidden, got)
			}
		}
	}
}
