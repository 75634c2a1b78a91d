package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// maxFile is the size of Cursor's file at most, in bytes.
const maxFile = 4 << 20

// cursorServer is an entry of mcp.json.
type cursorServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitzero"`
}

// entry is the server as a value of mcpServers, with two spaces.
func entry(s Server) (string, error) {
	b, err := jsonv2.Marshal(cursorServer{Command: s.Program, Args: s.Args, Env: s.Env},
		jsonv2.Deterministic(true), jsontext.WithIndent("  "), jsontext.Multiline(true))
	return string(b), err
}

// addToFile puts the entry into the file, or makes the file.
func addToFile(path string, s Server) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return byHand(err, "Cursor's directory cannot be made")
	}
	dir, err := safefile.OpenRoot(filepath.Dir(path), safefile.FollowLinks)
	if err != nil {
		return byHand(err, "Cursor's directory cannot be opened")
	}
	defer dir.Close()
	name := filepath.Base(path)
	old, mode, err := readFile(dir, name)
	if err != nil {
		return byHand(err, "Cursor's file cannot be read")
	}
	text, err := insert(old, s)
	if err != nil || text == nil {
		return err
	}
	now, _, err := readFile(dir, name)
	if err != nil || !bytes.Equal(now, old) {
		return fault.Wrap(contract.Conflict, err, "Cursor's file was changed meanwhile; nothing was written").WithHint("try again").Retry()
	}
	if err := dir.WriteFileAtomic(name, text, mode); err != nil {
		return byHand(err, "Cursor's file cannot be written; the old one is as it was")
	}
	return nil
}

// byHand is the fault of a file that is left alone.
func byHand(cause error, sentence string) error {
	return fault.Wrap(contract.NotSupported, cause, "%s", sentence).WithHint("add the entry that is shown by hand")
}

func readFile(dir *safefile.Root, name string) ([]byte, fs.FileMode, error) {
	f, id, err := dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if id.Size > maxFile {
		return nil, 0, errors.New("the file is too large")
	}
	st, err := safefile.StatFile(f)
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return data, fs.FileMode(st.Mode).Perm(), err
}

// serversKey is the member that has the servers.
const serversKey = "mcpServers"

// insert returns the text with the entry, and every byte of old as it was. nil means that
// the entry is there as it should be.
func insert(old []byte, s Server) ([]byte, error) {
	value, err := entry(s)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte("{}\n")
	}
	top, servers, there, err := survey(old, s.Name)
	switch {
	case err != nil:
		return nil, byHand(err, "Cursor's file is not plain JSON with an object of servers; it was left as it is")
	case there != nil && same(there, value):
		return nil, nil
	case there != nil:
		return nil, fault.New(contract.Conflict, "Cursor has a server of the name %s already; nothing was changed", s.Name).
			WithHint("remove it from its mcp.json, or give another --name")
	}
	at := top
	name := s.Name
	if servers != nil {
		at = *servers
	} else {
		value = "{\n  " + quote(name) + ": " + strings.ReplaceAll(value, "\n", "\n  ") + "\n}"
		name = serversKey
	}
	return at.add(old, name, value), nil
}

func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}

func same(a jsontext.Value, b string) bool {
	var x, y cursorServer
	if jsonv2.Unmarshal(a, &x, jsonv2.RejectUnknownMembers(true)) != nil || jsonv2.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, err := contract.Digest(x)
	two, err2 := contract.Digest(y)
	return err == nil && err2 == nil && one == two
}

// An object is a place in a text.
type object struct {
	begin, end int // of its braces
	members    int
}

// survey finds the outer object, that of the servers and the server of a name.
func survey(text []byte, name string) (top object, servers *object, there jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	top, err = members(d, func(key string) error {
		if key != serversKey {
			return d.SkipValue()
		}
		o, err := members(d, func(key string) (err error) {
			v, err := d.ReadValue()
			if key == name {
				there = bytes.Clone(v)
			}
			return err
		})
		servers = &o
		return err
	})
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return top, servers, there, nil
		}
		err = errors.Join(err, errors.New("there is more behind the object"))
	}
	return top, servers, there, err
}

// members walks an object.
func members(d *jsontext.Decoder, each func(key string) error) (o object, err error) {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != '{' {
		err = fmt.Errorf("%v is no object", t.Kind())
	}
	if err != nil {
		return o, err
	}
	o.begin = int(d.InputOffset()) - 1
	for {
		if t, err = d.ReadToken(); err != nil {
			return o, err
		}
		if t.Kind() == '}' {
			o.end = int(d.InputOffset()) - 1
			return o, nil
		}
		o.members++
		if err := each(t.String()); err != nil {
			return o, err
		}
	}
}

// add puts a member behind the others, in the manner of the text.
func (o object) add(text []byte, name, value string) []byte {
	inside := text[o.begin+1 : o.end]
	last := o.begin + 1 + len(bytes.TrimRight(inside, " \t\r\n"))
	comma := ""
	if o.members > 0 {
		comma = ","
	}
	var b bytes.Buffer
	b.Write(text[:last])
	if o.members > 0 && !bytes.ContainsRune(inside, '\n') { // all on one line
		c := jsontext.Value(value)
		_ = c.Compact() // it was made here
		fmt.Fprintf(&b, "%s %s: %s", comma, quote(name), c)
		b.Write(text[last:])
		return b.Bytes()
	}
	outer := indentation(text, o.end)
	inner := outer + unit(text)
	if o.members == 0 {
		outer = indentation(text, o.begin)
		inner = outer + unit(text)
	}
	fmt.Fprintf(&b, "%s\n%s%s: %s", comma, inner, quote(name), indent(value, inner, unit(text)))
	if o.members == 0 && !bytes.ContainsRune(text[last:o.end], '\n') {
		b.WriteString("\n" + outer)
	}
	b.Write(text[last:])
	return b.Bytes()
}

// indent puts a text with two spaces a level behind an indentation.
func indent(value, prefix, unit string) string {
	lines := strings.Split(value, "\n")
	for i, l := range lines[1:] {
		rest := strings.TrimLeft(l, " ")
		lines[i+1] = prefix + strings.Repeat(unit, (len(l)-len(rest))/2) + rest
	}
	return strings.Join(lines, "\n")
}

// indentation is the white space at the beginning of the line of a place.
func indentation(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is the white space of the first indented line; two spaces when there is none.
func unit(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}
