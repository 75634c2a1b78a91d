package egress

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mostNamed is how many targets are kept by name, and longestNamed how long each is shown.
const (
	mostNamed    = 20
	longestNamed = 120
)

// refusals counts what was refused.
type refusals struct {
	mu    sync.Mutex // guards what follows
	count int
	named []string
}

// Refused tells how many requests the owner's rules refused, and where the first of them
// were to go: each once, in the order they came, twenty at most. They are words of whoever
// asked, escaped and cut.
func (r *refusals) Refused() (count int, targets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, slices.Clone(r.named)
}

func (r *refusals) add(host string) {
	if len(host) > longestNamed {
		host = strings.ToValidUTF8(host[:longestNamed], "") + "..."
	}
	shown := strconv.QuoteToASCII(host)
	shown = shown[1 : len(shown)-1]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if len(r.named) < mostNamed && !slices.Contains(r.named, shown) {
		r.named = append(r.named, shown)
	}
}
