package change

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

// An order is a change that is to be made when the turn has come.
type order struct {
	kind      Kind
	principal string
	plan      *Plan
	// again makes the plan anew when the files changed since it was made; nil when the
	// change is for exactly what was shown.
	again func(ctx context.Context) (*Plan, error)
	// check holds, under the turn, what else must still be so; nil for nothing.
	check func(ctx context.Context) error
}

// do makes a change in its turn. The entry it returns is committed.
func (s *Service) do(ctx context.Context, o *order) (*entry, []string, error) {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	swept, err := s.settle(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o.check != nil {
		if err := o.check(ctx); err != nil {
			return nil, nil, err
		}
	}
	w, err := s.ready(o.plan)
	if c := (*conflictError)(nil); errors.As(err, &c) && o.again != nil {
		if o.plan, err = o.again(ctx); err != nil {
			return nil, nil, err
		}
		w, err = s.ready(o.plan)
	}
	if err != nil {
		return nil, nil, o.failure(err)
	}
	defer w.close()
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.Wrap(contract.Conflict, err, "the call was cancelled before anything was changed").WithHint("call again")
	}
	w.entry = &entry{Changeset: Changeset{
		ID: contract.NewID(contract.PrefixChangeset, 0), PlanID: o.plan.ID, Kind: o.kind, Status: Committing, Principal: o.principal,
		Summary: o.plan.Summary(), Undoes: o.plan.undoes, Created: s.Now(),
	}}
	err = w.make(context.WithoutCancel(ctx), swept)
	if errors.Is(err, contract.PartialRecoveryRequired) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, o.failure(err)
	}
	s.tend(context.WithoutCancel(ctx))
	return w.entry, w.notes, nil
}

// failure gives a conflict the code of what was tried.
func (o *order) failure(err error) error {
	var c *conflictError
	if errors.As(err, &c) && o.kind == KindRollback {
		return c.fault(contract.Conflict, "somebody changed these since; undo that first, or change the files by hand")
	}
	return plain(err)
}

// A work is a change under way.
type work struct {
	s     *Service
	entry *entry
	jobs  []*job
	dirs  map[string]*workspace.Dir // open directories by path
	keep  []packed                  // contents to back up
	notes []string
}

// A job is one step with what it takes.
type job struct {
	step
	at, to workspace.Path
	body   []byte          // the new content
	model  *workspace.File // of a Modify or a Delete: what is there
	draft  *os.File        // what becomes the stage; nil when there is none
	failed error           // why there is none
}

func (w *work) close() {
	for _, j := range w.jobs {
		if j.model != nil {
			j.model.Close()
		}
		if j.draft != nil {
			j.draft.Close()
		}
	}
	for _, d := range w.dirs {
		d.Close()
	}
}

// ready looks at every file of a plan and makes the steps. What is not as the plan says is
// a conflictError that names all of it.
func (s *Service) ready(p *Plan) (*work, error) {
	w := &work{s: s, dirs: map[string]*workspace.Dir{}}
	var bad []conflict
	for i := range p.Files {
		err := w.add(&p.Files[i])
		var c *conflictError
		if errors.As(err, &c) {
			bad = append(bad, c.list...)
			continue
		}
		if err != nil {
			w.close()
			return nil, err
		}
	}
	if len(bad) > 0 {
		w.close()
		return nil, &conflictError{bad}
	}
	// Directories are made first, the outer before the inner, and removed last, the inner
	// before the outer.
	rank := func(j *job) int {
		depth := strings.Count(j.path, "/")
		switch j.action {
		case MakeDir:
			return depth - 1000
		case RemoveDir:
			return 1000 - depth
		}
		return 0
	}
	slices.SortStableFunc(w.jobs, func(a, b *job) int { return rank(a) - rank(b) })
	for i, j := range w.jobs {
		j.seq = i
	}
	return w, nil
}

func (w *work) add(f *File) error {
	p, err := parse(f.Path)
	if err != nil {
		return err
	}
	j := &job{step: step{action: f.Action, path: p.String(), before: f.BeforeHash, after: f.AfterHash, mode: f.mode}, at: p, body: f.after}
	switch f.Action {
	case Create:
		err = w.addCreate(j, f)
	case Modify, Delete:
		if f.BeforeHash == f.AfterHash {
			return nil // nothing is to be done
		}
		err = w.addReplace(j, f)
	case Move:
		err = w.addMove(j, f)
	case MakeDir, RemoveDir:
		return w.addDirectory(j, f)
	}
	if err != nil {
		if j.model != nil {
			j.model.Close()
		}
		return err
	}
	w.jobs = append(w.jobs, j)
	return nil
}

func (w *work) addCreate(j *job, f *File) error {
	if err := w.s.Tree.Access(j.at); err != nil {
		return err
	}
	if !f.comesBack {
		j.mode = uint32(0o666 &^ w.s.umask)
	}
	d, err := w.dir(j.at.Parent(), j.at)
	if err != nil {
		return err
	}
	if d == nil {
		if !f.Parents {
			return stop(j.path, parentReason)
		}
		return w.addParents(j.at.Parent())
	}
	_, err = d.Stat(j.at.Base())
	switch {
	case err == nil:
		return stop(j.path, takenReason)
	case !notThere(err):
		return err
	}
	return nil
}

// addParents makes steps for a directory that is not there, and for those above it.
func (w *work) addParents(p workspace.Path) error {
	for ; !p.IsRoot(); p = p.Parent() {
		if slices.ContainsFunc(w.jobs, func(j *job) bool { return j.action == MakeDir && j.at == p }) {
			return nil
		}
		in, err := w.s.Tree.Stat(p)
		switch {
		case err == nil && in.Type == safefile.Directory:
			return nil
		case err == nil:
			return stop(p.String(), takenReason)
		case !notThere(err):
			return err
		}
		w.jobs = append(w.jobs, &job{step: step{action: MakeDir, path: p.String(), mode: 0o777}, at: p})
	}
	return nil
}

func (w *work) addReplace(j *job, f *File) error {
	d, err := w.dir(j.at.Parent(), j.at)
	if err != nil {
		return err
	}
	if d == nil {
		return stop(j.path, missingReason)
	}
	if j.model, err = d.Open(j.at.Base()); err != nil {
		if notThere(err) {
			return stop(j.path, missingReason)
		}
		return err
	}
	data, err := readFile(j.model, f.BytesBefore)
	if err != nil {
		return err
	}
	if hash := contract.Hash(data); hash != j.before {
		switch {
		case j.model.Info.Size > packMax:
			hash = "" // it is not worth the time
		case int64(len(data)) > f.BytesBefore: // it was not read whole
			if hash, err = hashOf(j.model); err != nil {
				return err
			}
		}
		return &conflictError{[]conflict{{Path: j.path, Reason: changedReason, expected: j.before, actual: hash}}}
	}
	f.before = forDiff(data) // of a stored plan it was not known
	j.mode = uint32(j.model.Info.Mode)
	w.keep = append(w.keep, w.s.backups.pack(j.before, data))
	return nil
}

// readFile reads a file that should have want bytes, and one byte more where it has more.
func readFile(f *workspace.File, want int64) ([]byte, error) {
	data := make([]byte, want+1)
	n, err := io.ReadFull(io.NewSectionReader(f, 0, want+1), data)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return data[:n], err
}

func (w *work) addMove(j *job, f *File) error {
	to, err := parse(f.Dest)
	if err != nil {
		return err
	}
	j.to, j.dest = to, to.String()
	d, err := w.dir(j.at.Parent(), j.at)
	if err != nil {
		return err
	}
	if d == nil {
		return stop(j.path, missingReason)
	}
	from, err := d.Open(j.at.Base())
	if notThere(err) {
		return stop(j.path, missingReason)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	hash, err := hashOf(from)
	if err != nil {
		return err
	}
	if hash != j.before {
		return &conflictError{[]conflict{{Path: j.path, Reason: changedReason, expected: j.before, actual: hash}}}
	}
	j.mode = uint32(from.Info.Mode)
	dd, err := w.dir(to.Parent(), to)
	if err != nil {
		return err
	}
	if dd == nil {
		if f.Parents {
			return w.addParents(to.Parent())
		}
		return stop(j.dest, parentReason)
	}
	if _, err := dd.Stat(to.Base()); err == nil {
		return stop(j.dest, takenReason)
	} else if !notThere(err) {
		return err
	}
	return nil
}

// addDirectory: a directory that is as it should be already needs no step.
func (w *work) addDirectory(j *job, f *File) error {
	in, err := w.s.Tree.Stat(j.at)
	is := nothing
	switch {
	case err == nil && in.Type == safefile.Directory:
		is = directory
	case err == nil:
		is = other
	case !notThere(err):
		return err
	}
	switch {
	case j.action == MakeDir && is == nothing:
		if !f.comesBack {
			j.mode = 0o777
		}
		if err := w.addParents(j.at.Parent()); err != nil {
			return err
		}
		w.jobs = append(w.jobs, j)
	case j.action == RemoveDir && is == directory:
		j.mode = uint32(in.Mode)
		w.jobs = append(w.jobs, j)
	case is == other:
		return stop(j.path, takenReason)
	}
	return nil
}

// dir opens a directory once; nil when it is not there. of is what it is opened for.
func (w *work) dir(p, of workspace.Path) (*workspace.Dir, error) {
	if d := w.dirs[p.String()]; d != nil {
		return d, w.s.Tree.Access(of)
	}
	d, err := w.s.parent(of)
	if d != nil {
		w.dirs[p.String()] = d
	}
	return d, err
}

// open is dir for a directory that must be there now.
func (w *work) open(of workspace.Path) (*workspace.Dir, error) {
	d, err := w.dir(of.Parent(), of)
	if err == nil && d == nil {
		err = stop(of.String(), parentReason)
	}
	return d, err
}

// make does it: intent and backups on the disk, new contents on the disk beside their places,
// then one name after the other, then the commit. What fails on the way is taken back.
func (w *work) make(ctx context.Context, swept []string) error {
	s, e := w.s, w.entry
	for _, j := range w.jobs {
		switch j.action {
		case Create, Modify, Delete:
			j.stage = workspace.StageName(e.ID, j.seq)
		}
		e.steps = append(e.steps, j.step)
		e.Files = append(e.Files, ChangedFile{j.action, j.path, j.dest, j.before, j.after})
	}
	err := s.at("begin")
	if err == nil {
		// Both wait for the disk, so they do it together. A draft has no name: whoever dies now
		// leaves nothing.
		drafted := w.draft()
		defer drafted()
		err = s.journal.begin(ctx, e, s.Epoch, func(ctx context.Context, c *sqlitedb.Conn) error {
			for _, p := range w.keep {
				if err := s.backups.keep(ctx, c, p); err != nil {
					return err
				}
			}
			return nil
		}, swept)
		drafted()
	}
	if err != nil {
		return err // nothing was touched
	}
	s.noted(swept)
	err = w.effect()
	if err == nil {
		if err = s.at("commit"); err == nil {
			err = s.journal.commit(ctx, e)
		}
	}
	if err != nil {
		return s.unwind(ctx, e, err)
	}
	_ = s.at("committed") // only a crash can come here
	w.sweep()
	return nil
}

// draftsAtOnce is how many new contents are written at a time: the disk takes several for little
// more than one.
const draftsAtOnce = 4

// draft begins to write the new contents whose directories are there. wait returns when that
// is done; it may be called again.
func (w *work) draft() (wait func()) {
	var group sync.WaitGroup
	slots := make(chan struct{}, draftsAtOnce)
	for _, j := range w.jobs {
		d := w.dirs[j.at.Parent().String()]
		if d == nil || j.action != Create && j.action != Modify {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			j.draft, j.failed = d.Draft(j.body, fs.FileMode(j.mode), j.model)
			<-slots
		})
	}
	return group.Wait
}

// effect changes the files.
func (w *work) effect() error {
	for _, j := range w.jobs {
		if j.action == MakeDir {
			if err := w.makeDir(j); err != nil {
				return err
			}
		}
	}
	for _, j := range w.jobs {
		if err := w.stage(j); err != nil {
			return err
		}
	}
	for _, j := range w.jobs {
		if err := w.s.at("publish"); err != nil {
			return err
		}
		if err := w.publish(j); err != nil {
			return err
		}
	}
	if err := w.s.at("sync"); err != nil {
		return err
	}
	for _, d := range w.dirs {
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return w.s.at("synced")
}

func (w *work) makeDir(j *job) error {
	if err := w.s.at("mkdir"); err != nil {
		return err
	}
	d, err := w.open(j.at)
	if err != nil {
		return err
	}
	err = d.Mkdir(j.at.Base(), fs.FileMode(j.mode))
	if errors.Is(err, fs.ErrExist) {
		in, serr := d.Stat(j.at.Base())
		if serr != nil || in.Type != safefile.Directory {
			return stop(j.path, takenReason)
		}
		return nil // somebody else made it in this moment
	}
	return err
}

// stage writes new bytes beside their place.
func (w *work) stage(j *job) error {
	if j.action != Create && j.action != Modify {
		return nil
	}
	if err := w.s.at("stage"); err != nil {
		return err
	}
	d, err := w.open(j.at)
	if err != nil {
		return err
	}
	if j.failed != nil && !errors.Is(j.failed, errors.ErrUnsupported) {
		return j.failed
	}
	if j.draft != nil {
		err := d.NameStage(j.draft, j.stage)
		err = errors.Join(err, j.draft.Close()) // open for writing it would look like another program's
		j.draft = nil
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return d.WriteStage(j.stage, j.body, fs.FileMode(j.mode), j.model)
}

// publish does one step. When it fails by itself the path is as another program left it.
func (w *work) publish(j *job) error {
	d, err := w.open(j.at)
	if err != nil {
		return err
	}
	switch j.action {
	case Create:
		return taken(j.path, d.Restore(j.stage, j.at.Base()))
	case Modify:
		return w.s.replace(d, j.step, j.at.Base(), j.model)
	case Delete:
		return w.s.remove(d, j.step, j.at.Base(), j.model)
	case Move:
		return w.move(d, j)
	}
	return nil // directories are made before and removed behind the commit
}

func taken(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return stop(path, takenReason)
	}
	return err
}

func (w *work) move(d *workspace.Dir, j *job) error {
	dd, err := w.open(j.to)
	if err != nil {
		return err
	}
	if err := d.Rename(j.at.Base(), dd, j.to.Base()); err != nil {
		switch now, gerr := glimpse(d, j.at.Base()); {
		case notThere(err):
			return stop(j.path, missingReason)
		case errors.Is(err, contract.PathDenied) && gerr == nil && now.what != file:
			return stop(j.path, deniedReason)
		}
		return taken(j.dest, err)
	}
	now, err := glimpse(dd, j.to.Base())
	if err == nil && !now.is(j.before) {
		err = &conflictError{[]conflict{{Path: j.path, Reason: changedReason, expected: j.before, actual: now.hash}}}
	}
	if err != nil {
		return errors.Join(err, dd.Return(j.to.Base(), d, j.at.Base()))
	}
	return nil
}

// sweep removes what the stages keep: it is in the backups. Then directories are empty that
// are to go. What cannot be removed now is removed by the next change.
func (w *work) sweep() {
	clean := true
	for _, j := range w.jobs {
		d, err := w.open(j.at)
		switch {
		case err != nil:
		case j.action == Modify || j.action == Delete:
			err = d.Remove(j.stage)
		case j.action == RemoveDir:
			err = w.removeDir(d, j)
		}
		if err != nil && !notThere(err) {
			clean = false
		}
	}
	if clean {
		w.s.mu.Lock()
		w.s.swept[w.entry.ID] = true
		w.s.mu.Unlock()
	}
}

// removeDir leaves a directory that has something in it: that is not the change's.
func (w *work) removeDir(d *workspace.Dir, j *job) error {
	err := d.RemoveDir(j.at.Base())
	if notEmpty(err) {
		w.entry.left = append(w.entry.left, j.path)
		w.notes = append(w.notes, "a directory that the change had made was left, because there is something in it")
		return nil
	}
	return err
}

// noted forgets what the journal now knows.
func (s *Service) noted(swept []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range swept {
		delete(s.swept, id)
	}
}
