package sandbox

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// A group bounds all processes of a command together (cgroup v2), where this user was given
// a part of the tree to use. Where not, each process is bounded by itself.
type group struct {
	dir string
	fd  *os.File
}

// Bounds of one command, all its processes together.
const (
	groupProcesses = 1024
	groupWeight    = 50 // of the processor, where 100 is usual: what the user does comes first
)

// groupRoots are where the second version of cgroups is mounted.
var groupRoots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// controllers a group needs to be worth having.
var controllers = []string{"memory", "pids"}

// groupParent finds a directory of the tree in which groups with bounds can be made.
func groupParent(own string, roots []string) (string, error) {
	for _, root := range roots {
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		// A group with processes of its own has no bounded groups in it: the one above is
		// tried first.
		for _, dir := range []string{filepath.Dir(filepath.Join(root, own)), filepath.Join(root, own)} {
			if walls.Within(root, dir) && givesControllers(dir) && unix.Access(dir, unix.W_OK) == nil {
				return dir, nil
			}
		}
		return "", errors.New("no part of the cgroup tree is delegated to this user")
	}
	return "", errors.New("the second version of cgroups is not mounted")
}

func givesControllers(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return false
	}
	given := strings.Fields(string(text))
	return !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(given, c) })
}

// ownGroup is the group this process is in.
func ownGroup() (string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("this process is in no group of the second version")
}

// newGroup makes a group for one command.
func newGroup(parent string) (*group, error) {
	dir := filepath.Join(parent, "dodo-"+strings.ToLower(rand.Text()[:16]))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	g := &group{dir: dir}
	for _, set := range []struct{ file, value string }{
		{"memory.max", strconv.FormatUint(groupMemory(), 10)},
		{"memory.swap.max", "0"},
		{"pids.max", strconv.Itoa(groupProcesses)},
		{"cpu.weight", strconv.Itoa(groupWeight)},
	} {
		err := os.WriteFile(filepath.Join(dir, set.file), []byte(set.value), 0)
		if errors.Is(err, os.ErrNotExist) && (set.file == "cpu.weight" || set.file == "memory.swap.max") {
			continue // a kernel without swap, or a part of the tree without the processor
		}
		if err != nil {
			g.remove()
			return nil, fmt.Errorf("%s: %w", set.file, err)
		}
	}
	var err error
	if g.fd, err = os.Open(dir); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// groupMemory is three quarters of the machine's.
func groupMemory() uint64 {
	var in unix.Sysinfo_t
	if unix.Sysinfo(&in) != nil {
		return 8 << 30
	}
	return uint64(in.Totalram) * uint64(in.Unit) / 4 * 3
}

// remove ends what may be left in the group and removes it.
func (g *group) remove() {
	if g == nil {
		return
	}
	if g.fd != nil {
		g.fd.Close()
	}
	_ = os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0)
	_ = unix.Rmdir(g.dir)
}
