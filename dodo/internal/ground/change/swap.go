package change

import (
	"errors"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
)

// writerWait is how long a program that has a file open for writing may take to end: most only
// save it.
const writerWait = 300 * time.Millisecond

// hold keeps others from beginning to write to a file while its name is swapped, where the
// system can. Who writes to it already must end first. done is never nil.
func (s *Service) hold(f *workspace.File, path string) (held bool, done func(), err error) {
	if s.at("lease") != nil {
		return false, func() {}, nil // as on a file system that has none
	}
	for end := time.Now().Add(writerWait); ; {
		held, writers := f.Lease()
		if held {
			return true, f.EndLease, nil
		}
		if !writers {
			return false, func() {}, nil
		}
		if time.Now().After(end) {
			return false, func() {}, stop(path, writerReason)
		}
		time.Sleep(2 * time.Millisecond) // the kernel tells only who asks
	}
}

// unchanged looks once more whether a name leads to the file that was looked at. It only makes
// it rare that something must be put back.
func unchanged(d *workspace.Dir, st step, name string, f *workspace.File) error {
	in, err := d.Stat(name)
	switch {
	case notThere(err):
		return stop(st.path, missingReason)
	case err != nil:
		return err
	case !in.Same(f.Info):
		return stop(st.path, changedReason)
	}
	return nil
}

// take puts the file f into the stage by swap, while others are held back until done. done is
// never nil.
func (s *Service) take(d *workspace.Dir, st step, name string, f *workspace.File, swap func() error) (held bool, done func(), err error) {
	held, done, err = s.hold(f, st.path)
	if err == nil {
		err = unchanged(d, st, name, f)
	}
	if err == nil {
		err = s.at("swap")
	}
	if err == nil {
		err = swap()
	}
	if notThere(err) {
		err = stop(st.path, missingReason)
	}
	return held, done, err
}

// displaced judges what a swap or a withdrawal put into the stage: it must be what was looked
// at, and nobody may be waiting to write to it.
func displaced(d *workspace.Dir, st step, f *workspace.File, held bool) error {
	out, err := d.Open(st.stage)
	if err != nil {
		if errors.Is(err, contract.PathDenied) {
			return stop(st.path, deniedReason)
		}
		return err
	}
	defer out.Close()
	if out.Info.Size != f.Info.Size { // however large it is now
		return stop(st.path, changedReason)
	}
	hash, err := hashOf(out)
	switch {
	case err != nil:
		return err
	case hash != st.before:
		return &conflictError{[]conflict{{Path: st.path, Reason: changedReason, expected: st.before, actual: hash}}}
	case out.Info.Mode != f.Info.Mode:
		return stop(st.path, modeReason)
	case held && !f.Undisturbed():
		return stop(st.path, writerReason)
	}
	return nil
}

// replace swaps the stage with the file f, and looks at what came out. What should not have
// gone goes back.
func (s *Service) replace(d *workspace.Dir, st step, name string, f *workspace.File) error {
	held, done, err := s.take(d, st, name, f, func() error { return d.Exchange(st.stage, name) })
	defer done()
	if err != nil {
		return err
	}
	why := s.at("swapped")
	if why == nil {
		why = displaced(d, st, f, held)
	}
	if why == nil {
		return nil
	}
	if err := d.Exchange(st.stage, name); err != nil {
		return errors.Join(why, err)
	}
	done() // who was held back goes on with the file that is in its place again
	if s.ours(d, st) {
		return why
	}
	// In the instant between, yet another program wrote to what was there, or replaced it. Its
	// bytes are the newer; the older stay in the stage, and the owner is asked.
	return errors.Join(why, d.Exchange(st.stage, name))
}

// ours reports whether a stage that was in place for an instant holds what we wrote, and nobody
// is writing to it.
func (s *Service) ours(d *workspace.Dir, st step) bool {
	f, err := d.Open(st.stage)
	if err != nil {
		return false
	}
	defer f.Close()
	_, done, err := s.hold(f, st.path)
	defer done()
	if err != nil {
		return false
	}
	hash, err := hashOf(f)
	return err == nil && hash == st.after
}

// remove takes the name of the file f away and looks at what it was.
func (s *Service) remove(d *workspace.Dir, st step, name string, f *workspace.File) error {
	held, done, err := s.take(d, st, name, f, func() error { return d.Withdraw(name, st.stage) })
	defer done()
	if err != nil {
		return err
	}
	if why := displaced(d, st, f, held); why != nil {
		return errors.Join(why, d.Restore(st.stage, name))
	}
	return nil
}
