package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
	"localmcp/internal/keyshape"
)

// The bounds of one run (spec dodo-behaviour 6).
const (
	readTime   = 15 * time.Second
	commitTime = 120 * time.Second // of a whole commit, hooks and all
	graceTime  = 3 * time.Second   // for a run that writes, to end by itself
	mostOutput = 8 << 20
	mostErrors = 500 // characters of what git complains of
	keptErrors = 8 << 10
)

// runner is the one place where git is started.
type runner struct {
	hooksPlace *sandbox.Place
	place      *sandbox.Place
	mode       sandbox.Mode
	program    string
	repo       *repo // nil: git without a repository
	overrides  settings
	patience   time.Duration // with a run that only reads
	hooks      bool          // it knows git hook
}

// call is one run of git.
type call struct {
	args []string
	in   []byte
	env  []string // beside what every run has; the later wins
	// write lets it change the repository and the work tree.
	write bool
	// cut keeps the beginning of an output that is too long, which is refused otherwise.
	cut bool
	// hooks lets the repository's hooks and whatever else it names run: only for git hook.
	hooks bool
	// slow gives it the time of a commit.
	slow bool
	// fails are exit statuses that the caller understands.
	fails []int
}

// output is what a run gave.
type output struct {
	bytes  []byte
	cut    bool // there was more
	code   int
	errors string   // the beginning of what it complained of, made visible and without keys
	notes  []string // what the sandbox says that it changed
}

// runner finds git and holds its version against what is needed.
func (s *Service) runner(ctx context.Context, r *repo) (runner, error) {
	program, err := s.Place.Look("git")
	if err != nil {
		if errors.Is(err, contract.NotFound) {
			err = fault.Wrap(contract.NotFound, err, "git is not installed where dodo looks for programs").
				WithHint("the owner can install git; environment_info shows what is there")
		}
		return runner{}, err
	}
	run := runner{place: s.Place, hooksPlace: s.HooksPlace, mode: s.mode, program: program, repo: r, overrides: fixed, patience: s.patience}
	s.mu.Lock()
	known := s.knows == program
	run.hooks = known && s.hooks
	s.mu.Unlock()
	if known {
		return run, nil
	}
	bare := run
	bare.repo = nil
	out, err := bare.run(ctx, call{args: []string{"version"}})
	if err != nil {
		return run, err
	}
	if !atLeast(string(out.bytes), leastVersion) {
		return run, fault.New(contract.NotSupported, "this git is older than 2.32, which cannot be kept from running what a repository names").
			WithHint("the owner can install a newer git")
	}
	run.hooks = atLeast(string(out.bytes), hookVersion)
	s.mu.Lock()
	s.knows, s.hooks = program, run.hooks
	s.mu.Unlock()
	return run, nil
}

// The versions 2.x of git that count.
const (
	// leastVersion knows GIT_CONFIG_COUNT (2.31) and GIT_CONFIG_GLOBAL (2.32): without them
	// nothing would be overridden, silently.
	leastVersion = 32
	// hookVersion knows git hook run.
	hookVersion = 36
)

// atLeast reports whether git says that it is 2.least or newer.
func atLeast(version string, least int) bool {
	f := strings.FieldsFunc(version, func(r rune) bool { return r == ' ' || r == '.' || r == '\n' })
	if len(f) < 4 || f[0] != "git" || f[1] != "version" {
		return false
	}
	major, err1 := strconv.Atoi(f[2])
	minor, err2 := strconv.Atoi(f[3])
	return err1 == nil && err2 == nil && (major > 2 || major == 2 && minor >= least)
}

// environ is the whole environment of a run.
func (r *runner) environ(c call) []string {
	env := []string{
		"PATH=" + r.place.Path(), "HOME=/dev/null", "XDG_CONFIG_HOME=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:", "GIT_ASKPASS=", "SSH_ASKPASS=",
	}
	if c.hooks {
		// A hook is the repository's own program: the git that it calls works as it expects.
		env = append(env, "LANG=C.UTF-8")
	} else {
		env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_LITERAL_PATHSPECS=1", "GIT_SSH_COMMAND=false")
		overrides := r.overrides
		if c.write { // what the owner has git keep in the index stays there
			overrides = append(slices.Clone(overrides), setting{"core.untrackedCache", "keep"})
		}
		env = append(env, overrides.environ()...)
	}
	if r.repo != nil {
		env = append(env, "GIT_DIR="+r.repo.dir, "GIT_WORK_TREE="+r.repo.top)
	}
	return append(env, c.env...)
}

// spec is a run as the sandbox takes it.
func (r *runner) spec(c call) sandbox.Spec {
	args := []string{r.program, "--no-pager"}
	// Where no repository is named git looks for none: what a pointer in the workspace names
	// it could not see.
	s := sandbox.Spec{Dir: "/", Env: r.environ(c), Mode: r.mode, Network: sandbox.NoNetwork, ReadOnly: !c.write}
	if r.repo != nil {
		s.Dir = r.place.Root()
		args = append(args, "-C", r.repo.top)
		s.Read = r.repo.read
		if c.write {
			s.Write = r.repo.write
		}
	}
	s.Args = append(args, c.args...)
	return s
}

// errSlow is the cause of a run that took too long.
var errSlow = errors.New("git took too long")

// run runs git and gives what it writes. A run that ends in another way than by an exit
// status the caller understands is a fault.
func (r *runner) run(ctx context.Context, c call) (output, error) {
	limit := r.patience
	if c.write || c.slow {
		limit = commitTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	var ends pipes
	defer ends.close()
	s := r.spec(c)
	var err error
	if err = errors.Join(ends.open(&ends.out), ends.open(&ends.err), ends.open(&ends.in)); err != nil {
		return output{}, fault.Wrap(contract.ResourceLimit, err, "too many files are open").WithHint("try again in a moment").Retry()
	}
	s.Stdin, s.Stdout, s.Stderr = ends.in.read, ends.out.write, ends.err.write
	place := r.place
	if c.hooks {
		place = r.hooksPlace
	}
	p, err := place.Start(ctx, s)
	if err != nil {
		return output{}, err
	}
	ends.given()
	ended, stopped := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		if c.write { // git removes its locks when it is asked to end, and cannot when it is killed
			p.Terminate()
			select {
			case <-ended:
				return
			case <-time.After(graceTime):
			}
		}
		p.Kill()
	})
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = ends.in.write.Write(c.in) // git may end before it has read all
		_ = ends.in.write.Close()
	})
	var complaint []byte
	all.Go(func() {
		complaint, _ = io.ReadAll(io.LimitReader(ends.err.read, keptErrors))
		_, _ = io.Copy(io.Discard, ends.err.read)
	})
	var o output
	o.bytes, err = io.ReadAll(io.LimitReader(ends.out.read, mostOutput+1))
	if len(o.bytes) > mostOutput || err != nil {
		o.bytes, o.cut = o.bytes[:min(len(o.bytes), mostOutput)], true
		p.Kill()
		_, _ = io.Copy(io.Discard, ends.out.read)
	}
	exit := p.Wait()
	close(ended)
	if !stop() {
		<-stopped
	}
	all.Wait()
	o.code, o.errors, o.notes = exit.Code, complain(complaint), exit.Notes
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errSlow):
		return o, fault.Wrap(contract.Timeout, context.Cause(ctx), "git took longer than %v", limit).
			WithHint("name fewer paths, or try again when the machine has less to do").Retry()
	case ctx.Err() != nil:
		return o, ctx.Err()
	case err != nil:
		return o, fault.Wrap(contract.InternalError, err, "the output of git could not be read")
	case o.cut && !c.cut:
		return o, fault.New(contract.ResourceLimit, "git answered with more than %d MiB", mostOutput>>20).
			WithHint("name fewer paths; large folders that are not tracked belong into .gitignore")
	case o.cut || o.code == 0 || slices.Contains(c.fails, o.code):
		return o, nil
	}
	return o, o.fault()
}

// fault is that of a run that failed in a way nobody expected.
func (o output) fault() error {
	return fault.New(contract.InternalError, "git could not do that").
		WithHint("detail.stderr is what git says; the owner may have to look at the repository").With("stderr", o.errors)
}

// complain is the beginning of what git complained of, as it may be shown: keys are masked.
func complain(b []byte) string {
	s := string(bytes.TrimSpace(b))
	s, _ = keyshape.Mask(s, 0, len(s))
	s = text.Visible(s)
	if utf8.RuneCountInString(s) > mostErrors {
		s = string([]rune(s)[:mostErrors])
	}
	return s
}

// pipe has two ends; an end that was closed is nil.
type pipe struct{ read, write *os.File }

// pipes are those of one run.
type pipes struct{ in, out, err pipe }

func (*pipes) open(p *pipe) (err error) {
	p.read, p.write, err = os.Pipe()
	return err
}

// given closes the ends that the command has.
func (p *pipes) given() {
	for _, f := range []**os.File{&p.in.read, &p.out.write, &p.err.write} {
		_ = (*f).Close()
		*f = nil
	}
}

func (p *pipes) close() {
	for _, f := range []*os.File{p.in.read, p.in.write, p.out.read, p.out.write, p.err.read, p.err.write} {
		if f != nil {
			_ = f.Close()
		}
	}
}
