package change

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// Reconcile completes or takes back what processes left that died on the way. It is for the
// start; every change does it too before it begins. What only the owner can decide is no
// error here: it stands in the history as recovery_required.
func (s *Service) Reconcile(ctx context.Context) error {
	list, err := s.journal.loose(ctx, s.isSwept)
	if err != nil || len(list) == 0 {
		return err
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	swept, err := s.settle(ctx)
	if err != nil && !errors.Is(err, contract.RecoveryRequired) {
		return err
	}
	if err := s.journal.markSwept(ctx, swept); err != nil {
		return err
	}
	s.noted(swept)
	return nil
}

// settle looks at what is loose, in the turn. It fails with RECOVERY_REQUIRED while a change
// waits for the owner, and returns the changes of which no stage is left.
func (s *Service) settle(ctx context.Context) (swept []string, err error) {
	list, err := s.journal.loose(ctx, s.isSwept)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	var blocked []string
	for _, e := range list {
		switch e.Status {
		case Committing:
			err = s.reconcile(ctx, e)
		case RecoveryRequired:
			err = s.reconsider(ctx, e)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.Status == RecoveryRequired:
			blocked = append(blocked, e.ID)
		case s.isSwept(e.ID) || !e.swept && s.sweepStages(e) == nil:
			swept = append(swept, e.ID)
		}
	}
	if len(blocked) > 0 {
		return swept, fault.New(contract.RecoveryRequired, "an earlier change of this workspace was interrupted, and only the owner can say how it ends").
			WithHint("the owner runs dodo recover list, then dodo recover %s with --forward, --back or --resolve", blocked[0]).With("changesets", blocked)
	}
	return swept, nil
}

func (s *Service) isSwept(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swept[id]
}

// reconcile ends a change whose process died.
func (s *Service) reconcile(ctx context.Context, e *entry) error {
	all, err := s.standings(e)
	if err != nil {
		return plain(err)
	}
	switch judge(all) {
	case complete:
		if err := s.flush(e); err != nil {
			return plain(err)
		}
		return s.journal.commit(ctx, e)
	case takeBack:
		if left, swept := s.takeBack(ctx, e, all); len(left) == 0 {
			return s.journal.end(ctx, e, Failed, contract.RecoveryRequired, swept)
		}
	}
	return s.journal.end(ctx, e, RecoveryRequired, contract.RecoveryRequired, false)
}

// reconsider ends a change that waits for the owner when meanwhile there is nothing to decide:
// what made it unclear may have been another program in the middle of saving a file. It ends only
// what is whole or has no effect; everything else stays as the owner was told.
func (s *Service) reconsider(ctx context.Context, e *entry) error {
	all, err := s.standings(e)
	if err != nil {
		return nil // as unclear as it was
	}
	if judge(all) == complete {
		return s.reconcile(ctx, e)
	}
	for i, st := range e.steps {
		rests := all[i] == before || all[i] == foreign || st.action == MakeDir || st.action == RemoveDir
		if !rests {
			return nil
		}
	}
	if left, swept := s.takeBack(ctx, e, all); len(left) == 0 {
		return s.journal.end(ctx, e, Failed, fault.Code(e.Error), swept)
	}
	return nil
}

// unwind takes back a change that failed with cause. The error is the cause when nothing of
// the change is left, and PARTIAL_RECOVERY_REQUIRED otherwise.
func (s *Service) unwind(ctx context.Context, e *entry, cause error) error {
	code := fault.From(plain(cause)).Code
	all, err := s.standings(e)
	var left []conflict
	swept := false
	if err != nil {
		for _, st := range e.steps {
			left = append(left, conflict{Path: st.path, Reason: unclearReason})
		}
	} else {
		left, swept = s.takeBack(ctx, e, all)
	}
	if len(left) == 0 {
		// When this cannot be written the next change finds everything as before and notes it.
		_ = s.journal.end(ctx, e, Failed, code, swept)
		return cause
	}
	_ = s.journal.end(ctx, e, RecoveryRequired, contract.PartialRecoveryRequired, false)
	return fault.Wrap(contract.PartialRecoveryRequired, errors.Join(cause, err), "the change failed on the way, and some files could not be put back").
		WithHint("the owner runs dodo recover %s with --forward, --back or --resolve", e.ID).
		With("changesetId", e.ID).With("conflicts", left[:min(len(left), maxConflicts)]).With("cause", string(code))
}

func (s *Service) standings(e *entry) ([]standing, error) {
	all := make([]standing, len(e.steps))
	for i, st := range e.steps {
		if st.action == RemoveDir {
			all[i] = after // it is done behind the commit, and nothing depends on it
			continue
		}
		v, err := s.look(st)
		switch {
		case err == nil:
			all[i] = st.standing(v)
		case s.shut(err):
			all[i] = unclear
		default:
			return nil, err
		}
	}
	return all, nil
}

// shut reports whether a look failed because file tools may not reach a path of the workspace
// now: a directory became a link, say. That may last, so it must not keep a change from its end.
func (s *Service) shut(err error) bool {
	return (errors.Is(err, contract.PathDenied) || errors.Is(err, contract.SecretPathDenied)) && s.Tree.Check() == nil
}

// takeBack undoes what was done of a change, the last first, and returns what it could not.
// Where nothing is left of the change it is swept, too, if that is possible now.
func (s *Service) takeBack(ctx context.Context, e *entry, all []standing) (left []conflict, swept bool) {
	fail := func(path string, err error) {
		var c *conflictError
		switch {
		case errors.As(err, &c):
			left = append(left, c.list...)
		case err != nil:
			left = append(left, conflict{Path: path, Reason: "it cannot be put back: " + plain(err).Error()})
		}
	}
	for i, st := range slices.Backward(e.steps) {
		switch all[i] {
		case unclear:
			fail(st.path, stop(st.path, unclearReason))
		case after, robbed:
			err := s.at("undo")
			if err == nil {
				err = s.undo(ctx, st, all[i])
			}
			fail(st.path, err)
		}
	}
	if len(left) == 0 {
		fail(".", s.flush(e))
	}
	if len(left) > 0 {
		return left, false
	}
	// Only without the stages are the directories empty that were made.
	swept = s.sweepStages(e) == nil
	for i, st := range slices.Backward(e.steps) {
		if st.action == MakeDir && all[i] == after {
			swept = s.dropDir(st.path) == nil && swept
		}
	}
	return nil, swept
}

// undo takes one step back. How far it is was just seen.
func (s *Service) undo(ctx context.Context, st step, how standing) error {
	p, err := parse(st.path)
	if err != nil {
		return err
	}
	d, err := s.parent(p)
	if err != nil || d == nil {
		if err == nil && st.action != MakeDir && st.action != RemoveDir {
			err = stop(st.path, parentReason)
		}
		return err
	}
	defer d.Close()
	name := p.Base()
	switch st.action {
	case Create:
		if how == robbed {
			return taken(st.path, d.Restore(st.stage, name))
		}
		return s.uncreate(d, st, name)
	case Modify:
		return s.unmodify(ctx, d, st, name, how)
	case Delete:
		return s.undelete(ctx, d, st, name)
	case Move:
		return s.unmove(d, st, name)
	case MakeDir:
		if err := d.RemoveDir(name); err != nil && !notThere(err) && !notEmpty(err) {
			return err
		}
	}
	return nil
}

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) // POSIX allows both
}

func (s *Service) uncreate(d *workspace.Dir, st step, name string) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st.before, st.after = st.after, ""
	return s.remove(d, st, name, f)
}

// unmodify swaps back. Of a robbed step what comes into place is not ours and stays.
func (s *Service) unmodify(ctx context.Context, d *workspace.Dir, st step, name string, how standing) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	waits, err := glimpseUpTo(d, st.stage, packMax)
	if err != nil {
		return err
	}
	back := st
	back.before, back.after = st.after, waits.hash
	switch {
	case waits.what == nothing:
		data, err := s.backups.load(ctx, st.before)
		if err != nil {
			return lost(st, err)
		}
		if err := d.WriteStage(st.stage, data, fs.FileMode(st.mode), f); err != nil {
			return err
		}
		back.after = st.before
	case how == after && !waits.is(st.before):
		return stop(st.path, unclearReason)
	}
	return s.replace(d, back, name, f)
}

func (s *Service) undelete(ctx context.Context, d *workspace.Dir, st step, name string) error {
	waits, err := glimpseUpTo(d, st.stage, packMax)
	if err != nil {
		return err
	}
	if waits.what == nothing {
		data, err := s.backups.load(ctx, st.before)
		if err != nil {
			return lost(st, err)
		}
		if err := d.WriteStage(st.stage, data, fs.FileMode(st.mode), nil); err != nil {
			return err
		}
	}
	return taken(st.path, d.Restore(st.stage, name))
}

func lost(st step, err error) error {
	if errors.Is(err, errNoBackup) {
		return stop(st.path, backupReason)
	}
	return err
}

func (s *Service) unmove(d *workspace.Dir, st step, name string) error {
	dest, err := parse(st.dest)
	if err != nil {
		return err
	}
	dd, err := s.parent(dest)
	if err != nil {
		return err
	}
	if dd == nil {
		return stop(st.dest, parentReason)
	}
	defer dd.Close()
	return taken(st.path, dd.Rename(dest.Base(), d, name))
}

// eachDir calls f once for every directory that a change has a step in, also where one fails.
func (s *Service) eachDir(e *entry, f func(*workspace.Dir) error) error {
	seen := map[string]bool{}
	visit := func(path string) error {
		p, err := parse(path)
		if err != nil || path == "" || seen[p.Parent().String()] {
			return nil // an empty path is that of a step without a destination
		}
		seen[p.Parent().String()] = true
		d, err := s.parent(p)
		if err != nil || d == nil {
			return err
		}
		defer d.Close()
		return f(d)
	}
	var errs []error
	for _, st := range e.steps {
		errs = append(errs, visit(st.path), visit(st.dest))
	}
	return errors.Join(errs...)
}

func (s *Service) flush(e *entry) error { return s.eachDir(e, (*workspace.Dir).Sync) }

// sweepStages removes the stages of a change that came to its end, and directories that it
// was to remove.
func (s *Service) sweepStages(e *entry) error {
	if err := s.eachDir(e, func(d *workspace.Dir) error { return d.Sweep(e.ID) }); err != nil {
		return err
	}
	if e.Status != Committed {
		return nil
	}
	for _, st := range e.steps {
		if st.action != RemoveDir {
			continue
		}
		if err := s.dropDir(st.path); err != nil {
			return err
		}
	}
	return nil
}

// dropDir removes a directory if it is there and empty.
func (s *Service) dropDir(path string) error {
	p, err := parse(path)
	if err != nil {
		return err
	}
	d, err := s.parent(p)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	if err := d.RemoveDir(p.Base()); err != nil && !notThere(err) && !notEmpty(err) {
		return err
	}
	return nil
}

// Way is how the owner ends an interrupted change.
type Way string

// The ways.
const (
	Forward Way = "forward" // do what is left of it
	Back    Way = "back"    // take back what was done of it
	Resolve Way = "resolve" // leave the files as they are
)

// Recovered is what came of a change that was recovered.
type Recovered struct {
	Changeset
	// Saved are files that were put beside their places, because they hold what another
	// program wrote and nothing else has.
	Saved []string
}

// Recover ends a change that waits for the owner. Forward and Back first look at every file
// of it: one that is neither as before nor as after gives CONFLICT, and nothing is touched.
func (s *Service) Recover(ctx context.Context, id string, way Way) (Recovered, error) {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return Recovered{}, err
	}
	defer done()
	ctx = context.WithoutCancel(ctx)
	e, err := s.journal.find(ctx, id)
	if err != nil {
		return Recovered{}, err
	}
	if e.Status == Committing { // its process died: this turn would not be ours otherwise
		if err := s.reconcile(ctx, e); err != nil {
			return Recovered{}, err
		}
		if e.Status != RecoveryRequired {
			return Recovered{Changeset: e.Changeset}, nil
		}
	}
	if e.Status != RecoveryRequired {
		return Recovered{}, fault.New(contract.Conflict, "this change is not one that waits to be recovered").
			WithHint("dodo recover list shows those that do").With("status", string(e.Status))
	}
	var saved []string
	switch way {
	case Forward:
		err = s.forward(ctx, e)
	case Back:
		err = s.back(ctx, e)
	case Resolve:
		saved, err = s.resolve(ctx, e)
	default:
		err = fault.New(contract.InvalidInput, "a change is recovered forward, back or resolved").WithHint("give one of the three")
	}
	return Recovered{Changeset: e.Changeset, Saved: saved}, plainRecovery(err)
}

func plainRecovery(err error) error {
	var c *conflictError
	if errors.As(err, &c) {
		return c.fault(contract.Conflict, "put these files into one of the two states, or leave everything as it is with --resolve")
	}
	return plain(err)
}

func (s *Service) back(ctx context.Context, e *entry) error {
	all, err := s.standings(e)
	if err != nil {
		return err
	}
	var bad []conflict
	for i, st := range e.steps {
		if all[i] == unclear {
			bad = append(bad, conflict{Path: st.path, Reason: unclearReason})
		}
	}
	swept := false
	if len(bad) == 0 {
		bad, swept = s.takeBack(ctx, e, all)
	}
	if len(bad) > 0 {
		return &conflictError{bad}
	}
	return s.journal.end(ctx, e, Failed, contract.RecoveryRequired, swept)
}

// forward does the steps that were not done.
func (s *Service) forward(ctx context.Context, e *entry) error {
	all, err := s.standings(e)
	if err != nil {
		return err
	}
	contents := s.contents(ctx, e)
	var bad []conflict
	for i, st := range e.steps {
		switch {
		case all[i] == after:
		case all[i] != before:
			bad = append(bad, conflict{Path: st.path, Reason: unclearReason})
		case st.action == Create || st.action == Modify:
			if v, err := s.look(st); err != nil || !v.stage.is(st.after) && contents[st.after] == nil {
				bad = append(bad, conflict{Path: st.path, Reason: stageReason})
			}
		}
	}
	if len(bad) > 0 {
		return &conflictError{bad}
	}
	for i, st := range e.steps {
		if all[i] == before {
			if err := s.redo(st, contents[st.after]); err != nil {
				return err
			}
		}
	}
	if err := s.flush(e); err != nil {
		return err
	}
	return s.journal.commit(ctx, e)
}

// contents are the new contents that are kept outside the workspace, by hash: those of the
// plan. There may be none.
func (s *Service) contents(ctx context.Context, e *entry) map[string][]byte {
	list := map[string][]byte{}
	p, err := s.plans.find(ctx, e.PlanID)
	if err == nil && s.plans.fill(p.Plan) == nil {
		for _, f := range p.Files {
			if f.after != nil {
				list[f.AfterHash] = f.after
			}
		}
	}
	return list
}

// redo does one step that was seen not to be done.
func (s *Service) redo(st step, content []byte) error {
	p, err := parse(st.path)
	if err != nil {
		return err
	}
	d, err := s.parent(p)
	if err == nil && d == nil {
		err = stop(st.path, parentReason)
	}
	if err != nil {
		return err
	}
	defer d.Close()
	w := &work{s: s, dirs: map[string]*workspace.Dir{}}
	defer w.close()
	j := &job{step: st, at: p, body: content}
	if st.action == Modify || st.action == Delete {
		if j.model, err = d.Open(p.Base()); err != nil {
			return err
		}
		w.jobs = []*job{j} // so that it is closed
	}
	switch st.action {
	case MakeDir:
		return w.makeDir(j)
	case Move:
		if j.to, err = parse(st.dest); err != nil {
			return err
		}
	case Create, Modify:
		waits, err := glimpseUpTo(d, st.stage, packMax)
		if err != nil {
			return err
		}
		if !waits.is(st.after) {
			if err := d.WriteStage(st.stage, content, fs.FileMode(st.mode), j.model); err != nil {
				return err
			}
		}
	}
	return w.publish(j)
}

// savedMark stands between the name of a file and the id of a change in the name of what was
// saved from it; nameBytes is how long names are at most.
const (
	savedMark = ".saved-"
	nameBytes = 255
)

// savedName is the name that what a stage holds of a file gets.
func savedName(name, id string) string {
	most := nameBytes - len(savedMark) - len(id)
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return name + savedMark + id
}

// resolve leaves the files as they are. What only a stage holds gets a name that can be seen;
// where it cannot be looked at, stages stay for ever.
func (s *Service) resolve(ctx context.Context, e *entry) (saved []string, err error) {
	passed := false
	for _, st := range e.steps {
		if st.stage == "" {
			continue
		}
		v, err := s.look(st)
		if s.shut(err) {
			passed = true
			continue
		}
		if err != nil {
			return saved, err
		}
		if v.stage.what == nothing || v.stage.is(st.before) || v.stage.is(st.after) {
			continue
		}
		p, err := parse(st.path)
		if err != nil {
			return saved, err
		}
		d, err := s.parent(p)
		if err != nil {
			return saved, err
		}
		name := savedName(p.Base(), e.ID)
		err = d.Restore(st.stage, name)
		d.Close()
		if err != nil {
			return saved, err
		}
		saved = append(saved, p.Parent().Join(name).String())
	}
	swept := s.sweepStages(e) == nil
	return saved, s.journal.end(ctx, e, Failed, contract.RecoveryRequired, swept || passed)
}
