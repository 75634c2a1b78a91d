// Command dodo-demo shows a session of dodo as a client has it: overview, search, an edit
// with a wrong hash refused, an edit, a rollback, a command; and then the owner's look at the
// audit.
//
// What it is: a client of its own that starts `dodo stdio` on an invented workspace, in a
// home of its own that is removed again, and checks every answer.
//
// What one may rely on: it ends with status 0 only when every answer was the expected one, and writes
// nothing outside a temporary directory.
//
// What it deliberately does not do: it is no client to build on; it speaks the least there
// is of the protocol.
//
// usage: dodo-demo PATH-OF-DODO
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dodo-demo PATH-OF-DODO")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// story is the file that is worked on; its lines end as Windows has them, and its last has
// no end.
const story = "# Shopping\r\n\r\n- bread\r\n- mlik\r\n- tea"

func run(program string) (err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dodo-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root := filepath.Join(dir, "work")
	for _, d := range []string{"home", "work", "work/notes"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	file := filepath.Join(root, "notes", "shopping.md")
	if err := os.WriteFile(file, []byte(story), 0o640); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, ".env"), []byte(key+"\n"), 0o600); err != nil {
		return err
	}
	s, err := start(program, filepath.Join(dir, "home"), root)
	if err != nil {
		return err
	}
	if err := s.story(file); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	fmt.Println("\n$ dodo audit verify")
	audit := s.command(program, "audit", "verify")
	audit.Stdout = os.Stdout
	if err := audit.Run(); err != nil {
		return fmt.Errorf("audit verify: %w", err)
	}
	fmt.Println("\nThe file is as it was, byte for byte, and every call is in the audit.")
	return nil
}

// story is the session.
func (s *session) story(file string) error {
	o, err := s.call("project_overview", nil)
	if err != nil {
		return err
	}
	s.id, s.epoch = o.text("workspaceId"), o.text("workspaceEpoch")
	if _, err := s.call("search_code", map[string]any{"query": "mlik"}); err != nil {
		return err
	}
	edit := map[string]any{"path": "notes/shopping.md", "edits": []any{map[string]any{"find": "- mlik\n", "replace": "- milk\n"}}}
	edit["expectedHash"] = "sha256:" + strings.Repeat("0", 64)
	if err := s.refused("edit_file", edit, "FILE_CHANGED"); err != nil {
		return err
	}
	read, err := s.call("read_files", map[string]any{"files": []any{map[string]any{"path": "notes/shopping.md"}}})
	if err != nil {
		return err
	}
	files, _ := read["files"].([]any)
	if len(files) != 1 {
		return errors.New("read_files gave no file")
	}
	edit["expectedHash"] = files[0].(map[string]any)["hash"]
	changed, err := s.call("edit_file", edit)
	if err != nil {
		return err
	}
	if err := holds(file, strings.Replace(story, "mlik", "milk", 1)); err != nil {
		return err
	}
	if _, err := s.call("rollback_changes", map[string]any{"changesetId": changed["changesetId"], "idempotencyKey": "demo-rollback"}); err != nil {
		return err
	}
	if err := holds(file, story); err != nil {
		return err
	}
	return s.runs()
}

// key stands in a file that commands do not see.
const key = "TOKEN=not-for-commands"

// runs has a command look for what it must not see. A machine where no walls can be built says
// so, and that is no failure of the demo.
func (s *session) runs() error {
	a, err := s.ask("run_command", map[string]any{"command": "grep -c . notes/shopping.md; cat .env; ls ~/.. | head -3; cat /proc/net/dev | wc -l"})
	switch {
	case err != nil:
		return err
	case !a.OK && a.Error.Code == "NOT_SUPPORTED":
		return nil
	case !a.OK:
		return fmt.Errorf("run_command was refused: %s", a.Error.Code)
	}
	if out := a.Data.text("stdout"); !strings.HasPrefix(out, "5\n") || strings.Contains(out, key) || a.Data.text("isolation") == "none" {
		return fmt.Errorf("the command is not as it should be: %v", a.Data)
	}
	return nil
}

// holds checks a file's bytes.
func holds(file, want string) error {
	got, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("the file is %q, not %q", got, want)
	}
	return nil
}

// session is a running dodo.
type session struct {
	home, id, epoch string
	cmd             *exec.Cmd
	in              io.WriteCloser
	out             *bufio.Scanner
	last            int
}

// data is what an operation answered.
type data map[string]any

func (d data) text(name string) string {
	s, _ := d[name].(string)
	return s
}

func (s *session) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH")}
	c.Stderr = os.Stderr
	return c
}

func start(program, home, root string) (*session, error) {
	s := &session{home: home}
	s.cmd = s.command(program, "stdio", "--root", root)
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewScanner(out)
	s.out.Buffer(nil, 16<<20)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = s.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "dodo-demo", "version": "1"},
	})
	return s, err
}

func (s *session) end() error {
	_ = s.in.Close()
	return s.cmd.Wait()
}

func (s *session) request(method string, params any) (json.RawMessage, error) {
	s.last++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.last, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for s.out.Scan() {
		var m struct {
			ID     *int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
			return nil, err
		}
		if m.ID == nil || *m.ID != s.last {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	}
	return nil, fmt.Errorf("%s: dodo ended", method)
}

// answer is the envelope.
type answer struct {
	OK    bool
	Data  data
	Error struct{ Code, Message, Recovery string }
}

// ask makes a call and prints both sides of it.
func (s *session) ask(op string, args map[string]any) (answer, error) {
	shown, err := json.Marshal(args)
	if err != nil {
		return answer{}, err
	}
	fmt.Printf("\n> %s %s\n", op, shown)
	full := map[string]any{}
	for k, v := range args {
		full[k] = v
	}
	if s.id != "" {
		full["workspaceId"], full["workspaceEpoch"] = s.id, s.epoch
	}
	raw, err := s.request("tools/call", map[string]any{"name": op, "arguments": full})
	if err != nil {
		return answer{}, err
	}
	var r struct{ StructuredContent answer }
	if err := json.Unmarshal(raw, &r); err != nil {
		return answer{}, err
	}
	a := r.StructuredContent
	if a.OK {
		text, err := json.Marshal(a.Data)
		if err != nil {
			return a, err
		}
		fmt.Printf("< %s\n", cut(string(text)))
	} else {
		fmt.Printf("< %s: %s\n  %s\n", a.Error.Code, a.Error.Message, a.Error.Recovery)
	}
	return a, nil
}

func cut(s string) string {
	const most = 500
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

func (s *session) call(op string, args map[string]any) (data, error) {
	a, err := s.ask(op, args)
	if err == nil && !a.OK {
		err = fmt.Errorf("%s was refused: %s", op, a.Error.Code)
	}
	return a.Data, err
}

func (s *session) refused(op string, args map[string]any, code string) error {
	a, err := s.ask(op, args)
	if err == nil && (a.OK || a.Error.Code != code) {
		err = fmt.Errorf("%s was not refused with %s", op, code)
	}
	return err
}
