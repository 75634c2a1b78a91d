package sandbox

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// Control files are data that programs outside of the walls obey: git, editors, shells,
// clients of AI. What a command does to those that no mount holds is told.

// repositoryFiles are what names programs in a repository, by patterns below its directory.
var repositoryFiles = []string{"config", "config.worktree", "commondir", "gitdir", "hooks/*", "info/attributes"}

// workspaceFiles are what other programs obey, by patterns below the root.
var workspaceFiles = []string{
	".vscode/*", ".idea/*.xml", ".idea/runConfigurations/*", ".mcp.json", ".cursor/*.json", ".claude/settings*.json", ".husky/*",
	".pre-commit-config.yaml", "lefthook.yml",
}

const (
	mostControl = 4000    // files of one fingerprint
	mostHere    = 200     // of them in one repository
	mostRead    = 1 << 20 // bytes of one file
	mostTold    = 20      // paths in a note
)

// sums are files and what is in them.
type sums map[string][sha256.Size]byte

// A fingerprint is the control files of a workspace as they are.
type fingerprint struct {
	files sums
	git   map[string]repository // by path
}

// A repository is a git directory, or the file or link in the place of one.
type repository struct {
	id     walls.Identity
	files  sums // by names below it; "" is a file or a link itself
	closed bool // what is in it cannot be looked at
}

// fingerprintOf looks at the control files. Of repositories that were not there before, when
// that is given, nothing but the place counts.
func fingerprintOf(root string, k Kept, before *fingerprint) fingerprint {
	f := fingerprint{files: sums{}, git: map[string]repository{}}
	known := map[walls.Identity]bool{}
	if before != nil {
		for _, r := range before.git {
			known[r.id] = true
		}
	}
	room := mostControl
	for _, path := range slices.Concat(k.Git, k.beyond) {
		st, err := os.Lstat(path)
		if err != nil {
			continue
		}
		id, err := walls.IdentityOf(path, false)
		if err != nil {
			continue
		}
		r := repository{id: id, files: sums{}, closed: slices.Contains(k.Closed, path)}
		switch {
		case r.closed:
		case !st.IsDir():
			r.files.file("", path)
		case before == nil || known[id]:
			r.files.add(path, repositoryFiles, min(mostHere, room))
			room -= len(r.files)
		}
		f.git[path] = r
	}
	f.files.add(root, workspaceFiles, mostControl)
	f.files.scripts(filepath.Join(root, "package.json"), "package.json (scripts)")
	return f
}

// add notes what matches the patterns below a directory, up to most files.
func (s sums) add(dir string, patterns []string, most int) {
	for _, pattern := range patterns {
		// The directory's own name must not be taken for a pattern.
		names, err := filepath.Glob(escape(dir) + "/" + pattern)
		if err != nil {
			continue
		}
		for _, name := range names {
			// Samples of hooks are not run, and every new repository has many.
			if len(s) < most && !strings.HasSuffix(name, ".sample") {
				s.file(strings.TrimPrefix(name, strings.TrimSuffix(dir, "/")+"/"), name)
			}
		}
	}
}

var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func escape(path string) string { return escaper.Replace(path) }

// read opens a file without waiting for what may be in its place.
func read(path string) ([]byte, bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(file, mostRead))
	return text, err == nil
}

// file notes a file's content, or where a link leads. What stands in for a file that is not
// there means the same.
func (s sums) file(name, path string) {
	if to, err := os.Readlink(path); err == nil {
		s[name] = sha256.Sum256([]byte("link " + to))
		return
	}
	if st, err := os.Lstat(path); err == nil && st.IsDir() {
		return
	}
	text, ok := read(path)
	if !ok {
		text = []byte("unreadable")
	}
	if content, is := standIns[name]; is && content == string(text) {
		return
	}
	s[name] = sha256.Sum256(text)
}

// scripts notes what a package's manifest lets programs run; the rest of it changes often.
func (s sums) scripts(path, name string) {
	text, ok := read(path)
	if !ok {
		return
	}
	var manifest struct {
		Scripts json.RawMessage `json:"scripts"`
	}
	if json.Unmarshal(text, &manifest) == nil && len(manifest.Scripts) > 0 {
		s[name] = sha256.Sum256(bytes.TrimSpace(manifest.Scripts))
	}
}

// differs are the names of what is not the same in both.
func (s sums) differs(now sums) (names []string) {
	for name, sum := range now {
		if was, ok := s[name]; !ok || was != sum {
			names = append(names, name)
		}
	}
	for name := range s {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A change is a risk that is told.
type change struct {
	rank int // what is told first
	path string
	text string
}

// changed names what differs, by paths below the root that are plain text. closed are
// directories that cannot be looked into now.
func (f fingerprint) changed(root string, now fingerprint, closed []string) (notes []string) {
	name := func(path string) string { return strconv.QuoteToASCII(strings.TrimPrefix(path, root+"/")) }
	var list []change
	say := func(path, text string) {
		rank := 2 // of repositories there may be many
		if walls.Within(filepath.Join(root, ".git"), path) {
			rank = 0
		}
		list = append(list, change{rank, path, text})
	}
	const obeyed = "a file that other programs obey was changed while the command ran: "
	for _, file := range f.files.differs(now.files) {
		list = append(list, change{1, file, obeyed + name(file)})
	}
	at := map[walls.Identity]string{}
	for path, r := range now.git {
		at[r.id] = path
	}
	known := map[walls.Identity]bool{}
	for path, was := range f.git {
		known[was.id] = true
		is, there := now.git[path]
		moved, somewhere := at[was.id]
		_, file := was.files[""]
		const lost = "a repository can no longer be looked into, by the permissions it has since the command ran: "
		switch {
		case there && is.id == was.id && is.closed:
			if !was.closed {
				say(path, lost+name(path))
			}
			continue
		case there && (is.id == was.id || file):
			moved = path
		case somewhere:
			is = now.git[moved]
			say(path, "a repository was moved while the command ran: "+name(path)+" is "+name(moved)+" now")
		case slices.ContainsFunc(closed, func(dir string) bool { return walls.Within(dir, path) }):
			say(path, lost+name(path))
			continue
		default:
			if !there {
				say(path, "a repository was removed while the command ran: "+name(path))
			}
			continue
		}
		if was.closed {
			continue
		}
		for _, file := range was.files.differs(is.files) {
			say(filepath.Join(moved, file), obeyed+name(filepath.Join(moved, file)))
		}
	}
	for path, is := range now.git {
		before, was := f.git[path]
		_, file := before.files[""]
		switch {
		case known[is.id] || was && file && is.files[""] != [sha256.Size]byte{}:
		case was:
			say(path, "another repository is in its place since the command ran: "+name(path))
		default:
			say(path, "a repository was made while the command ran: "+name(path))
		}
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(a.rank-b.rank, strings.Count(a.path, "/")-strings.Count(b.path, "/"), strings.Compare(a.path, b.path), strings.Compare(a.text, b.text))
	})
	for i, c := range list {
		if i == mostTold {
			notes = append(notes, "and "+strconv.Itoa(len(list)-i)+" more changes of this kind")
			break
		}
		notes = append(notes, c.text)
	}
	return notes
}
