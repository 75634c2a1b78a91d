package egress

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"localmcp/internal/fault"
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
	ways  []string // entries of egressAllow that would have let requests through
	more  bool     // there are more of them
	deny  bool     // egressDeny refused one
}

// mostWays is how many such entries are kept.
const mostWays = 5

// Refused tells how many requests the owner's rules refused, and where the first of them
// were to go: each once, in the order they came, twenty at most. They are words of whoever
// asked, escaped and cut.
func (r *refusals) Refused() (count int, targets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, slices.Clone(r.named)
}

// remedy says how the owner lets through what was refused; empty when nothing would. only says
// that the owner's list of what is allowed is not empty.
func (r *refusals) remedy(only bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var says []string
	rest := ""
	if r.more {
		rest = " ..."
	}
	switch {
	case len(r.ways) > 0 && only:
		says = append(says, "The owner can add "+strings.Join(r.ways, ", ")+rest+" to the setting egressAllow: `dodo config get egressAllow` shows the list, "+
			"`dodo config set egressAllow ...` writes all of it; then dodo must be restarted.")
	case len(r.ways) > 0:
		says = append(says, "The owner can allow it: `dodo config set egressAllow '*' '"+strings.Join(r.ways, "' '")+"'"+rest+"`, where * keeps everything public; then dodo must be restarted.")
	}
	if r.deny {
		says = append(says, "The owner's setting egressDeny names what was refused: `dodo config get egressDeny` shows the list.")
	}
	return strings.Join(says, " ")
}

func (r *refusals) add(host string, f *fault.Error) {
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
	r.deny = r.deny || f.Detail[bySetting] == "egressDeny"
	if way, ok := f.Detail[allowing].(string); ok && !slices.Contains(r.ways, way) {
		if r.more = len(r.ways) == mostWays; !r.more {
			r.ways = append(r.ways, way)
		}
	}
}
