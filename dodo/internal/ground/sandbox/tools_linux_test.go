package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ordinary tools do their work within the walls.
func TestTools(t *testing.T) {
	for _, c := range []struct{ name, needs, script, want string }{
		{"pipes", "sh", "yes | head -1000 | sort | uniq -c | tr -s ' '; f() { cat <<X\nhere\nX\n}; f; echo $(( 6 * 7 ))", " 1000 y\nhere\n42\n"},
		{"git", "git", `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main r && cd r && git config user.name x && echo a >f && git add f && git commit -q -m one && git gc -q && git worktree add -q ../w -b w && cd ../w && git status --short && git log --format=%s`, "one\n"},
		{"make", "make", "printf 'all: x\\n\\t@cat x\\nx:\\n\\t@echo made >x\\n' >Makefile; make -s", "made\n"},
		{"gcc", "gcc", "printf '#include <stdio.h>\\nint main(){puts(\"hello\");}' >a.c && gcc -o a a.c && ./a", "hello\n"},
		{"python", "/usr/bin/python3", `cat >t.py <<'X'
import multiprocessing as m, asyncio, pty, os
from multiprocessing import shared_memory as s
def f(x): return x*x
async def main():
    async def on(r, w):
        w.write(await r.readline()); await w.drain(); w.close()
    server = await asyncio.start_server(on, '127.0.0.1', 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b'async\n'); print((await r.readline()).decode(), end='')
    p = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1)
    print((await p.communicate())[0].decode(), end='')
if __name__ == '__main__':
    with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))
    x = s.SharedMemory(create=True, size=10); x.buf[0] = 7; y = s.SharedMemory(x.name); print(y.buf[0]); y.close(); x.close(); x.unlink()
    asyncio.run(main())
    print(os.waitstatus_to_exitcode(pty.spawn(['test', '-t', '0'])))
X
/usr/bin/python3 t.py`, "[1, 4, 9]\n7\nasync\nchild\n0\n"},
		{"venv", "/usr/bin/python3", "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'", "True\n"},
		{"node", "node", `cat >t.js <<'X'
const { Worker, isMainThread, parentPort } = require('worker_threads'), http = require('http');
if (!isMainThread) parentPort.postMessage('worker');
else new Worker(__filename).on('message', m => {
  console.log(m);
  const s = http.createServer((q, r) => r.end('http')).listen(0, '127.0.0.1', () =>
    http.get({ port: s.address().port, host: '127.0.0.1' }, r => r.on('data', d => { console.log(String(d)); process.exit() })));
});
X
node t.js`, "worker\nhttp\n"},
		{"npm", "npm", `npm init -y >/dev/null && npm pkg set scripts.test='echo tested' && npm test --silent --offline`, "tested\n"},
		{"go", "go", `cat >go.mod <<'X'
module x
go 1.21
X
cat >x_test.go <<'X'
package x
import ("net";"testing")
func Test(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0"); if err != nil { t.Fatal(err) }
	c, err := net.Dial("tcp", l.Addr().String()); if err != nil { t.Fatal(err) }
	c.Close()
}
X
CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off go test -vet=off . | cut -f 1`, "ok  \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("%s is not installed", c.needs)
			}
			if c.name == "go" && testing.Short() {
				t.Skip("it builds the standard library")
			}
			users(t, func(t *testing.T, g *ground) {
				if g.who != nil {
					// What another user may not reach cannot be used by it anywhere.
					if path, err := exec.LookPath(c.needs); err == nil && strings.HasPrefix(path, "/root/") {
						t.Skip("it is root's")
					}
				}
				if c.name == "go" && g.root0 {
					return // once is enough: it takes long
				}
				j := sh("cd " + g.root + " && " + c.script)
				j.Home = os.Getenv("HOME")
				if c.needs == "go" {
					out, err := exec.Command("go", "env", "GOROOT").Output()
					must(t, err)
					j.Path = append([]string{filepath.Join(strings.TrimSpace(string(out)), "bin")}, filepath.SplitList(os.Getenv("PATH"))...)
					j.Read = []string{strings.TrimSpace(string(out))}
				}
				a := g.ran(j)
				if out := strings.ReplaceAll(a.Out, "\r\n", "\n"); out != c.want || a.Exit.Code != 0 {
					t.Errorf("%+v\n%s", a.Exit, a.Out)
				}
			})
		})
	}
}
