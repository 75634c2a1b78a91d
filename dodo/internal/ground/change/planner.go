package change

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// newPlan is an empty plan of this workspace.
func (s *Service) newPlan(who contract.Principal, source string) *Plan {
	now := s.Now().UTC().Truncate(time.Millisecond)
	return &Plan{
		ID: contract.NewID(contract.PrefixPlan, 0), Workspace: s.WorkspaceID, Epoch: s.Epoch, Principal: who.GrantID, Source: source,
		Created: now, Expires: now.Add(time.Duration(s.Limits.PlanExpiryMs) * time.Millisecond),
	}
}

// A drafter makes the files of one plan: each path once, within the owner's limits.
type drafter struct {
	s     *Service
	plan  *Plan
	paths map[string]bool
	above map[string]bool // directories that a path of the plan is in
	total int64           // bytes of new contents
}

func (s *Service) draft(who contract.Principal, source string) *drafter {
	return &drafter{s: s, plan: s.newPlan(who, source), paths: map[string]bool{}, above: map[string]bool{}}
}

// add takes a file into the plan.
func (d *drafter) add(f File) error {
	if len(d.plan.Files) >= d.s.Limits.PreviewFilesMax {
		return fault.New(contract.ResourceLimit, "a change has at most %d files", d.s.Limits.PreviewFilesMax).
			WithHint("make it in several changes").With("limit", d.s.Limits.PreviewFilesMax)
	}
	for _, path := range []string{f.Path, f.Dest} {
		if path == "" {
			continue
		}
		if d.paths[path] {
			return fault.New(contract.Conflict, "a change names each path once").
				WithHint("put everything that happens to one file into one operation").With("path", path)
		}
		d.paths[path] = true
		if err := d.apart(path); err != nil {
			return err
		}
	}
	if f.BytesAfter > int64(d.s.Limits.ReadFileBytes) {
		return fault.New(contract.FileTooLarge, "the file would have %d bytes; at most %d are written", f.BytesAfter, d.s.Limits.ReadFileBytes).
			WithHint("write it in parts, or ask the owner about the limit readFileBytes").With("path", f.Path).With("limit", d.s.Limits.ReadFileBytes)
	}
	d.total += f.BytesAfter
	if d.total > int64(d.s.Limits.PreviewAggregateBytes) {
		return fault.New(contract.ResourceLimit, "the new contents have more than %d bytes together", d.s.Limits.PreviewAggregateBytes).
			WithHint("make the change in several parts, or ask the owner about the limit previewAggregateBytes").With("limit", d.s.Limits.PreviewAggregateBytes)
	}
	d.plan.Files = append(d.plan.Files, f)
	return nil
}

// apart holds that no path of a plan is in another: they are all files.
func (d *drafter) apart(path string) error {
	clash := d.above[path]
	for dir, at := path, 0; ; {
		if at = strings.LastIndexByte(dir, '/'); at < 0 {
			break
		}
		dir = dir[:at]
		clash = clash || d.paths[dir]
		d.above[dir] = true
	}
	if clash {
		return fault.New(contract.Conflict, "the change has a file by a name that is a directory to another file of it").
			WithHint("choose another name for one of the two").With("path", path)
	}
	return nil
}

// editing bounds what an edit makes of one file.
func (d *drafter) editing() edit.Options {
	return edit.Options{MaxBytes: int64(d.s.Limits.ReadFileBytes)}
}

// path reads a path of a caller.
func (d *drafter) path(s string) (workspace.Path, error) {
	p, err := workspace.ParsePath(s)
	if err == nil && !utf8.ValidString(s) {
		err = fault.New(contract.PathDenied, "the path is not valid UTF-8").WithHint("give it as list_files shows it; a name that is no UTF-8 is left to the owner")
	}
	return p, err
}

// current reads the file a change rests on. hash is what the caller expects; empty for
// whatever is there.
func (d *drafter) current(path, expected string) (workspace.Path, []byte, string, error) {
	p, err := d.path(path)
	if err != nil {
		return p, nil, "", err
	}
	data, _, err := d.s.Tree.Read(p, int64(d.s.Limits.ReadFileBytes))
	if err != nil {
		return p, nil, "", err
	}
	hash := contract.Hash(data)
	if expected != "" && expected != hash {
		return p, nil, "", d.s.mismatch(p, expected, hash, data)
	}
	return p, data, hash, nil
}

// smallFile is the size up to which a FILE_CHANGED shows what is there instead.
const smallFile = 4 << 10

// mismatch is the fault of a hash that is not that of the file. Where the expected content
// is in the backups it says what changed, else, of a small text, what is there now.
func (s *Service) mismatch(p workspace.Path, expected, actual string, data []byte) error {
	if !contract.IsHash(expected) {
		return fault.New(contract.InvalidInput, "expectedHash is not a hash").
			WithHint("give the hash that read_files showed: sha256: and 64 hex digits")
	}
	f := fault.New(contract.FileChanged, "the file is not the one with the expected hash").
		WithHint("read it again and make the change for what is there now").
		With("path", p.String()).With("expectedHash", expected).With("actualHash", actual)
	if old, err := s.backups.load(context.Background(), expected); err == nil {
		if diff, cut := edit.Diff(p.String(), old, data, smallFile); diff != "" {
			return f.With("diff", diff).With("diffTruncated", cut)
		}
	}
	if len(data) <= smallFile && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		f = f.With("content", string(data))
	}
	return f
}

// absent holds that nothing is at a path and that something new may be.
func (d *drafter) absent(p workspace.Path, parents bool) error {
	if err := d.s.Tree.Creatable(p); err != nil {
		return err
	}
	_, err := d.s.Tree.Stat(p)
	switch {
	case err == nil:
		return fault.New(contract.Conflict, "something is there by that name already").
			WithHint("read it first, or choose another name").With("path", p.String())
	case !notThere(err):
		return err
	}
	if parents {
		return nil
	}
	_, err = d.s.Tree.Stat(p.Parent())
	if notThere(err) {
		return fault.New(contract.NotFound, "the directory it would be in is not there").
			WithHint("make it with make_directory first, or let it be made (createParents)").With("path", p.Parent().String())
	}
	return err
}

// create plans a new file.
func (d *drafter) create(path string, content []byte, parents bool) error {
	p, err := d.path(path)
	if err != nil {
		return err
	}
	if err := d.absent(p, parents); err != nil {
		return err
	}
	return d.add(File{Action: Create, Path: p.String(), AfterHash: contract.Hash(content), BytesAfter: int64(len(content)), Parents: parents, after: content})
}

// write plans a file with this content, whatever is there. What is there keeps its byte order
// mark and, if it is UTF-16, its encoding.
func (d *drafter) write(path, content, expected string, parents bool) error {
	p, before, hash, err := d.current(path, expected)
	if notThere(err) && errors.Is(err, contract.NotFound) {
		if expected != "" {
			return fault.New(contract.FileChanged, "the file with the expected hash is not there any more").
				WithHint("leave expectedHash out to make a new one").With("path", p.String()).With("expectedHash", expected)
		}
		return d.create(path, []byte(content), parents)
	}
	if err != nil {
		return err
	}
	return d.over(p, before, hash, content)
}

// rewrite plans a new content of a file that is there.
func (d *drafter) rewrite(path, content, expected string) error {
	p, before, hash, err := d.current(path, expected)
	if err != nil {
		return err
	}
	return d.over(p, before, hash, content)
}

func (d *drafter) over(p workspace.Path, before []byte, hash, content string) error {
	after, err := encodeLike(before, content)
	if err != nil {
		return at(err, p)
	}
	return d.add(modified(p, before, hash, after))
}

func modified(p workspace.Path, before []byte, hash string, after []byte) File {
	return File{
		Action: Modify, Path: p.String(), BeforeHash: hash, AfterHash: contract.Hash(after),
		BytesBefore: int64(len(before)), BytesAfter: int64(len(after)), before: forDiff(before), after: after,
	}
}

var utf8Mark = []byte("\ufeff")

// encodeLike writes a text in the encoding of a file that is there, with its byte order mark.
// A file that is not text is not overwritten by one.
func encodeLike(file []byte, text string) ([]byte, error) {
	var order binary.AppendByteOrder
	switch {
	case bytes.HasPrefix(file, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(file, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case !utf8.Valid(file) || bytes.IndexByte(file, 0) >= 0:
		return nil, fault.New(contract.UnsupportedEncoding, "the file that is there is binary, or text that is neither UTF-8 nor UTF-16").
			WithHint("delete it with delete_path first if it is really to be replaced by UTF-8 text")
	case bytes.HasPrefix(file, utf8Mark) && !bytes.HasPrefix([]byte(text), utf8Mark):
		return slices.Concat(utf8Mark, []byte(text)), nil
	default:
		return []byte(text), nil
	}
	out := append([]byte(nil), file[:2]...)
	for _, unit := range utf16.Encode([]rune(string(bytes.TrimPrefix([]byte(text), utf8Mark)))) {
		out = order.AppendUint16(out, unit)
	}
	return out, nil
}

// edits plans exact edits of one file and says how many places they replaced.
func (d *drafter) edits(path string, list []edit.Edit, expected string) (int, error) {
	p, before, hash, err := d.current(path, expected)
	if err != nil {
		return 0, err
	}
	r, err := edit.Apply(before, list, d.editing())
	if err != nil {
		return 0, at(err, p)
	}
	f := modified(p, before, hash, r.After)
	f.notes = r.Notes
	return r.Total(), d.add(f)
}

// at adds the path to a refusal of package edit, which knows bytes only.
func at(err error, p workspace.Path) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.With("path", p.String())
	}
	return err
}

// remove plans that a file goes.
func (d *drafter) remove(path, expected string) error {
	p, before, hash, err := d.current(path, expected)
	if err != nil {
		return err
	}
	return d.add(File{Action: Delete, Path: p.String(), BeforeHash: hash, BytesBefore: int64(len(before)), before: forDiff(before)})
}

// move plans another name for a file.
func (d *drafter) move(path, dest, expected string) error {
	from, err := d.path(path)
	if err != nil {
		return err
	}
	to, err := d.path(dest)
	if err != nil {
		return err
	}
	f, err := d.s.Tree.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	hash, err := hashOf(f)
	if err != nil {
		return err
	}
	if expected != "" && expected != hash {
		return d.s.mismatch(from, expected, hash, nil)
	}
	if err := d.absent(to, false); err != nil {
		return err
	}
	// A move writes nothing: its size is no part of what is bounded.
	return d.add(File{Action: Move, Path: from.String(), Dest: to.String(), BeforeHash: hash, AfterHash: hash})
}

// directory plans a new directory. there says that it is one already.
func (d *drafter) directory(path string) (there bool, err error) {
	p, err := d.path(path)
	if err != nil {
		return false, err
	}
	in, err := d.s.Tree.Stat(p)
	switch {
	case err == nil && in.Type == safefile.Directory:
		return true, nil
	case err == nil:
		return false, fault.New(contract.Conflict, "a file has this name").
			WithHint("choose another name").With("path", p.String())
	case !notThere(err):
		return false, err
	}
	if err := d.s.Tree.Creatable(p); err != nil {
		return false, err
	}
	return false, d.add(File{Action: MakeDir, Path: p.String(), Parents: true})
}
