package httpd

import "sync"

// mostFlying is how many requests of one login may be answered at a time, streams that only
// listen among them: one client leaves room for the others.
const mostFlying = 128

// flying counts the requests that are being answered, by login.
type flying struct {
	mu    sync.Mutex // guards count
	count map[string]int
}

// begin counts one in, if there is room.
func (f *flying) begin(owner string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[owner] >= mostFlying {
		return false
	}
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.count[owner]++
	return true
}

func (f *flying) end(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[owner]--; f.count[owner] == 0 {
		delete(f.count, owner)
	}
}
