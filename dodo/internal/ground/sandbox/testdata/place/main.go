// Command place is a server of commands for tests of package sandbox: it reads what is to
// be run from standard input, runs it and answers. Tests run it as users of all kinds, under
// kernels that seem older, and kill it. It is its own helper. Built with the tag weak.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// A job is what a test asks for.
type job struct {
	Root, Cache, Home  string
	Path, Hidden, Read []string
	Secrets, Git       []string
	Fixed, Closed      []string
	Find               bool     // what is kept is looked for, as dodo does
	SecretsAfter       []string // what the workspace keeps from its second look on, when set
	Only               sandbox.Isolation
	Without            string
	Spec               spec
	Say                string // is written to the terminal once the command runs
	Input              string // "": /dev/null; "pipe": a pipe with the text of Say
	KillOn             string // ends it when this was put out
	Terminate          string // the same, in the polite way
	Hangup             string // closes the terminal
	Leak               []string
	Most               int // bytes of output that are kept
	Look               []string
	Times              int  // how often, with the same place
	Hold               bool // a first command runs meanwhile
}

type spec struct {
	Args, Env []string
	Dir       string
	Mode      sandbox.Mode
	Network   sandbox.Network
	ReadOnly  bool
	Terminal  *sandbox.Size
	Script    string
}

// An answer is what came of it.
type answer struct {
	Code, Text, Cause string // of the fault
	Exit              sandbox.Exit
	Isolation         sandbox.Isolation
	Notes             []string
	Hidden            int
	Out               string
	Bytes             int
	Report            sandbox.Report
	Looked            map[string]string
	Started, Took     time.Duration // until it ran, until it had ended
	End               time.Duration // from the order to end until it had ended
	Begun             bool          // the answer is that it runs; the real one comes later
	Pid               int
}

func main() {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, path := range j.Leak {
		if _, err := unix.Open(path, unix.O_RDONLY, 0); err != nil {
			fmt.Fprintln(os.Stderr, path, err)
			os.Exit(2)
		}
	}
	box := sandbox.New(sandbox.Options{Path: j.Path, Hidden: j.Hidden, Read: j.Read, Home: j.Home})
	if j.Only != "" {
		box.Only(j.Only)
	}
	var tree *workspace.Tree
	if j.Find {
		var err error
		if tree, err = workspace.Open(j.Root, workspace.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		defer tree.Close()
	}
	looks := 0
	place := box.Place(j.Root, j.Cache, func(ctx context.Context) (sandbox.Kept, error) {
		if tree != nil {
			k, err := tree.Kept(ctx)
			return sandbox.Kept{Secrets: k.Secrets, Git: k.Git, Fixed: k.Fixed, Closed: k.Closed}, err
		}
		if looks++; looks > 1 && j.SecretsAfter != nil {
			return sandbox.Kept{Secrets: j.SecretsAfter, Git: j.Git, Fixed: j.Fixed, Closed: j.Closed}, nil
		}
		return sandbox.Kept{Secrets: j.Secrets, Git: j.Git, Fixed: j.Fixed, Closed: j.Closed}, nil
	})
	if len(j.Look) > 0 {
		a := answer{Looked: map[string]string{}}
		for _, name := range j.Look {
			path, err := place.Look(name)
			a.Looked[name] = path
			if err != nil {
				a.Looked[name] = err.Error()
			}
		}
		put(a)
		return
	}
	if j.Hold {
		p, err := place.Start(context.Background(), sandbox.Spec{Args: []string{"/bin/sleep", "60"}, Dir: j.Root, Env: j.Spec.Env, Mode: j.Spec.Mode})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		defer p.Wait()
		defer p.Kill()
		put(answer{Begun: true, Pid: p.Pid()})
	}
	for range max(1, j.Times) {
		put(j.run(box, place))
	}
}

var out sync.Mutex // guards standard output

func put(a answer) {
	out.Lock()
	defer out.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		os.Exit(3)
	}
}

func (j job) run(box *sandbox.Box, place *sandbox.Place) (a answer) {
	a.Report = box.Probe(context.Background())
	s := sandbox.Spec{
		Args: j.Spec.Args, Dir: j.Spec.Dir, Env: j.Spec.Env, Mode: j.Spec.Mode, Network: j.Spec.Network, ReadOnly: j.Spec.ReadOnly,
		Terminal: j.Spec.Terminal, Script: j.Spec.Script,
	}
	s.Without(j.Without)
	r, w, err := os.Pipe()
	if err != nil {
		a.Text = err.Error()
		return a
	}
	defer r.Close()
	if s.Terminal == nil {
		s.Stdout, s.Stderr = w, w
		if j.Input == "pipe" {
			in, to, err := os.Pipe()
			if err != nil {
				a.Text = err.Error()
				return a
			}
			s.Stdin = in
			go func() {
				_, _ = io.WriteString(to, j.Say)
				to.Close()
			}()
		}
	}
	begun := time.Now()
	p, err := place.Start(context.Background(), s)
	w.Close()
	if s.Stdin != nil {
		s.Stdin.Close()
	}
	if err != nil {
		a.Text, a.Code = err.Error(), "none"
		var f *fault.Error
		if errors.As(err, &f) {
			a.Code = string(f.Code)
			if f.Err != nil {
				a.Cause = f.Err.Error()
			}
		}
		return a
	}
	a.Started, a.Isolation, a.Notes, a.Hidden, a.Pid = time.Since(begun), p.Isolation, p.Notes, p.Hidden, p.Pid()
	put(answer{Begun: true, Pid: a.Pid, Isolation: p.Isolation})
	var from io.Reader = r
	if p.Terminal != nil {
		from = p.Terminal
		defer p.Terminal.Close()
		if j.Say != "" {
			_, _ = io.WriteString(p.Terminal, j.Say)
		}
	}
	var mu sync.Mutex
	var ordered time.Time
	order := func(on string, text []byte, do func()) {
		mu.Lock()
		defer mu.Unlock()
		if on != "" && ordered.IsZero() && strings.Contains(string(text), on) {
			ordered = time.Now()
			do()
		}
	}
	var read sync.WaitGroup
	read.Go(func() {
		most := j.Most
		if most == 0 {
			most = 1 << 20
		}
		var kept []byte
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			a.Bytes += n
			kept = append(kept, buf[:min(n, most-len(kept))]...)
			order(j.KillOn, kept, p.Kill)
			order(j.Terminate, kept, p.Terminate)
			order(j.Hangup, kept, func() { p.Terminal.Close() })
			if err != nil { // a terminal ends with one
				break
			}
		}
		a.Out = string(kept)
	})
	a.Exit = p.Wait()
	a.Took = time.Since(begun)
	if mu.Lock(); !ordered.IsZero() {
		a.End = time.Since(ordered)
	}
	mu.Unlock()
	read.Wait()
	return a
}
