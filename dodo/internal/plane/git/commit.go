package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// The names that a commit gives files in the git directory. What is left of a commit whose
// process died has the first and is removed by the next one; what somebody must look at has
// the second and stays.
const (
	candidatePrefix = "dodo-candidate-"
	recoveryPrefix  = "dodo-recovery-"
)

// mostIndex bounds an index (spec dodo-behaviour 6).
const mostIndex = 128 << 20

// afterTime is how long moving the branch may take, and finding out how that ended.
const afterTime = 20 * time.Second

// make makes the commit that was prepared, or fails if that would be another one by now.
func (s *Service) make(ctx context.Context, in commitIn, prepared *making) (a contract.Answer[commitOut], err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commitTime, errSlow)
	defer cancel()
	d, err := openGit(prepared.repo.dir)
	if err != nil {
		return a, gitFault(err)
	}
	defer d.close()
	unlock, err := d.lock()
	if err != nil {
		return a, err
	}
	defer unlock()
	d.sweep()
	m, err := s.prepare(ctx, in)
	if err != nil {
		return a, err
	}
	if same, err := m.same(prepared); err != nil || !same {
		return a, errors.Join(err, moved())
	}
	c := candidate{making: m, dir: d, name: candidatePrefix + token()}
	defer c.remove()
	if err := c.copy(); err != nil {
		return a, writeFault(err)
	}
	id, list, err := c.build(ctx)
	if err != nil {
		return a, err
	}
	if err := c.publish(ctx, id); err != nil {
		return a, err
	}
	for _, name := range []string{"SQUASH_MSG", "MERGE_MSG"} { // as git does: the next commit would begin with them
		_ = d.dir.Remove(name)
	}
	a.Data = commitOut{Commit: id, Subject: clip(subject(m.message)), FilesChanged: len(list), StagedPaths: []string{}}
	room := s.Limits.Room() - 2048
	for _, f := range list {
		p, _ := m.locate(f.path)
		if room -= len(p.Shown())*2 + 8; len(a.Data.StagedPaths) == mostStaged || room < 0 {
			a.Truncated = true
			break
		}
		a.Data.StagedPaths = append(a.Data.StagedPaths, p.Shown())
	}
	if m.runs(postCommit) {
		if err := m.hook(ctx, filepath.Join(m.repo.dir, "index"), postCommit); err != nil {
			m.warnings = append(m.warnings, "the repository's post-commit hook failed; the commit is made")
		}
	}
	a.Warnings, a.Ref = m.warnings, id
	return a, nil
}

// same reports whether two preparations come to one commit.
func (m *making) same(other *making) (bool, error) {
	a, err1 := m.plan.digest()
	b, err2 := other.plan.digest()
	return a == b && m.repo.dir == other.repo.dir && m.id == other.id && strings.Join(m.running, " ") == strings.Join(other.running, " "), errors.Join(err1, err2)
}

// runs reports whether a hook runs.
func (m *making) runs(hook string) bool {
	return strings.Contains(" "+strings.Join(m.running, " ")+" ", " "+hook+" ")
}

// candidate is a copy of the index in which a commit is put together. The index itself stays
// as it is until the commit is there.
type candidate struct {
	*making
	dir  *gitDir
	name string // of the copy; after it was swapped, of what was the index

	was     []byte // the index, as it was copied
	none    bool   // there was no index
	changed bool   // the copy is to become the index
}

// path is how git gets it.
func (c *candidate) path() string { return filepath.Join(c.repo.dir, c.name) }

// copy copies the index, and its time.
func (c *candidate) copy() error {
	data, in, more, err := c.dir.dir.Load("index", nil, mostIndex)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.none = true
		return nil
	case err != nil:
		return err
	case more:
		return fault.New(contract.ResourceLimit, "the index has more than %d MiB", mostIndex>>20).WithHint("commit with git itself, in run_command")
	}
	c.was = data
	if err := c.dir.dir.Create(c.name, data, fs.FileMode(in.Mode&0o777)); err != nil {
		return err
	}
	f, _, err := c.dir.dir.Open(c.name)
	if err != nil {
		return err
	}
	defer f.Close()
	return stamp(f, in.MtimeNS)
}

// build stages, runs the hooks and makes the commit, to which nothing leads yet.
func (c *candidate) build(ctx context.Context) (id string, list []difference, err error) {
	if err := c.stage(ctx); err != nil {
		return "", nil, err
	}
	if list, err = c.staged(ctx, c.path()); err != nil {
		return "", nil, err
	}
	if err := c.holds(ctx, list); err != nil {
		return "", nil, err
	}
	if err := c.at("staged"); err != nil {
		return "", nil, err
	}
	if list, err = c.hooked(ctx, list); err != nil {
		return "", nil, err
	}
	if len(list) == 0 {
		return "", nil, c.empty()
	}
	env := []string{"GIT_INDEX_FILE=" + c.path()}
	out, err := c.runner.run(ctx, call{args: []string{"write-tree"}, write: true, env: env})
	if err != nil {
		return "", nil, err
	}
	args := []string{"commit-tree", "--no-gpg-sign", "-F", "-"}
	if c.plan.head != "" {
		args = append(args, "-p", c.plan.head)
	}
	args = append(args, strings.TrimSpace(string(out.bytes)))
	out, err = c.runner.run(ctx, call{args: args, in: []byte(c.message + "\n"), write: true, env: append(env, c.id.environ(c.Now())...)})
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(out.bytes)), list, nil
}

// stage takes the planned files of the work tree into the copy: each by its own name, so that
// nothing else comes with them.
func (c *candidate) stage(ctx context.Context) error {
	names := c.plan.adds()
	if len(names) == 0 {
		return nil
	}
	c.changed = true
	out, err := c.runner.run(ctx, call{
		args: []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, in: lines(names, "\x00"),
		env: []string{"GIT_INDEX_FILE=" + c.path()}, write: true, fails: []int{1, 128},
	})
	if err == nil && out.code != 0 {
		return fault.New(contract.Conflict, "git could not stage the files").WithHint("detail.stderr is what it says").With("stderr", out.errors)
	}
	return err
}

// holds refuses what is staged if it is not what was planned, in its content, too.
func (c *candidate) holds(ctx context.Context, list []difference) error {
	if err := c.allowed(list); err != nil {
		return err
	}
	want := map[string]planned{}
	for _, f := range c.plan.files {
		want[f.name] = f
	}
	var names, filtered, kept []string
	for _, d := range list {
		f, is := want[d.path]
		switch {
		case !is:
			return moved()
		case f.ID == "" || f.ID == d.id || gone(f.ID) && gone(d.id):
		case f.add && strings.HasPrefix(d.mode, "10"):
			names, filtered, kept = append(names, d.path), append(filtered, f.ID), append(kept, d.id)
		default:
			return moved()
		}
	}
	// Of a file that has CRLF in the index git keeps it, which it does not when it only names
	// the content. Both must be of the file that is there.
	asFiltered, err := c.hash(ctx, names)
	if err != nil {
		return err
	}
	asIs, err := c.hash(ctx, names, "--no-filters")
	if err != nil {
		return err
	}
	if !slices.Equal(asFiltered, filtered) || !slices.Equal(asIs, kept) {
		return moved()
	}
	return nil
}

// hooked runs the hooks before a commit. They may change the index and the message; what they
// staged is held against the rules again.
func (c *candidate) hooked(ctx context.Context, list []difference) ([]difference, error) {
	if c.runs(preCommit) {
		if err := c.hook(ctx, c.path(), preCommit); err != nil {
			return nil, err
		}
		c.changed = true
		var err error
		if list, err = c.staged(ctx, c.path()); err != nil {
			return nil, err
		}
		if err := c.allowed(list); err != nil {
			return nil, err
		}
	}
	if !c.runs(prepareMessage) && !c.runs(checkMessage) {
		return list, nil
	}
	const file = "COMMIT_EDITMSG"
	root, err := safefile.OpenRoot(c.repo.dir, safefile.RefuseLinks)
	if err != nil {
		return nil, gitFault(err)
	}
	defer root.Close()
	if err := root.WriteFileAtomic(file, []byte(c.message+"\n"), 0o644); err != nil {
		return nil, writeFault(err)
	}
	path := filepath.Join(c.repo.dir, file)
	for _, h := range []struct {
		name string
		args []string
	}{{prepareMessage, []string{path, "message"}}, {checkMessage, []string{path}}} {
		if c.runs(h.name) {
			if err := c.hook(ctx, c.path(), h.name, h.args...); err != nil {
				return nil, err
			}
		}
	}
	data, err := c.dir.load(file, maxConfig)
	if err != nil {
		return nil, gitFault(err)
	}
	if c.message = tidy(string(data)); c.message == "" || bytes.IndexByte(data, 0) >= 0 {
		return nil, fault.New(contract.Conflict, "the repository's hooks left no message").WithHint("the owner can look at the hooks")
	}
	return list, nil
}

// publish makes the copy the index and the branch lead to the commit. The index comes first:
// whoever is stopped between the two leaves what was staged and not committed, and nothing
// that looks like a change nobody made.
func (c *candidate) publish(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// From here on nobody stops it: a git that is stopped while it moves a branch can leave that
	// locked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTime)
	defer cancel()
	if c.changed {
		if err := c.swap(); err != nil {
			return err
		}
	}
	if err := c.at("swapped"); err != nil {
		return c.undo(id, err)
	}
	args := []string{"update-ref", "--create-reflog", "-m", c.reflog(), "HEAD", id, c.plan.head}
	out, err := c.runner.run(ctx, call{args: args, write: true, fails: []int{1, 128}, env: c.id.environ(c.Now())})
	if err == nil && out.code == 0 {
		err = c.at("led")
	} else if err == nil {
		err = fault.New(contract.Conflict, "the branch could not be moved; another git may have moved it").
			WithHint("look at git_log and make the call again").With("stderr", out.errors).Retry()
	}
	if err == nil {
		return nil
	}
	// It failed, or took too long and nobody knows. HEAD says which.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), afterTime)
	defer cancel()
	head, lost := c.head(ctx)
	if lost == nil {
		lost = c.at("asked")
	}
	switch {
	case lost != nil:
		return c.uncertain(id, errors.Join(err, lost))
	case head == id:
		return nil
	}
	return c.undo(id, err)
}

// reflog is the line that the commit has in the history of HEAD.
func (c *candidate) reflog() string {
	if c.plan.head == "" {
		return "commit (initial): " + subject(c.message)
	}
	return "commit: " + subject(c.message)
}

// swap puts the copy in the index's place, if that is still what was copied.
func (c *candidate) swap() error {
	d := c.dir.dir
	if c.none {
		if err := d.Move(c.name, d, "index"); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return moved()
			}
			return writeFault(err)
		}
		return nil
	}
	if err := d.Exchange(c.name, d, "index"); err != nil {
		return writeFault(err)
	}
	now, _, _, err := d.Load(c.name, nil, mostIndex)
	if err == nil && bytes.Equal(now, c.was) {
		return nil
	}
	if back := d.Exchange(c.name, d, "index"); back != nil {
		return c.uncertain("", errors.Join(err, back))
	}
	return moved()
}

// undo gives the index back what it was before the commit that failed with err.
func (c *candidate) undo(id string, err error) error {
	if !c.changed {
		return err
	}
	d := c.dir.dir
	var back error
	if c.none {
		back = d.Move("index", d, c.name)
	} else {
		back = d.Exchange(c.name, d, "index")
	}
	if back != nil {
		return c.uncertain(id, errors.Join(err, back))
	}
	return err
}

// uncertain keeps what is there for somebody to look at.
func (c *candidate) uncertain(id string, cause error) error {
	f := fault.Wrap(contract.RecoveryRequired, cause, "nobody knows whether the commit was made").
		WithHint("look at git_log and git_status; nothing was lost: the index as it was before is kept in the git directory").With("commit", id)
	keep := recoveryPrefix + strings.TrimPrefix(c.name, candidatePrefix)
	if err := c.dir.dir.Move(c.name, c.dir.dir, keep); err == nil {
		f = f.With("kept", keep)
	}
	return f
}

// remove removes the copy, or after a swap what was the index.
func (c *candidate) remove() {
	_ = c.dir.dir.Remove(c.name)
	_ = c.dir.dir.Remove(c.name + ".lock") // of a git that was stopped
}

// sweep removes what commits left whose processes died. Who calls it has the lock.
func (d *gitDir) sweep() {
	list, err := d.dir.Entries()
	if err != nil {
		return
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name, candidatePrefix) && e.Type == safefile.Regular {
			_ = d.dir.Remove(e.Name)
		}
	}
}

// token makes a name that nothing has.
func token() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}
