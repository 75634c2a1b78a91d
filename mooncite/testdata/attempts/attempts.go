// Package attempts tries, with Go's own library and with SQLite, what a process that
// reads histories must not be able to do, and what it must. Only a build with the tag
// mooncite_probe has it.
package attempts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"localmcp/internal/sqlitedb"
)

// Report is what happened; an empty string means that it was possible.
type Report struct {
	Network  map[string]string
	Programs map[string]string
	Sources  map[string]string // what is to be changed in the first root
	SQLite   map[string]string
	Threads  map[string][]string // line of a thread's status -> the values there are
	Count    int                 // of threads
	Blocked  int                 // how many of them sat in a system call
}

func text(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

// Network opens connections of every kind.
func Network() map[string]string {
	out := map[string]string{}
	for _, to := range [][2]string{{"tcp", "127.0.0.1:9"}, {"tcp6", "[::1]:9"}, {"udp", "127.0.0.1:9"}, {"unix", "/run/dbus/system_bus_socket"}, {"unixgram", "/dev/log"}, {"ip4:icmp", "127.0.0.1"}} {
		c, err := net.Dial(to[0], to[1])
		if err == nil {
			c.Close()
		}
		out["net.Dial "+to[0]] = text(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		l.Close()
	}
	out["net.Listen"] = text(err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = net.DefaultResolver.LookupHost(ctx, "mooncite.invalid")
	out["net.LookupHost"] = text(err)
	_, err = http.Get("http://127.0.0.1:9/")
	out["http.Get"] = text(err)
	return out
}

// Programs starts some.
func Programs() map[string]string {
	out := map[string]string{}
	out["exec.Command"] = text(exec.Command("/bin/true").Run())
	_, err := os.StartProcess("/proc/self/exe", []string{"x", "version"}, &os.ProcAttr{})
	out["os.StartProcess"] = text(err)
	_, err = syscall.ForkExec("/bin/true", []string{"true"}, nil)
	out["syscall.ForkExec"] = text(err)
	out["syscall.Exec"] = text(syscall.Exec("/bin/true", []string{"true"}, nil))
	_, err = syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	out["executable memory"] = text(err)
	return out
}

// Sources changes a file of a root, and its directory.
func Sources(file string) map[string]string {
	dir := filepath.Dir(file)
	out := map[string]string{}
	try := func(name string, err error) { out[name] = text(err) }
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		f.Close()
	}
	try("open for writing", err)
	f, err = os.OpenFile(file, os.O_RDONLY|os.O_TRUNC, 0)
	if err == nil {
		f.Close()
	}
	try("open and truncate", err)
	try("create", os.WriteFile(filepath.Join(dir, "new"), nil, 0o600))
	try("rename", os.Rename(file, file+"-moved"))
	try("remove", os.Remove(file))
	try("truncate", os.Truncate(file, 0))
	try("chmod", os.Chmod(file, 0o644))
	try("utimes", os.Chtimes(file, time.Now(), time.Now()))
	try("link", os.Link(file, file+"-link"))
	try("symlink", os.Symlink(file, file+"-symlink"))
	try("mkdir", os.Mkdir(filepath.Join(dir, "newdir"), 0o700))
	if f, err = os.Open(file); err == nil {
		try("fchmod", f.Chmod(0o644))
		try("ftruncate", f.Truncate(0))
		f.Close()
	} else {
		out["reading"] = text(err)
	}
	return out
}

// SQLite does in the state directory what an index needs and what needs temporary
// files, in a database that another process may use at the same time.
func SQLite(dir string) map[string]string {
	out := map[string]string{}
	ctx := context.Background()
	db, err := sqlitedb.Open(ctx, filepath.Join(dir, "attempts.sqlite"), sqlitedb.Options{
		ApplicationID: 1, Migrations: []string{"CREATE TABLE t (pid INTEGER, n INTEGER, x TEXT); CREATE VIRTUAL TABLE f USING fts5 (x)"},
	})
	if err != nil {
		out["open"] = err.Error()
		return out
	}
	r := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	const rounds, rows = 20, 500
	for range rounds {
		err = errors.Join(err, db.Write(ctx, func(c *sqlitedb.Conn) error {
			for n := range rows {
				x := fmt.Sprintf("%x %x %x", r.Uint64(), r.Uint64(), r.Uint64())
				if _, err := c.Exec(ctx, "INSERT INTO t VALUES (?, ?, ?)", os.Getpid(), n, x); err != nil {
					return err
				}
				if _, err := c.Exec(ctx, "INSERT INTO f VALUES (?)", x); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	out["writes beside another process"] = message(err)
	var mine int
	out["a sort larger than the cache"] = message(db.Read(ctx, func(c *sqlitedb.Conn) error {
		var last string
		if _, err := c.Row(ctx, "SELECT x FROM (SELECT a.x FROM t a, (SELECT 1 UNION SELECT 2 UNION SELECT 3) ORDER BY a.x) LIMIT 1 OFFSET 20000", nil, &last); err != nil {
			return err
		}
		_, err := c.Row(ctx, "SELECT count(*) FROM t WHERE pid = ?", []any{os.Getpid()}, &mine)
		return err
	}))
	if mine != rounds*rows {
		out["rows"] = fmt.Sprintf("%d of %d", mine, rounds*rows)
	}
	_, err = db.Checkpoint(ctx)
	out["checkpoint"] = message(err)
	copied := filepath.Join(dir, fmt.Sprintf("attempts-%d.sqlite", os.Getpid()))
	out["vacuum"] = message(db.CopyTo(ctx, copied))
	out["remove"] = message(os.Remove(copied))
	out["close"] = message(db.Close())
	return out
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Look looks at every thread while many of them are in a system call.
func (r *Report) Look() {
	const busy = 100
	var begun, end sync.WaitGroup
	var pipes [busy][2]int
	var threads [busy]int
	for i := range busy {
		if err := syscall.Pipe2(pipes[i][:], syscall.O_CLOEXEC); err != nil {
			r.Threads = map[string][]string{"pipe": {err.Error()}}
			return
		}
		begun.Add(1)
		end.Go(func() {
			runtime.LockOSThread()
			threads[i] = syscall.Gettid()
			begun.Done()
			var b [1]byte
			_, _ = syscall.Read(pipes[i][0], b[:])
		})
	}
	begun.Wait()
	// A thread that keeps its goroutine sleeps nowhere but in a system call.
	for end := time.Now().Add(2 * time.Second); r.Blocked < busy && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.Blocked = 0
		for _, tid := range threads {
			data, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
			if _, rest, ok := strings.Cut(string(data), ") "); err == nil && ok && strings.HasPrefix(rest, "S") {
				r.Blocked++
			}
		}
	}
	r.Threads = map[string][]string{}
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	seen := map[string]bool{}
	for _, name := range tasks {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		r.Count++
		for line := range strings.Lines(string(data)) {
			key, value, _ := strings.Cut(line, ":")
			if value = strings.TrimSpace(value); !seen[line] {
				seen[line] = true
				r.Threads[key] = append(r.Threads[key], value)
			}
		}
	}
	for i := range busy {
		syscall.Close(pipes[i][1])
	}
	end.Wait()
}
