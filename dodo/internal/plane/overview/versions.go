package overview

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/text"
)

// Bounds of asking programs for their versions (spec dodo-catalog, environment_info).
const (
	versionTime  = 4 * time.Second
	versionChars = 120
	versionBytes = 4 << 10 // read of what one writes
	versionKept  = time.Minute
	atOnce       = 4
)

// versions remembers what programs said of themselves.
type versions struct {
	mu    sync.Mutex // held while they are asked
	asked time.Time
	said  map[string]string
}

// ask has each program say its version, in the sandbox and never elsewhere. One that does not
// is left out.
func (v *versions) ask(ctx context.Context, place *sandbox.Place, paths map[string]string) map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.said != nil && time.Since(v.asked) < versionKept {
		return v.said
	}
	said := map[string]string{}
	var mu sync.Mutex // guards said
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for name, path := range paths {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if line := version(ctx, place, name, path); line != "" {
				mu.Lock()
				said[name] = line
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		v.said, v.asked = said, time.Now()
	}
	return said
}

// version is the first line of what a program says of itself.
func version(ctx context.Context, place *sandbox.Place, name, path string) string {
	flag := "--version"
	if name == "go" {
		flag = "version"
	}
	r, w, err := os.Pipe()
	if err != nil {
		return ""
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	p, err := place.Start(ctx, sandbox.Spec{
		Args: []string{path, flag}, Dir: place.Root(), Env: []string{"PATH=" + place.Path(), "LANG=C.UTF-8", "TERM=dumb"},
		Stdout: w, Stderr: w, Mode: sandbox.Prefer, Network: sandbox.NoNetwork, ReadOnly: true,
	})
	w.Close()
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	out, err := io.ReadAll(io.LimitReader(r, versionBytes))
	if len(out) == versionBytes {
		p.Kill() // it may go on for ever
	}
	if e := p.Wait(); err != nil || ctx.Err() != nil || e.Code > 0 {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	chars := []rune(text.Visible(strings.ToValidUTF8(strings.TrimSpace(line), "�")))
	return string(chars[:min(len(chars), versionChars)])
}
