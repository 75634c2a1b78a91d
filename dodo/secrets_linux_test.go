package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"localmcp/internal/testenv"
)

// word stands in every file that is closed and nowhere else.
const word = "hunter2"

// closed are paths that no operation may reach, with the code each must give, whether anything
// is there or not.
var closed = map[string]string{
	".env": "SECRET_PATH_DENIED", "sub/.ENV": "SECRET_PATH_DENIED", "none/.Env.local": "SECRET_PATH_DENIED", ".env.": "SECRET_PATH_DENIED",
	".ssh": "SECRET_PATH_DENIED", ".ssh/id_rsa": "SECRET_PATH_DENIED", "sub/.SSH/ID_RSA": "SECRET_PATH_DENIED", "sub/id_rsa": "SECRET_PATH_DENIED",
	".ssh/none": "SECRET_PATH_DENIED",
	".git":      "PATH_DENIED", ".git/config": "PATH_DENIED", "sub/.GIT/config": "PATH_DENIED", "tree/.git": "PATH_DENIED", "none/.Git/hooks/x": "PATH_DENIED",
	"git~1/config": "PATH_DENIED", ".git/none": "PATH_DENIED",
	"keep-out": "PATH_DENIED", "keep-out/marked": "PATH_DENIED", "keep-out/state.db": "PATH_DENIED", "Keep-Out/marked": "PATH_DENIED", "keep-out/none": "PATH_DENIED",
	".dodo-cs_1-0123456789abcdef": "PATH_DENIED",
}

// marked are those of them that are files with the word.
var marked = []string{
	".env", "sub/.ENV", ".env.", ".ssh/id_rsa", "sub/.SSH/ID_RSA", "sub/id_rsa", ".git/config", "sub/.GIT/config", "tree/.git", "git~1/config", "keep-out/marked",
	".dodo-cs_1-0123456789abcdef",
}

// direct are the calls by which each operation that takes paths names one, %[1]q or %[1]s.
var direct = map[string][]string{
	"list_files":  {`"path":%[1]q`, `"path":%[1]q,"includeIgnored":true`},
	"read_files":  {`"files":[{"path":%[1]q}]`, `"files":[{"path":%[1]q,"tailLines":1}]`, `"files":[{"path":%[1]q,"byteOffset":0,"maxBytes":64}]`},
	"read_image":  {`"path":%[1]q`},
	"search_code": {`"query":"hunter","paths":[%[1]q]`, `"query":"h.*2","mode":"regex","includeIgnored":true,"outputMode":"files","paths":["open.txt",%[1]q]`},
	"glob_files":  {`"pattern":"*","path":%[1]q`},
	"write_file":  {`"path":%[1]q,"content":"x"`, `"path":%[1]q,"content":"x","createParents":false`},
	"edit_file":   {`"path":%[1]q,"edits":[{"find":"hunter2","replace":"x"}]`, `"path":%[1]q,"edits":[{"find":"hunter2","replace":"x"}],"dryRun":true`},
	"apply_patch": {
		`"patch":"--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+x\n"`,
		`"patch":"--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-hunter2\n+x\n"`,
		`"patch":"--- a/%[1]s\n+++ /dev/null\n@@ -1 +0,0 @@\n-hunter2\n","dryRun":true`,
	},
	"replace_in_files": {`"find":"hunter2","replace":"x","dryRun":false,"paths":[%[1]q]`, `"find":"hunter2","replace":"x","paths":[%[1]q]`},
	"delete_path":      {`"path":%[1]q`},
	"move_path":        {`"path":%[1]q,"destPath":"moved"`, `"path":"open.txt","destPath":%[1]q`},
	"make_directory":   {`"path":%[1]q`, `"path":"%[1]s/new"`},
	"preview_changes": {
		`"operations":[{"op":"create","path":%[1]q,"content":"x","createParents":true}]`,
		`"operations":[{"op":"replace_file","path":%[1]q,"content":"x"}]`,
		`"operations":[{"op":"replace_exact","path":%[1]q,"find":"hunter2","replace":"x"}]`,
		`"operations":[{"op":"delete","path":%[1]q}]`,
		`"operations":[{"op":"move","path":%[1]q,"destPath":"moved"}]`,
		`"operations":[{"op":"move","path":"open.txt","destPath":%[1]q}]`,
	},
	"run_command":      {`"command":"true","cwd":%[1]q`},
	"run_commands":     {`"commands":[{"command":"true"},{"command":"true","cwd":%[1]q}]`},
	"git_diff":         {`"paths":[%[1]q]`, `"paths":["open.txt",%[1]q],"staged":true`},
	"git_log":          {`"path":%[1]q`},
	"git_commit":       {`"message":"x","paths":[%[1]q]`},
	"schedule_propose": {`"name":"n","command":"true","cwd":%[1]q,"cron":"0 3 * * *","expiresAt":` + strconv.FormatInt(time.Now().Add(48*time.Hour).UnixMilli(), 10)},
	"exec_command":     {`"program":"true","cwd":%[1]q,"idempotencyKey":"12345678"`, `"program":"./%[1]s","idempotencyKey":"12345678"`},
}

// around are calls that name nothing closed, and whose answers could.
var around = map[string][]string{
	"project_overview":  {``},
	"environment_info":  {``},
	"list_files":        {``, `"depth":10,"includeIgnored":true`, `"path":"sub","includeIgnored":true`, `"path":"tree","includeIgnored":true`},
	"read_files":        {`"files":[{"path":"open.txt"}]`},
	"read_instructions": {``},
	"search_code": {
		`"query":"hunter2"`, `"query":"HUNTER","caseSensitive":false,"includeIgnored":true`, `"query":"hunter2","includeIgnored":true,"outputMode":"files"`,
		`"query":"hunter2","includeIgnored":true,"fileGlob":".*"`, `"query":".","mode":"regex","includeIgnored":true,"outputMode":"count"`,
	},
	"glob_files":       {`"pattern":"*","includeIgnored":true`, `"pattern":"**/.*","includeIgnored":true`, `"pattern":"**/id_rsa"`, `"pattern":".git/**"`, `"pattern":"**/marked","sortBy":"mtime"`},
	"replace_in_files": {`"find":"hunter2","replace":"x","includeIgnored":true`, `"find":"hunter2","replace":"x","includeIgnored":true,"dryRun":false`, `"find":"hunter2","replace":"x","dryRun":false,"fileGlob":".*"`},
	"write_file":       {`"path":"made.txt","content":"x"`},
	"todo_write":       {`"todos":[]`},
	"todo_read":        {``},
	"handoff_write":    {`"handoff":{"goal":"none"}`},
	"handoff_read":     {``, `"list":true`},
	"change_history":   {``},
	// Commands see empty files, and git's own: git works in them.
	"run_command":  {`"command":"cat .env sub/.ENV .env. .ssh/id_rsa sub/.SSH/ID_RSA sub/id_rsa; cat keep-out/marked; rm -rf .ssh sub/id_rsa; cp .env sub/made 2>/dev/null; cat sub/made; rm sub/made; true"`},
	"run_commands": {`"commands":[{"command":"tail -q -n 1 .e* sub/.E* | tr h H"},{"command":"cat sub/*d_rsa","cwd":"."}]`},
	"exec_command": {`"program":"cat","args":["sub/id_rsa"],"idempotencyKey":"secrets-exec"`},
	"list_jobs":    {``},
	"git_status":   {``},
	"git_diff":     {``},
	"git_log":      {``},
}

// byID are the operations that name what they work on by an id alone.
var byID = map[string]struct{ args, code string }{
	"apply_changes":    {`"planId":"plan_none","planHash":"sha256:none","idempotencyKey":"12345678"`, "NOT_FOUND"},
	"rollback_changes": {`"changesetId":"cs_none","idempotencyKey":"12345678"`, "NOT_FOUND"},
	"approval_status":  {`"approvalId":"apr_none"`, "NOT_FOUND"},
	"run_task":         {`"taskId":"make:none","recipeDigest":"12345678","idempotencyKey":"12345678"`, "NOT_FOUND"},
	"job_status":       {`"jobId":"job_none"`, "JOB_NOT_FOUND"},
	"job_output":       {`"jobId":"job_none"`, "JOB_NOT_FOUND"},
	"job_wait":         {`"jobId":"job_none"`, "JOB_NOT_FOUND"},
	"job_input":        {`"jobId":"job_none","data":"x"`, "JOB_NOT_FOUND"},
	"job_cancel":       {`"jobId":"job_none"`, "JOB_NOT_FOUND"},
	"fetch_url":        {`"url":"https://localhost/"`, "NOT_SUPPORTED"},
}

// TestSecretsAreInvisibleToEveryOperation goes through the whole catalogue of a real server whose
// owner allows everything: what is secret, git's own, the installation's or a stage is neither
// read, listed, found, changed, made nor a place to move to, in any case of letters. The refusal
// is the same where nothing is, and nothing on the disk has changed in the end.
func TestSecretsAreInvisibleToEveryOperation(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "dodo-test-") // a short path, for the socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{testenv.NewHome(t), t}
	keep := filepath.Join(dir, "keep-out")
	m.Set("DODO_CONFIG_DIR", keep)
	if err := os.Mkdir(keep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Clone(marked), "open.txt", "AGENTS.md", "README.md") {
		text := word + "\n"
		if !slices.Contains(marked, name) {
			text = "open\n"
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := m.speak("legacy", dir)
	c.fine("project_overview", "")

	covered := map[string]bool{}
	messages := map[string]string{}
	before := contents(t, dir)
	for op, calls := range direct {
		covered[op] = true
		for _, call := range calls {
			for path, code := range closed {
				args := fmt.Sprintf(call, path)
				e := c.call(op, args)
				got, said := "", ""
				switch {
				case e.Error != nil:
					got, said = e.Error.Code, e.Error.Message+e.Error.Recovery
				case op == "read_files" && len(e.Data["files"].([]any)) == 0:
					first := e.Data["errors"].([]any)[0].(map[string]any)["error"].(map[string]any)
					got, said = first["code"].(string), fmt.Sprint(first["message"], first["recovery"])
				}
				if got != code {
					t.Errorf("%s %s: %+v %+v, want %s", op, args, e.Data, e.Error, code)
				}
				// What is said does not tell whether anything is there.
				if key := op + call + code; messages[key] == "" {
					messages[key] = said
				} else if said != messages[key] {
					t.Errorf("%s %s: %q, of another path %q", op, args, said, messages[key])
				}
				quiet(t, op+" "+args, e, false)
			}
		}
	}
	if diff := changed(before, contents(t, dir)); diff != "" {
		t.Errorf("calls that were refused changed the disk: %s", diff)
	}
	for op, calls := range around {
		covered[op] = true
		for _, args := range calls {
			quiet(t, op+" "+args, c.fine(op, args), !strings.HasPrefix(op, "run_") && !strings.HasSuffix(op, "_command") && op != "list_jobs")
		}
	}
	for op, call := range byID {
		covered[op] = true
		if e := c.call(op, call.args); e.Error == nil || e.Error.Code != call.code {
			t.Errorf("%s: %+v", op, e)
		}
	}
	after := contents(t, dir)
	if delete(after, "made.txt"); changed(before, after) != "" {
		t.Errorf("the disk changed: %s", changed(before, after))
	}
	for _, o := range (services{}).catalogue() {
		if !covered[o.Name] {
			t.Errorf("%s is not tried: it needs calls in this test", o.Name)
		}
	}
}

// quiet holds that an answer has nothing of what is closed: not the word, and unless the call
// named it no name either.
func quiet(t *testing.T, call string, e envelope, names bool) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	all := string(data)
	if strings.Contains(all, word) {
		t.Errorf("%s shows what is in a closed file: %s", call, all)
	}
	for _, name := range []string{".env", ".ENV", ".ssh", ".SSH", "id_rsa", "ID_RSA", ".git", ".GIT", "git~1", "keep-out", "marked", ".dodo-"} {
		if names && strings.Contains(all, name) {
			t.Errorf("%s shows the name %s: %s", call, name, all)
		}
	}
}

// contents are the files below a directory but for what the server itself writes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || filepath.Dir(rel) == "keep-out" && rel != "keep-out/marked" && rel != "keep-out/none" && rel != "keep-out/new" {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		if d.IsDir() {
			all[rel+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func changed(before, after map[string]string) string {
	if maps.Equal(before, after) {
		return ""
	}
	return fmt.Sprintf("%q became %q", before, after)
}
