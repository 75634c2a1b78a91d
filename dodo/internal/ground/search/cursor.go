package search

import (
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Bounds of cursors (spec dodo-behaviour 4.3).
const (
	cursorTTL  = 5 * time.Minute
	cursorsMax = 256 // the oldest goes first
)

// A cursor is where a search goes on, for one call of who got it.
type cursor struct {
	grant   string
	epoch   string
	query   string // digest of what was asked
	from    place
	expires time.Time
}

type cursors struct {
	mu   sync.Mutex
	byID map[string]cursor
}

// give keeps a cursor and returns its id.
func (c *cursors) give(now time.Time, cur cursor) string {
	cur.expires = now.Add(cursorTTL)
	id := contract.NewID(contract.PrefixCursor, 26)
	c.keep(now, id, cur)
	return id
}

// keep keeps a cursor, also one that was taken for a search that failed.
func (c *cursors) keep(now time.Time, id string, cur cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]cursor{}
	}
	oldest := ""
	for k, v := range c.byID {
		if !now.Before(v.expires) {
			delete(c.byID, k)
		} else if oldest == "" || v.expires.Before(c.byID[oldest].expires) {
			oldest = k
		}
	}
	if len(c.byID) >= cursorsMax {
		delete(c.byID, oldest)
	}
	c.byID[id] = cur
}

// take ends a cursor and says where to go on. One that is another's, or of another query,
// stays.
func (c *cursors) take(now time.Time, id string, want cursor) (cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur, ok := c.byID[id]
	if ok && cur.grant != want.grant {
		return cursor{}, fault.New(contract.Forbidden, "this cursor was given to another caller").
			WithHint("search again without cursor")
	}
	if !ok || !now.Before(cur.expires) || cur.epoch != want.epoch {
		delete(c.byID, id)
		return cursor{}, fault.New(contract.NotFound, "this cursor was used before or has ended").
			WithHint("search again without cursor; a cursor serves once, for five minutes").Retry()
	}
	if cur.query != want.query {
		return cursor{}, fault.New(contract.InvalidInput, "this cursor goes on with another query").
			WithHint("repeat the arguments of the call that gave it, or search without cursor")
	}
	delete(c.byID, id)
	return cur, nil
}
