package mcpserve

import (
	"net/http"
	"sync"
)

// A large request is held in memory several times over while it is read and answered, so one
// owner has only so many at a time; the body of the next is not read before.
const (
	largeBody = 256 << 10 // bytes
	mostLarge = 4
)

// lanes are the large requests that are being answered, by owner.
type lanes struct {
	mu     sync.Mutex // guards what follows
	owners map[string]*lane
}

type lane struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

// enter waits for a place for a request, if it is large. ok is false when its client went away.
func (l *lanes) enter(r *http.Request, owner string) (leave func(), ok bool) {
	if r.ContentLength >= 0 && r.ContentLength <= largeBody {
		return func() {}, true
	}
	l.mu.Lock()
	x := l.owners[owner]
	if x == nil {
		x = &lane{places: make(chan struct{}, mostLarge)}
		if l.owners == nil {
			l.owners = map[string]*lane{}
		}
		l.owners[owner] = x
	}
	x.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(l.owners, owner)
		}
	}
	select {
	case x.places <- struct{}{}:
		return func() { <-x.places; gone() }, true
	case <-r.Context().Done():
		gone()
		return nil, false
	}
}
