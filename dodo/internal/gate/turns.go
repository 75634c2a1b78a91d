package gate

import (
	"context"
	"errors"
	"sync"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// ending is the fault of a call that was not finished because the program ends.
func ending(hint string) error {
	return fault.New(contract.Conflict, "dodo is ending").WithHint("%s; connect again, then make the call again", hint).Retry()
}

// longestQueue is how many calls may wait for their turn in one workspace.
const longestQueue = 32

// Turns lets the effects of one workspace happen one at a time, in the order they came.
// The zero value is ready.
type Turns struct {
	mu      sync.Mutex // guards what follows
	taken   bool
	waiting []chan struct{}
}

// Take waits for the turn. Give it back with release, once. A queue that is full is
// RESOURCE_LIMIT, a caller that no longer waits CONFLICT.
func (t *Turns) Take(ctx context.Context) (release func(), err error) {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return t.pass, nil
	}
	if len(t.waiting) >= longestQueue {
		t.mu.Unlock()
		return nil, fault.New(contract.ResourceLimit, "%d calls already wait for their turn in this workspace", longestQueue).
			WithHint("wait for earlier calls to end, then call again").Retry()
	}
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.pass, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i, c := range t.waiting {
		if c == mine {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			t.mu.Unlock()
			return nil, cancelled(ctx)
		}
	}
	t.mu.Unlock()
	t.pass() // the turn came at the same moment
	return nil, cancelled(ctx)
}

func cancelled(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), op.ErrEnding) {
		return ending("nothing was changed")
	}
	return fault.New(contract.Conflict, "the call was cancelled while it waited for its turn").WithHint("nothing was changed; call again").Retry()
}

// pass gives the turn to whoever waits longest.
func (t *Turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	close(next)
}
