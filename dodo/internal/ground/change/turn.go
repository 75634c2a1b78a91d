package change

import (
	"context"
	"errors"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
)

// turnWait is how long a change waits for those of other processes.
const turnWait = 30 * time.Second

// takeTurn takes the workspace's turn among processes; the caller gives it back. It is held
// while a change is applied and at no other time.
func (s *Service) takeTurn(ctx context.Context) (done func(), err error) {
	wait, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	held, err := privdir.Lock(wait, s.turn)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			err = held.Unlock()
		}
		return nil, fault.Wrap(contract.Conflict, errors.Join(ctx.Err(), err), "the call was cancelled while it waited for its turn").
			WithHint("nothing was changed; make the call again if it is still wanted")
	case errors.Is(err, privdir.Busy):
		return nil, fault.Wrap(contract.Timeout, err, "other changes of this workspace took longer than 30 seconds").
			WithHint("try again in a moment").Retry()
	case err != nil:
		return nil, state.Fault(err)
	}
	return func() { _ = held.Unlock() }, nil // closing the descriptor gives it back in any case
}
