package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// Bounds of a server.
const (
	maxConnections = 64
	idle           = 10 * time.Second // how long a message may take to come or go
	retries        = 10               // of a start
	staleTemp      = time.Minute      // age at which a socket without its name, or a descriptor without its socket, is what a crash left
)

// A Command is what the owner may ask of a running server. args is a JSON object.
type Command func(ctx context.Context, args json.RawMessage) (any, error)

// Status is what a server says of itself.
type Status struct {
	PID         int       `json:"pid"`
	Version     string    `json:"version"`
	Transport   string    `json:"transport"` // stdio or http
	Surface     string    `json:"surface"`
	Root        string    `json:"root"` // empty: no workspace was chosen yet
	WorkspaceID string    `json:"workspaceId"`
	Epoch       string    `json:"workspaceEpoch"`
	Started     time.Time `json:"started"`
}

// Options are what a server is made of.
type Options struct {
	Dir       string // the installation directory, which exists
	Workspace string // id of the workspace it serves; empty: none yet
	Commands  map[string]Command
	Status    func() Status
	// Stop makes the server end. It is called once the answer is out, and must not wait.
	Stop func()
	Log  *slog.Logger // nil: none
}

// A Server listens for the owner.
type Server struct {
	o     Options
	dir   *safefile.Root
	doors []*door

	cancel  context.CancelFunc
	running sync.WaitGroup
	free    chan struct{} // a place for each connection

	mu   sync.Mutex // guards open
	open map[net.Conn]bool
}

// A door is one socket with its descriptor.
type door struct {
	name  string
	auth  descriptor
	l     *net.UnixListener
	inode os.FileInfo // of the socket: another process may have taken the name
}

// Listen opens the sockets of a server: one of its own, and the one of its workspace, which it
// takes over from a server that came before. Sockets that nobody listens on any more are
// removed. Call Close.
func Listen(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for again := retries; ; again-- {
		s, err := listen(ctx, o)
		// A server that ends may take the empty directory outside the installation along, at
		// any moment until a socket is in it.
		if err == nil || again == 0 || !gone(err) && !errors.Is(err, privdir.Unusable) {
			return s, err
		}
	}
}

func listen(ctx context.Context, o Options) (*Server, error) {
	me, err := self()
	if err != nil {
		return nil, err
	}
	dir, err := privdir.Create(socketDir(o.Dir), dirWhat)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{o: o, dir: dir, cancel: cancel, free: make(chan struct{}, maxConnections), open: map[net.Conn]bool{}}
	sweep(dir)
	names := []string{instancePrefx + newNonce(keyChars/2) + socketSuffix}
	if o.Workspace != "" {
		names = append(names, aliasName(o.Workspace))
	}
	for _, name := range names {
		d, err := s.listen(name, me)
		if err != nil {
			return nil, errors.Join(fault.Wrap(contract.InternalError, err, "the owner's socket cannot be opened").
				WithHint("look at the permissions and the free space of the installation directory"), s.Close())
		}
		s.doors = append(s.doors, d)
		s.running.Go(func() { s.accept(ctx, d) })
	}
	return s, nil
}

// listen makes a socket under another name first: the one it is known by is never there
// without a listener, and never open to others.
func (s *Server) listen(name string, me process) (*door, error) {
	path := filepath.Join(s.dir.Path(), name)
	temp := filepath.Join(s.dir.Path(), tempPrefix+newNonce(keyChars/2)+socketSuffix)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	d := &door{name: name, l: l, auth: descriptor{
		Version: protocol, Nonce: newNonce(descriptorNonceBytes), Token: newNonce(tokenBytes), Endpoint: path, Process: me,
	}}
	text, err := jsonv2.Marshal(d.auth)
	if err == nil {
		err = os.Chmod(temp, 0o600)
	}
	if err == nil {
		err = publish(path+authSuffix, text)
	}
	if err == nil {
		d.inode, err = os.Lstat(temp)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return nil, errors.Join(err, l.Close())
	}
	return d, nil
}

// publish writes a descriptor in one step. It need not survive the machine: the server does
// not, so nothing waits for the disk.
func publish(path string, text []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+newNonce(keyChars/2)+authSuffix)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// sweep removes sockets and descriptors of servers that are gone. What cannot be removed hinders nobody.
func sweep(dir *safefile.Root) {
	list, _, err := dir.ReadDir(".")
	if err != nil {
		return
	}
	old := func(path string) bool {
		st, err := os.Lstat(path)
		return err == nil && time.Since(st.ModTime()) > staleTemp
	}
	for _, e := range list {
		path := filepath.Join(dir.Path(), e.Name)
		switch {
		case strings.HasPrefix(e.Name, tempPrefix):
			if old(path) {
				_ = os.Remove(path)
			}
		case strings.HasSuffix(e.Name, authSuffix): // its socket comes right after it
			if _, err := os.Lstat(strings.TrimSuffix(path, authSuffix)); gone(err) && old(path) {
				_ = os.Remove(path)
			}
		case strings.HasSuffix(e.Name, socketSuffix):
			c, err := net.DialTimeout("unix", path, probeTime)
			if err == nil {
				c.Close()
				continue
			}
			if refused(err) {
				_ = os.Remove(path)
				_ = os.Remove(path + authSuffix)
			}
		}
	}
}

// Close ends the server: it takes no more connections, ends the open ones and waits for
// their commands, whose context is cancelled.
func (s *Server) Close() error {
	s.cancel()
	var errs []error
	for _, d := range s.doors {
		path := filepath.Join(s.dir.Path(), d.name)
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, d.inode) {
			errs = append(errs, os.Remove(path), os.Remove(path+authSuffix))
		}
		errs = append(errs, d.l.Close())
	}
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.open = nil
	s.mu.Unlock()
	s.running.Wait()
	if filepath.Dir(s.dir.Path()) != s.o.Dir {
		_ = os.Remove(s.dir.Path()) // stays while others have sockets there
	}
	return errors.Join(append(errs, s.dir.Close())...)
}

func (s *Server) accept(ctx context.Context, d *door) {
	for {
		c, err := d.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left, for one
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		select {
		case s.free <- struct{}{}:
		default:
			c.Close()
			continue
		}
		if !s.enter(c) {
			c.Close()
			return
		}
		s.running.Go(func() {
			defer func() { s.leave(c); <-s.free }()
			if err := s.serve(ctx, d, c); err != nil {
				s.o.Log.Warn("a connection to the owner's socket was refused", "cause", err)
			}
		})
	}
}

func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	s.open[c] = true
	return true
}

func (s *Server) leave(c net.Conn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	c.Close()
}

// serve is one connection: one question, one answer.
func (s *Server) serve(ctx context.Context, d *door, c *net.UnixConn) error {
	if err := s.judge(c); err != nil {
		if gone(err) {
			return nil // a peer that has ended asks nothing
		}
		return err
	}
	r := bufio.NewReader(c)
	late := func() { _ = c.SetDeadline(time.Now().Add(idle)) }
	late()
	var h hello
	if err := readFrame(r, &h); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // somebody looked whether a server is here
		}
		return err
	}
	if h.Version != protocol || !isHex(h.Nonce, nonceBytes) || h.Mac != "" {
		return errProtocol
	}
	ch := channel{token: d.auth.token(), client: h.Nonce, server: newNonce(nonceBytes)}
	if err := writeFrame(c, hello{Version: protocol, Nonce: ch.server, Mac: mac(ch.token, "hello", ch.client, ch.server)}); err != nil {
		return err
	}
	late()
	var box sealed
	var q request
	if err := readFrame(r, &box); err != nil {
		return err
	}
	if err := ch.open("request", box, &q); err != nil {
		return err
	}
	if len(q.Cmd) > maxCommand {
		return errProtocol
	}
	result, after, err := s.run(ctx, q)
	if after != nil {
		defer after()
	}
	return s.answer(c, ch, q.ID, result, err)
}

func (s *Server) answer(c *net.UnixConn, ch channel, id string, result any, err error) error {
	a := response{ID: id}
	if err == nil {
		if a.Result, err = jsonv2.Marshal(result); err != nil {
			err = fmt.Errorf("encode an answer: %w", err)
		}
	}
	if err != nil {
		a.Error = problemOf(err)
	}
	box, err := ch.seal("response", a)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(idle))
	err = writeFrame(c, box)
	if errors.Is(err, errTooLong) {
		return s.answer(c, ch, id, nil, fault.New(contract.ResourceLimit, "the answer is too large for the owner's socket").WithHint("ask for less"))
	}
	return err
}

func problemOf(err error) *problem {
	f := fault.From(err)
	if f.Code == fault.Internal {
		f.Code = contract.InternalError
	}
	return &problem{Code: f.Code, Message: f.Error(), Hint: f.Hint, Retryable: f.Retryable, Detail: f.Detail}
}

// judge refuses a peer that is not the owner's own command line.
func (s *Server) judge(c *net.UnixConn) error {
	pid, uid, err := peerOf(c)
	switch {
	case err != nil:
		return err
	case uid != uint32(os.Geteuid()):
		return errors.New("the peer is another user")
	case pid <= 0:
		return errors.New("the peer is in another process table")
	}
	servers := listening(s.dir)
	job, err := descends(pid, func(p process) bool { return servers[p] })
	if err != nil {
		return fmt.Errorf("look at the peer: %w", err)
	}
	if job {
		return errors.New("the peer descends from a server: it is a job, not the owner")
	}
	return nil
}

// listening are the processes that have sockets in a directory. That of a process that is
// gone is there too, and is no other's.
func listening(dir *safefile.Root) map[process]bool {
	all := map[process]bool{}
	list, _, err := dir.ReadDir(".")
	if err != nil {
		return all
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name, socketSuffix) {
			if d, err := readDescriptor(dir, e.Name); err == nil {
				all[d.Process] = true
			}
		}
	}
	return all
}

// stopArgs are those of the command stop. They name the server that was meant.
type stopArgs struct {
	PID   int    `json:"expectedPid"`
	Epoch string `json:"expectedEpoch"`
}

// run does what is asked. after, when it is not nil, comes once the answer is out.
func (s *Server) run(ctx context.Context, q request) (result any, after func(), err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("a command of the owner panicked", "command", q.Cmd, "cause", p)
			result, after, err = nil, nil, fault.New(contract.InternalError, "something went wrong inside the server").WithHint("its log says more")
		}
	}()
	switch q.Cmd {
	case "status":
		return s.o.Status(), nil, nil
	case "stop":
		var args stopArgs
		if err := jsonv2.Unmarshal(q.Args, &args, jsonv2.RejectUnknownMembers(true)); err != nil {
			return nil, nil, fault.Wrap(contract.InvalidInput, err, "stop needs the process and the epoch that are meant")
		}
		if now := s.o.Status(); args.PID != now.PID || args.Epoch != now.Epoch {
			return nil, nil, fault.New(contract.StaleWorkspace, "the server is not the one that was meant any more").WithHint("look again, then stop it").Retry()
		}
		return struct{}{}, s.o.Stop, nil
	}
	command, ok := s.o.Commands[q.Cmd]
	if !ok {
		return nil, nil, fault.New(contract.NotSupported, "the server does not know that command").WithHint("it may be an older version; restart it")
	}
	if len(q.Args) == 0 {
		q.Args = json.RawMessage("{}")
	}
	result, err = command(ctx, q.Args)
	return result, nil, err
}
