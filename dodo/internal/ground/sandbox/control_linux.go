package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// Control files are data that programs outside of the walls obey: git, editors, shells,
// clients of AI. A command may not change those of repositories that a mount can hold;
// what it does to the others is told.

// repositoryFiles are what names programs in a repository, by patterns below its directory.
var repositoryFiles = []string{
	"config", "config.worktree", "commondir", "hooks/*", "info/attributes",
	"worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
}

// workspaceFiles are what other programs obey, by patterns below the root.
var workspaceFiles = []string{
	".vscode/*", ".idea/*.xml", ".idea/runConfigurations/*", ".mcp.json", ".cursor/*.json", ".claude/settings*.json", ".husky/*",
	".pre-commit-config.yaml", "lefthook.yml",
}

const (
	mostGuards  = 512
	mostControl = 4000    // files of one fingerprint
	mostRead    = 1 << 20 // bytes of one file
	mostTold    = 20      // paths in a note
)

// guarded are what a command cannot change of a repository, by patterns below its directory.
var guarded = []string{
	"hooks", "config", "config.worktree", "commondir", "info/attributes", "worktrees/*/commondir", "worktrees/*/gitdir", "worktrees/*/config.worktree",
}

// repositories are git directories with those of their submodules.
func repositories(git []string) (all []string) {
	for _, dir := range git {
		all = append(all, dir)
		for _, pattern := range []string{"/modules/*/HEAD", "/modules/*/*/HEAD"} {
			heads, err := filepath.Glob(escape(dir) + pattern)
			if err != nil {
				continue
			}
			for _, head := range heads {
				all = append(all, filepath.Dir(head))
			}
		}
	}
	return all
}

// guards keep a command from turning repositories against whoever uses git there later:
// each git directory is a mount of its own, so that it cannot be moved away, and what names
// programs in it cannot be changed.
func guards(git []string) (list []walls.Mount) {
	for _, dir := range git {
		st, err := os.Lstat(dir)
		if err != nil || st.Mode()&os.ModeSymlink != 0 {
			continue // what is made there meanwhile is told
		}
		list = guard(list, dir, st.IsDir())
		if !st.IsDir() {
			continue
		}
		for _, pattern := range guarded {
			paths, err := filepath.Glob(escape(dir) + "/" + pattern)
			if err != nil {
				continue
			}
			for _, path := range paths {
				if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink == 0 {
					list = guard(list, path, false)
				}
			}
		}
		if len(list) > mostGuards {
			break // the rest is told
		}
	}
	return list
}

// fixed keeps directories where they are: their names are a part of what makes paths below
// them secret, or hidden.
func fixed(dirs []string) (list []walls.Mount) {
	dirs = slices.Clone(dirs)
	slices.SortFunc(dirs, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	for _, dir := range slices.Compact(dirs) {
		list = guard(list, dir, true)
	}
	return list
}

// guard adds one, when there is no link on the way to it.
func guard(list []walls.Mount, path string, write bool) []walls.Mount {
	fd, err := walls.Unlinked(path)
	if err != nil {
		return list
	}
	defer unix.Close(fd)
	id, err := walls.IdentityAt(fd)
	if err != nil {
		return list
	}
	return append(list, walls.Mount{From: path, To: path, Write: write, ID: id})
}

// A fingerprint is the control files of a workspace and what is in them.
type fingerprint map[string][sha256.Size]byte

// fingerprintOf looks at the control files as they are.
func fingerprintOf(root string, git []string) fingerprint {
	f := fingerprint{}
	for _, dir := range repositories(git) {
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
		case st.IsDir():
			f.add(dir, repositoryFiles)
		default:
			f.file(dir)
		}
	}
	f.add(root, workspaceFiles)
	f.scripts(filepath.Join(root, "package.json"))
	return f
}

func (f fingerprint) add(dir string, patterns []string) {
	for _, pattern := range patterns {
		// The directory's own name must not be taken for a pattern.
		names, err := filepath.Glob(escape(dir) + "/" + pattern)
		if err != nil {
			continue
		}
		for _, name := range names {
			// Samples of hooks are not run, and every new repository has many.
			if len(f) < mostControl && !strings.HasSuffix(name, ".sample") {
				f.file(name)
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

// file notes a file's content, or where a link leads.
func (f fingerprint) file(path string) {
	if to, err := os.Readlink(path); err == nil {
		f[path] = sha256.Sum256([]byte("link " + to))
		return
	}
	if st, err := os.Lstat(path); err == nil && st.IsDir() {
		return
	}
	text, ok := read(path)
	if !ok {
		text = []byte("unreadable")
	}
	f[path] = sha256.Sum256(text)
}

// scripts notes what a package's manifest lets programs run; the rest of it changes often.
func (f fingerprint) scripts(path string) {
	text, ok := read(path)
	if !ok {
		return
	}
	var manifest struct {
		Scripts json.RawMessage `json:"scripts"`
	}
	if json.Unmarshal(text, &manifest) == nil && len(manifest.Scripts) > 0 {
		f[path+" (scripts)"] = sha256.Sum256(manifest.Scripts)
	}
}

// changed names what differs, by paths below the root that are plain text.
func (f fingerprint) changed(root string, now fingerprint) (notes []string) {
	var paths []string
	all := maps.Clone(f)
	maps.Copy(all, now)
	for path := range all {
		before, was := f[path]
		after, is := now[path]
		if was != is || before != after {
			paths = append(paths, strings.TrimPrefix(path, root+"/"))
		}
	}
	// Of repositories there may be many: what they have comes last.
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, ".git/"), strings.Count(b, ".git/")), cmp.Compare(a, b))
	})
	for i, path := range paths {
		if i == mostTold {
			notes = append(notes, "and "+strconv.Itoa(len(paths)-i)+" more files of this kind")
			break
		}
		notes = append(notes, "a file that other programs obey was changed while the command ran: "+strconv.QuoteToASCII(path))
	}
	return notes
}
