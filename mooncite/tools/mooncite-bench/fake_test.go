package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestMain lets the test binary play the measured program. Which one it plays is
// said by the name it is called by, because no variable reaches the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		f := &fake{mode: filepath.Base(os.Args[0]), home: os.Getenv("HOME"), state: filepath.Join(os.Getenv("XDG_STATE_HOME"), "mooncite"), texts: map[string]text{}}
		syscall.Exit(f.run(os.Args[1:])) // os.Exit sleeps a second under the race detector
	}
	os.Exit(m.Run())
}

// fake is a program with the interface of mooncite and no index: it searches the
// files themselves.
type fake struct {
	mode, home, state string
	indexed           time.Time // when the first index is ready
	texts             map[string]text
}

// text is a file as it was when it had that many bytes.
type text struct {
	bytes int64
	lower []byte
}

func (f *fake) text(path string, d fs.DirEntry) []byte {
	info, err := d.Info()
	if err != nil {
		return nil
	}
	if t := f.texts[path]; t.lower != nil && t.bytes == info.Size() {
		return t.lower
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	data = bytes.ToLower(bytes.ReplaceAll(data, []byte(`\n`), []byte("  ")))
	f.texts[path] = text{info.Size(), data}
	return data
}

func (f *fake) run(args []string) int {
	switch args[0] {
	case "rebuild":
		if f.mode == "broken" {
			fmt.Fprintln(os.Stderr, "the disk is full")
			return 4
		}
		if err := f.index(); err != nil {
			return 1
		}
		fmt.Println(`{"outcome":"published"}`)
	case "serve":
		f.serve()
	}
	return 0
}

func (f *fake) index() error {
	if err := os.MkdirAll(f.state, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.state, "index"), make([]byte, 100_000), 0o600)
}

func (f *fake) serve() {
	// The client must bear this before it has said anything.
	fmt.Println(`{"jsonrpc":"2.0","id":"s1","method":"ping"}`)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     jsontext.Value `json:"id"`
			Method string         `json:"method"`
			Params struct {
				Name      string            `json:"name"`
				Arguments map[string]string `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 {
			continue
		}
		switch m.Method {
		case "":
		case "initialize":
			respond(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
		case "ping":
			if f.mode == "poor" {
				time.Sleep(30 * time.Millisecond)
			}
			respond(m.ID, `{}`)
		case "tools/call":
			if f.mode == "crashing" {
				fmt.Fprintln(os.Stderr, "cannot go on")
				syscall.Exit(1)
			}
			respond(m.ID, `{"content":[{"type":"text","text":"x"}],"structuredContent":`+f.call(m.Params.Name, m.Params.Arguments)+`}`)
		}
	}
}

func respond(id jsontext.Value, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

func (f *fake) call(tool string, args map[string]string) string {
	switch tool {
	case "mooncite_inspect":
		if f.mode == "poor" && strings.HasSuffix(args["evidence_id"], "0") {
			return `{"outcome":"stale"}`
		}
		return `{"outcome":"verified"}`
	case "mooncite_status":
		if _, err := os.Stat(f.state); err != nil && time.Now().Before(f.indexed) {
			return `{"outcome":"degraded"}`
		}
		return `{"outcome":"ready"}`
	}
	if f.indexed.IsZero() {
		f.indexed = time.Now().Add(300 * time.Millisecond)
	}
	if f.mode == "poor" && strings.HasPrefix(args["query"], `"`) {
		return `{"outcome":"no_match","conclusive":true,"candidates":[]}`
	}
	type candidate struct {
		EvidenceID string `json:"evidenceId"`
		Excerpt    string `json:"excerpt"`
	}
	answer := struct {
		Outcome    string      `json:"outcome"`
		Candidates []candidate `json:"candidates"`
	}{"no_match", nil}
	query := bytes.ToLower([]byte(strings.Trim(args["query"], `"`)))
	filepath.WalkDir(filepath.Join(f.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "queries.json") || len(answer.Candidates) == 5 {
			return nil
		}
		data := f.text(path, d)
		if i := bytes.Index(data, query); i >= 0 {
			answer.Outcome = "matches"
			answer.Candidates = append(answer.Candidates, candidate{fmt.Sprintf("%s:%d", filepath.Base(path), i), strings.ToValidUTF8(string(data[max(0, i-20):i+len(query)]), "")})
		}
		return nil
	})
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return string(b)
}
