package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/cron"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// The bounds of schedules (spec dodo-behaviour 6).
const (
	MostOpen       = 64 // in a workspace
	MostPending    = 8  // of these, proposed by one client and not decided on
	LongestLife    = 30 * 24 * time.Hour
	DefaultTimeout = 5 * time.Minute
	leastTimeout   = time.Second
	mostTimeout    = 30 * time.Minute
	mostName       = 120      // characters
	mostCommand    = 64 << 10 // bytes
)

// Grants knows whether what a remote client proposed may still run: its grant lives, and the
// owner still grants its client exec in the workspace.
type Grants interface {
	MayRun(ctx context.Context, grant, client, workspace string) (bool, error)
}

// Config is what schedules of a workspace need.
type Config struct {
	Tree      *workspace.Tree
	State     *state.Store
	Workspace string // id
	// Policy is the digest of the owner's rules as they are now: the settings that bear on what
	// a command may do, and the version of the workspace's policy. A CONFLICT says why nothing
	// can run under them.
	Policy func(context.Context) (string, error)
	// Grants knows remote clients; with nil there are none, and what one proposed never runs.
	Grants Grants
	Limits contract.Limits // the owner's; zero is the default ones
	// Unboxed says that the owner has switched the sandbox off, so that one may ask for commands
	// without one.
	Unboxed bool
	// Ready gives NOT_SUPPORTED where commands cannot be walled in; nil is ready.
	Ready func(context.Context) error
	Now   func() time.Time // nil means time.Now
	Log   *slog.Logger     // nil discards
}

// A Service has the schedules of one workspace.
type Service struct {
	Config
	boot  time.Time // what was due before is missed
	begun running
}

// New returns the schedules of a workspace.
func New(c Config) *Service {
	if c.Limits == (contract.Limits{}) {
		c.Limits = contract.DefaultLimits()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c, boot: c.Now()}
}

// Ops are the operations. A nil Service shows them too.
func (s *Service) Ops() []contract.Op { return []contract.Op{s.propose()} }

// Spec is what a schedule does and when.
type Spec struct {
	Name      string `json:"name"`
	Command   string `json:"command" doc:"Exactly as it was given."`
	Cwd       string `json:"cwd"`
	Cron      string `json:"cron"`
	Timezone  string `json:"timezone"`
	ExpiresAt int64  `json:"expiresAt" doc:"Milliseconds since 1970."`
	TimeoutMs int64  `json:"timeoutMs"`
	Sandbox   bool   `json:"sandbox" doc:"False runs it as the owner's commandSandbox says."`
	Network   bool   `json:"network"`
}

// Payload is all that the owner approves. It never changes; its digest names it.
type Payload struct {
	ID        string `json:"id"`
	Workspace string `json:"workspaceId"`
	Spec      Spec   `json:"spec"`
	Root      string `json:"root"`
	Dev       string `json:"dev"` // of the root's directory, in decimal: JSON numbers lose digits
	Ino       string `json:"ino"`
	Policy    string `json:"policy"` // digest of the rules when it was made
	Client    string `json:"clientId"`
	Grant     string `json:"grantId"`
}

// Origin says who made a schedule, in words.
func (p Payload) Origin() string {
	switch p.Grant {
	case state.PrincipalOwner:
		return "the owner, with `dodo schedule add`"
	case contract.LocalGrant:
		return "a client on this machine, over stdio"
	}
	return "the client " + p.Client
}

// remote reports whether a client from elsewhere made it.
func (p Payload) remote() bool {
	return p.Grant != state.PrincipalOwner && p.Grant != contract.LocalGrant
}

// Read gives what a stored schedule says. One whose payload is not what its digest is of is
// refused: it is not what anybody approved.
func Read(x state.Schedule) (p Payload, err error) {
	if contract.Hash(x.Payload) == x.Digest {
		err = jsonv2.Unmarshal(x.Payload, &p, jsonv2.RejectUnknownMembers(true))
		if err == nil && (p.ID != x.ID || p.Workspace != x.Workspace || p.Spec.ExpiresAt != x.Expires.UnixMilli()) {
			err = errors.New("the row is not the payload's")
		}
	} else {
		err = errors.New("the payload is not the digest's")
	}
	if err != nil {
		return Payload{}, fault.Wrap(contract.Conflict, err, "what is stored of the schedule was changed").WithHint("revoke it and make it anew: dodo schedule revoke %s", x.ID)
	}
	return p, nil
}

// identity is the directory that a payload names.
func (s *Service) identity() (dev, ino string) {
	id := s.Tree.Identity()
	return strconv.FormatUint(id.Dev, 10), strconv.FormatUint(id.Ino, 10)
}

// clock reads the expression and the zone of a spec.
func (c Spec) clock() (*cron.Schedule, error) { return cron.Parse(c.Cron, c.Timezone) }

// next is the first time after an instant that a spec is due and not expired; zero for none.
func (c Spec) next(clock *cron.Schedule, after time.Time) time.Time {
	at, ok := clock.Next(after)
	if !ok || at.UnixMilli() >= c.ExpiresAt {
		return time.Time{}
	}
	return at
}

// Runs are the next times that a schedule would be due after an instant, at most n, and none
// past its expiry.
func (c Spec) Runs(after time.Time, n int) ([]cron.Run, error) {
	clock, err := c.clock()
	if err != nil {
		return nil, err
	}
	list := clock.Preview(after.Truncate(time.Second).Add(time.Second), n).Runs
	for i, r := range list {
		if r.At.UnixMilli() >= c.ExpiresAt {
			return list[:i], nil
		}
	}
	return list, nil
}

// encode gives the payload as it is stored, and its digest.
func (p Payload) encode() (json.RawMessage, string, error) {
	raw, err := contract.Canonical(p)
	return raw, contract.Hash(raw), err
}
