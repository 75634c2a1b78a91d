package job

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
)

// Refused is where a command was not let.
type Refused struct {
	Hosts  []string // text from outside
	Remedy string   // what the owner can do, in sentences; may be empty
}

// A Connector lets a job reach the network through a proxy.
type Connector interface {
	// Serve answers what a command connects to as its proxy, until ctx ends or l is closed,
	// and says to whom it did not let it. It returns soon after.
	Serve(ctx context.Context, l net.Listener) (refused Refused, err error)
}

// Config is what a Service stands on.
type Config struct {
	Tree        *workspace.Tree
	Place       *sandbox.Place
	State       *state.Store
	WorkspaceID string
	Epoch       string
	Limits      contract.Limits

	// Mode and Network are what the owner gives to commands, asked anew for each; nil means
	// what is safest.
	Mode    func() sandbox.Mode
	Network func() sandbox.Network
	// Connect serves the proxy; nil where there is none.
	Connect Connector
	// Environ is the environment of the server, NAME=value, of which commands get what is on
	// the list, and what EnvAllow names.
	Environ  []string
	EnvAllow []string
	// Offers are the tasks that the repository describes in a file of its own.
	Offers []Offer

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // the clock; nil means time.Now
}

// Service runs the jobs of one workspace. It is safe for use by several goroutines; several
// processes may each have one for the same workspace.
type Service struct {
	Config
	process     string
	spools      *spools
	watchers    sync.WaitGroup // one for each job that runs
	reportEvery time.Duration

	mu      sync.Mutex // guards what follows; before that of a live job
	live    map[string]*live
	slots   int                // taken by jobs that run or are being started
	closing bool               // no more are started
	idle    chan struct{}      // closed when there is none any more, while closing
	unsaved map[string]*record // jobs that are over and could not be written down
}

// New makes the service of a workspace. Jobs of processes that are gone are marked as
// interrupted, and what they left to be run is removed.
func New(ctx context.Context, c Config) (*Service, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Mode == nil {
		c.Mode = func() sandbox.Mode { return sandbox.Require }
	}
	if c.Network == nil {
		c.Network = func() sandbox.Network { return sandbox.NoNetwork }
	}
	s := &Service{Config: c, reportEvery: reportEvery, live: map[string]*live{}, idle: make(chan struct{}), unsaved: map[string]*record{}}
	var err error
	if s.process, err = c.State.Process(ctx); err != nil {
		return nil, err
	}
	if s.spools, err = openSpools(c.State.Dir()); err != nil {
		return nil, err
	}
	if err := s.reconcile(ctx); err != nil {
		return nil, errors.Join(err, s.spools.root.Close())
	}
	return s, nil
}

// Close ends the jobs as [Service.Stop] does, and the use of the service.
func (s *Service) Close() error {
	err := s.Stop(context.Background())
	if err == nil {
		s.watchers.Wait()
	}
	return errors.Join(err, s.save(context.Background()), s.spools.root.Close())
}

// own gives a job of this service as it stands now; nil when it is not one that runs.
func (s *Service) own(id string) *record {
	s.mu.Lock()
	j, r := s.live[id], s.unsaved[id]
	s.mu.Unlock()
	if j != nil {
		return j.now()
	}
	return r
}

// running gives a job that runs here.
func (s *Service) running(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// save writes down the ends of jobs that could not be written before, such as on a full disk.
func (s *Service) save(ctx context.Context) error {
	s.mu.Lock()
	var list []*record
	for _, r := range s.unsaved {
		list = append(list, r)
	}
	s.mu.Unlock()
	for _, r := range list {
		if err := s.update(ctx, r); err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.unsaved, r.ID)
		s.mu.Unlock()
	}
	return nil
}
