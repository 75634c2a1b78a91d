package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"localmcp/mooncite/internal/evidence"
)

// roots are the folders of the origins whose files grow by lines.
var roots = map[evidence.Origin]string{
	evidence.Claude: ".claude/projects",
	evidence.Codex:  ".codex/sessions",
	evidence.Pi:     ".pi/agent/sessions",
	evidence.OMP:    ".omp/agent/sessions",
}

// Largest returns the path of the largest session file of an origin.
func Largest(home string, o evidence.Origin) (string, error) {
	root, ok := roots[o]
	if !ok {
		return "", fmt.Errorf("%s has no files that grow by lines", o)
	}
	var best string
	var size int64 = -1
	err := filepath.WalkDir(filepath.Join(home, filepath.FromSlash(root)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			best, size = path, info.Size()
		}
		return err
	})
	if err == nil && best == "" {
		err = fmt.Errorf("%s has no session file", o)
	}
	return best, err
}

// sentenceWith is what the person says in a record made to be found.
func sentenceWith(word string) []byte {
	return []byte("Please keep the word " + word + " in mind for the next review.")
}

// Append adds one typed turn that holds word to a session file, in the origin's
// own format and as a child of the file's last entry, with one write.
func Append(path string, o evidence.Origin, word string, at time.Time) error {
	last, err := lastLine(path)
	if err != nil {
		return err
	}
	var prev struct {
		UUID      string `json:"uuid"`
		ID        string `json:"id"`
		SessionID string `json:"sessionId"`
		Cwd       string `json:"cwd"`
	}
	if err := json.Unmarshal(last, &prev); err != nil {
		return fmt.Errorf("last line: %w", err)
	}
	id := newID(word, at)
	var r record
	switch said := sentenceWith(word); o {
	case evidence.Claude:
		claudeHead(&r, prev.UUID, prev.Cwd, prev.SessionID, "user", id, at).raw(`,"message":{"role":"user","content":`).text(said).raw(`}}`)
	case evidence.Codex:
		codexUser(codexHead(&r, at, "event_msg"), said)
	case evidence.Pi, evidence.OMP:
		piUser(piHead(&r, "message", id[:8], prev.ID, at), said, at)
	default:
		return fmt.Errorf("%s does not grow by lines", o)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(r.b, '\n'))
	return errors.Join(err, f.Close())
}

// AddConversation puts a conversation that holds word at the head of the ChatGPT
// export, as a fresh export has it: a new file takes the place of the old one, and
// everything in it stands at another offset.
func AddConversation(home, word string, at time.Time) error {
	path := filepath.Join(home, filepath.FromSlash(Export))
	old, err := os.Open(path)
	if err != nil {
		return err
	}
	defer old.Close()
	bracket := make([]byte, 1)
	if _, err := io.ReadFull(old, bracket); err != nil || bracket[0] != '[' {
		return errors.Join(errors.New("the export does not begin with an array"), err)
	}
	root, leaf := newID("root "+word, at), newID(word, at)
	var r record
	r.raw(`[{"title":"Word for the next review","create_time":`).secs(at).raw(`,"mapping":{`)
	r.str(root).raw(`:{"id":`).str(root).raw(`,"parent":null,"children":[`).str(leaf).raw(`],"message":null},`)
	r.str(leaf).raw(`:{"id":`).str(leaf).raw(`,"parent":`).str(root).raw(`,"children":[],"message":`)
	chatgptMessage(&r, leaf, "user", sentenceWith(word), at).raw(`}},"update_time":`).secs(at)
	chatgptEnd(&r, leaf, newID("conversation "+word, at)).raw(",\n")

	tmp, err := os.CreateTemp(filepath.Dir(path), "download-*.part")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(r.b)
	if err == nil {
		_, err = io.Copy(tmp, old)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// lastLine returns the last complete line of a file.
func lastLine(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	for n := int64(64 << 10); ; n *= 8 {
		n = min(n, info.Size())
		b := make([]byte, n)
		if _, err := f.ReadAt(b, info.Size()-n); err != nil {
			return nil, err
		}
		b, ended := bytes.CutSuffix(b, []byte("\n"))
		if !ended {
			return nil, errors.New("the file does not end with a line feed")
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 || n == info.Size() {
			return b[i+1:], nil
		}
	}
}

// newID makes a UUID from what it stands for.
func newID(what string, at time.Time) string {
	d := sha256.Sum256([]byte(what + at.String()))
	return asUUID(binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:]))
}
