package owner_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"localmcp/dodo/internal/door/owner"
)

// The protocol once more, from its description: what it tests must not be what it uses.

func prove(token string, parts ...string) string {
	key, _ := hex.DecodeString(token)
	list, _ := json.Marshal(parts)
	h := hmac.New(sha256.New, key)
	h.Write(list)
	return hex.EncodeToString(h.Sum(nil))
}

type message map[string]any

func (m message) text(key string) string { s, _ := m[key].(string); return s }

func read(r *bufio.Reader) (message, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var m message
	return m, json.Unmarshal(line, &m)
}

func write(c net.Conn, m message) error {
	line, _ := json.Marshal(m)
	_, err := c.Write(append(line, '\n'))
	return err
}

// socketOf is the path of the socket of a server in this process.
func socketOf(t testing.TB, dir string) string {
	t.Helper()
	for _, name := range sockets(t, dir) {
		if strings.HasPrefix(name, "p-") {
			return filepath.Join(dir, "ipc", name)
		}
	}
	t.Fatal("no socket")
	return ""
}

func tokenOf(t testing.TB, socket string) string {
	t.Helper()
	data, err := os.ReadFile(socket + ".auth")
	must(t, err)
	var m message
	must(t, json.Unmarshal(data, &m))
	return m.text("token")
}

func dial(t testing.TB, dir string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socketOf(t, dir))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

const clientNonce = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// greet does the first half of the protocol as a client.
func greet(t testing.TB, dir string) (c net.Conn, r *bufio.Reader, serverNonce string) {
	t.Helper()
	c = dial(t, dir)
	r = bufio.NewReader(c)
	must(t, write(c, message{"version": 1, "nonce": clientNonce}))
	h, err := read(r)
	must(t, err)
	if h.text("mac") != prove(tokenOf(t, socketOf(t, dir)), "hello", clientNonce, h.text("nonce")) {
		t.Fatal("the server did not prove itself as the description says")
	}
	return c, r, h.text("nonce")
}

// A question without the right proof is not run, and a recorded one is worth nothing.
func TestServerRunsOnlyWhatIsProved(t *testing.T) {
	dir := place(t)
	var ran atomic.Int32
	serve(t, dir, map[string]owner.Command{"count": func(context.Context, json.RawMessage) (any, error) { return ran.Add(1), nil }})
	token := tokenOf(t, socketOf(t, dir))
	const payload = `{"id":"1","cmd":"count","args":{}}`

	c, r, nonce := greet(t, dir)
	recorded := message{"payload": payload, "mac": prove(token, "request", clientNonce, nonce, payload)}
	must(t, write(c, recorded))
	answer, err := read(r)
	must(t, err)
	if answer.text("mac") != prove(token, "response", clientNonce, nonce, answer.text("payload")) || !strings.Contains(answer.text("payload"), `"result":1`) {
		t.Fatalf("%v", answer)
	}

	for name, make := range map[string]func(nonce string) message{
		"replayed": func(string) message { return recorded },
		"no proof": func(string) message { return message{"payload": payload} },
		"another token": func(n string) message {
			return message{"payload": payload, "mac": prove(strings.Repeat("0", 64), "request", clientNonce, n, payload)}
		},
		"of another kind": func(n string) message {
			return message{"payload": payload, "mac": prove(token, "response", clientNonce, n, payload)}
		},
		"of another payload": func(n string) message {
			return message{"payload": payload, "mac": prove(token, "request", clientNonce, n, payload+" ")}
		},
		"one more member": func(n string) message {
			return message{"payload": payload, "mac": prove(token, "request", clientNonce, n, payload), "x": 1}
		},
		"a frame too long": func(n string) message { return message{"payload": strings.Repeat(" ", 1<<20) + payload, "mac": ""} },
	} {
		c, r, nonce := greet(t, dir)
		_ = write(c, make(nonce)) // the other end may close before all is written
		if m, err := read(r); err == nil {
			t.Errorf("%s: answered %v", name, m)
		}
	}
	for name, first := range map[string]string{
		"another version": `{"version":2,"nonce":"` + clientNonce + `"}`, "a short nonce": `{"version":1,"nonce":"00"}`, "not JSON": `hello`,
		"upper case": `{"version":1,"nonce":"` + strings.ToUpper(clientNonce) + `"}`, "too much": `{"version":1,"nonce":"` + clientNonce + `","mac":"","x":1}`,
	} {
		c := dial(t, dir)
		_, err := c.Write([]byte(first + "\n"))
		must(t, err)
		if m, err := read(bufio.NewReader(c)); err == nil {
			t.Errorf("%s: answered %v", name, m)
		}
	}
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

// An impostor listens where a server should and notes what it is told.
type impostor struct {
	mu   sync.Mutex
	told []message
}

func (i *impostor) heard(t testing.TB) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.told {
		if m.text("payload") != "" {
			t.Errorf("it was asked: %v", m)
		}
	}
	return len(i.told)
}

// impersonate listens and answers a hello with what it makes of it.
func impersonate(t testing.TB, socket string, reply func(clientNonce string) message) *impostor {
	t.Helper()
	i := &impostor{}
	l, err := net.Listen("unix", socket)
	must(t, err)
	must(t, os.Chmod(socket, 0o600))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			for {
				m, err := read(r)
				if err != nil {
					break
				}
				i.mu.Lock()
				i.told = append(i.told, m)
				i.mu.Unlock()
				_ = write(c, reply(m.text("nonce")))
			}
			c.Close()
		}
	}()
	return i
}

// Nobody who could be another user is asked anything.
func TestClientAsksOnlyWhoIsProved(t *testing.T) {
	const key = "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
	good := func(nonce string) message {
		return message{"version": 1, "nonce": clientNonce, "mac": prove(key, "hello", nonce, clientNonce)}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, socket string)
		reply func(string) message
		heard bool // a hello may come, never a question
	}{
		{"a link", func(t *testing.T, s string) { must(t, os.Rename(s, s+"x")); must(t, os.Symlink(s+"x", s)) }, good, false},
		{"a socket open to others", func(t *testing.T, s string) { must(t, os.Chmod(s, 0o666)) }, good, false},
		{"of another user", func(t *testing.T, s string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			must(t, os.Lchown(s, 12345, 12345))
		}, good, false},
		{"a readable descriptor", func(t *testing.T, s string) { must(t, os.Chmod(s+".auth", 0o644)) }, good, false},
		{"a linked descriptor", func(t *testing.T, s string) {
			must(t, os.Rename(s+".auth", s+".real"))
			must(t, os.Symlink(s+".real", s+".auth"))
		}, good, false},
		{"a descriptor of another socket", func(t *testing.T, s string) { descriptor(t, s, s+"y", key) }, good, false},
		{"a huge descriptor", func(t *testing.T, s string) { must(t, os.Truncate(s+".auth", 4096)) }, good, false},
		{"a token that is too short", func(t *testing.T, s string) { descriptor(t, s, s, key[:62]) }, good, false},
		{"no descriptor", func(t *testing.T, s string) { must(t, os.Remove(s+".auth")) }, good, false},
		{"a directory open to others", func(t *testing.T, s string) { must(t, os.Chmod(filepath.Dir(s), 0o755)) }, good, false},
		{"a file", func(t *testing.T, s string) { must(t, os.Remove(s)); must(t, os.WriteFile(s, nil, 0o600)) }, good, false},
		{"no proof", func(*testing.T, string) {}, func(string) message { return message{"version": 1, "nonce": clientNonce} }, true},
		{"a recorded proof", func(*testing.T, string) {}, func(string) message {
			return message{"version": 1, "nonce": clientNonce, "mac": prove(key, "hello", clientNonce, clientNonce)}
		}, true},
		{"a proof given back", func(*testing.T, string) {}, func(n string) message { return message{"version": 1, "nonce": n, "mac": n} }, true},
		{"another version", func(*testing.T, string) {}, func(n string) message {
			return message{"version": 2, "nonce": clientNonce, "mac": prove(key, "hello", n, clientNonce)}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := place(t)
			ipc := filepath.Join(dir, "ipc")
			must(t, os.Mkdir(ipc, 0o700))
			socket := filepath.Join(ipc, "p-0123456789abcdef.sock")
			i := impersonate(t, socket, c.reply)
			descriptor(t, socket, socket, key)
			c.spoil(t, socket)
			live, _, _ := owner.Discover(t.Context(), dir)
			if len(live) != 0 {
				t.Errorf("it was believed: %+v", live)
			}
			if n := i.heard(t); (n > 0) != c.heard {
				t.Errorf("it heard %d messages", n)
			}
		})
	}
}

// One that knows the token is asked: the spoofs above fail for their own reasons.
func TestImpostorWithTheTokenIsAsked(t *testing.T) {
	const key = "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"
	dir := place(t)
	must(t, os.Mkdir(filepath.Join(dir, "ipc"), 0o700))
	socket := filepath.Join(dir, "ipc", "p-0123456789abcdef.sock")
	i := impersonate(t, socket, func(nonce string) message {
		return message{"version": 1, "nonce": clientNonce, "mac": prove(key, "hello", nonce, clientNonce)}
	})
	descriptor(t, socket, socket, key)
	live, silent, err := owner.Discover(t.Context(), dir)
	if err != nil || len(live) != 0 || len(silent) != 1 {
		t.Errorf("%v %v %v", live, silent, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.told) != 2 || i.told[1].text("payload") == "" {
		t.Errorf("%v", i.told)
	}
}

func descriptor(t testing.TB, socket, endpoint, token string) {
	t.Helper()
	data, err := json.Marshal(message{
		"version": 1, "nonce": strings.Repeat("0", 32), "token": token, "endpoint": endpoint,
		"process": message{"pid": os.Getpid(), "started": 1},
	})
	must(t, err)
	must(t, os.WriteFile(socket+".auth", data, 0o600))
}

// An answer that was changed on the way is not believed.
func TestChangedAnswer(t *testing.T) {
	dir := place(t)
	serve(t, dir, nil)
	real := socketOf(t, dir)
	token := tokenOf(t, real)
	moved := real + "r"
	must(t, os.Rename(real, moved))
	l, err := net.Listen("unix", real)
	must(t, err)
	defer l.Close()
	must(t, os.Chmod(real, 0o600))
	descriptor(t, real, real, token)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("unix", moved)
			if err != nil {
				return
			}
			from, to := bufio.NewReader(c), bufio.NewReader(s)
			for range 2 { // passes everything on but a word of the answer
				m, _ := read(from)
				_ = write(s, m)
				a, _ := read(to)
				if p := a.text("payload"); p != "" {
					a["payload"] = strings.Replace(p, "/w", "/x", 1)
				}
				_ = write(c, a)
			}
			c.Close()
			s.Close()
		}
	}()
	must(t, os.Remove(filepath.Join(dir, "ipc", "w-0123456789abcdef.sock")))
	live, silent, err := owner.Discover(t.Context(), dir)
	if err != nil || len(live) != 0 || len(silent) != 1 || !strings.Contains(silent[0].Err.Error(), "changed on the way") {
		t.Errorf("%+v %+v %v", live, silent, err)
	}
}
