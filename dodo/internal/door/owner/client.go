package owner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// Bounds of looking for servers.
const (
	probes    = 8 // at a time
	probeTime = 1500 * time.Millisecond
)

// A Live is a server that answered.
type Live struct {
	Status
	socket string // path
}

// A Silent is a socket whose server did not answer as one must.
type Silent struct {
	Socket string // its name
	Err    error
}

// Discover asks every server of an installation for its status, wherever it was started. A
// server is named once, by pid. Sockets that nobody listens on are passed over; the others
// that do not answer are named. It makes and removes nothing.
func Discover(ctx context.Context, installation string) (live []Live, silent []Silent, err error) {
	dir, err := privdir.Open(socketDir(installation), dirWhat)
	if gone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	list, _, err := dir.ReadDir(".")
	if err != nil {
		return nil, nil, fmt.Errorf("list the sockets: %w", err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, probes)
	for _, e := range list {
		if !strings.HasSuffix(e.Name, socketSuffix) || strings.HasPrefix(e.Name, tempPrefix) {
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			l, err := probe(ctx, dir, e.Name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				live = append(live, l)
			case !gone(err) && !refused(err):
				silent = append(silent, Silent{Socket: e.Name, Err: err})
			}
		})
	}
	all.Wait()
	// By pid, and of one process its own socket before that of its workspace: "p-" < "w-".
	slices.SortFunc(live, func(a, b Live) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.socket, b.socket)) })
	live = slices.CompactFunc(live, func(a, b Live) bool { return a.PID == b.PID })
	slices.SortFunc(silent, func(a, b Silent) int { return cmp.Compare(a.Socket, b.Socket) })
	return live, silent, nil
}

// probe asks one socket. What it says must be what its descriptor says.
func probe(ctx context.Context, dir *safefile.Root, name string) (Live, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	l := Live{socket: filepath.Join(dir.Path(), name)}
	d, err := call(ctx, dir, name, "status", nil, &l.Status)
	if err == nil && l.PID != d.Process.PID {
		err = spoofed("it says that it is another process")
	}
	return l, err
}

// ErrEnded says that the server ended before it was asked. It is a NOT_FOUND too.
var ErrEnded = errors.New("the server ended")

// Call asks a server. args and the answer are JSON objects; into may be nil. A failure of the
// command has the code that the server gave it.
func (l Live) Call(ctx context.Context, cmd string, args, into any) error {
	dir, err := privdir.Open(filepath.Dir(l.socket), dirWhat)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = call(ctx, dir, filepath.Base(l.socket), cmd, args, into)
	if gone(err) || refused(err) {
		return fault.Wrap(contract.NotFound, errors.Join(ErrEnded, err), "the server ended meanwhile").WithHint("`dodo status` shows which servers run")
	}
	return err
}

// Stop asks a server to end, and waits until its socket is gone.
func (l Live) Stop(ctx context.Context) error {
	if err := l.Call(ctx, "stop", stopArgs{PID: l.PID, Epoch: l.Epoch}, nil); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(l.socket); gone(err) {
			return nil
		}
		c, err := net.Dial("unix", l.socket)
		if err != nil && refused(err) {
			return nil
		}
		if err == nil {
			c.Close()
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(contract.Timeout, ctx.Err(), "the server has not ended yet").WithHint("wait, or look at what it is doing; it was not killed").Retry()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// call is one connection. Nothing is said before the other end has proved itself.
func call(ctx context.Context, dir *safefile.Root, name, cmd string, args, into any) (d descriptor, err error) {
	if err := checkSocket(dir, name); err != nil {
		return d, err
	}
	if d, err = readDescriptor(dir, name); err != nil {
		return d, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", d.Endpoint)
	if err != nil {
		return d, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err = converse(conn.(*net.UnixConn), d, cmd, args, into)
	if ctx.Err() != nil && err != nil {
		return d, fault.Wrap(contract.Timeout, err, "the server does not answer").WithHint("it may be stopped or very busy; try again").Retry()
	}
	return d, err
}

func converse(conn *net.UnixConn, d descriptor, cmd string, args, into any) error {
	if _, uid, err := peerOf(conn); err != nil {
		return err
	} else if uid != uint32(os.Geteuid()) {
		return spoofed("another user listens on it")
	}
	r := bufio.NewReader(conn)
	ch := channel{token: d.token(), client: newNonce(nonceBytes)}
	if err := writeFrame(conn, hello{Version: protocol, Nonce: ch.client}); err != nil {
		return unproven(err)
	}
	var h hello
	if err := readFrame(r, &h); err != nil {
		return unproven(err)
	}
	ch.server = h.Nonce
	if h.Version != protocol || !isHex(h.Nonce, nonceBytes) || !proves(h.Mac, ch.token, "hello", ch.client, ch.server) {
		return spoofed("who listens on it does not know its token")
	}
	q := request{ID: newNonce(8), Cmd: cmd, Args: json.RawMessage("{}")}
	if args != nil {
		var err error
		if q.Args, err = jsonv2.Marshal(args); err != nil {
			return fmt.Errorf("encode the arguments: %w", err)
		}
	}
	box, err := ch.seal("request", q)
	if err == nil {
		err = writeFrame(conn, box)
	}
	if errors.Is(err, errTooLong) {
		return fault.Wrap(contract.ResourceLimit, err, "the question is too large for the owner's socket")
	}
	if err != nil {
		return unproven(err)
	}
	var answer sealed
	if err := readFrame(r, &answer); err != nil {
		return unproven(err)
	}
	var a response
	if err := ch.open("response", answer, &a); err != nil {
		return spoofed("an answer was changed on the way")
	}
	if a.ID != q.ID {
		return spoofed("an answer is that to another question")
	}
	if p := a.Error; p != nil {
		return &fault.Error{Code: p.Code, Msg: p.Message, Hint: p.Hint, Retryable: p.Retryable, Detail: p.Detail}
	}
	if into == nil {
		return nil
	}
	return jsonv2.Unmarshal(a.Result, into)
}

// unproven is the fault of an end that closed or spoke nonsense.
func unproven(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fault.Wrap(contract.Forbidden, err, "the server closed the connection without an answer").
		WithHint("run the command in a terminal of your own, not in a job that dodo started")
}

// refused reports whether nobody listens on a socket.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
