package privdir

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// A judge knows for whom directories must be safe.
type judge struct {
	what    string // how sentences name the directory, such as "the state directory"
	uid     uint32
	gid     uint32 // the user's own group: what it may write, the user may write
	foreign uint32 // owner shown for users outside this user namespace, or none
	marks   []string
}

const none = ^uint32(0)

func newJudge(what string) judge {
	j := judge{what: what, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), foreign: none}
	// In a container the directories above the home may belong to the real root,
	// whom the namespace does not know and shows as the overflow user.
	if m, err := os.ReadFile("/proc/self/uid_map"); err == nil && !wholeMap(string(m)) {
		j.foreign = overflowUID()
	}
	return j
}

// wholeMap reports whether a uid_map is that of the machine itself.
func wholeMap(m string) bool {
	f := strings.Fields(m)
	return len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

func overflowUID() uint32 {
	data, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return none
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 32)
	if err != nil {
		return none
	}
	return uint32(n)
}

const (
	groupWrite = 0o020
	otherWrite = 0o002
	sticky     = 0o1000
	othersUse  = 0o077
	othersPass = 0o011
)

// writable says who but the user may change what st describes: "", "its group" or
// "everyone".
func (j judge) writable(st safefile.Info) string {
	switch {
	case st.Mode&otherWrite != 0:
		return "everyone"
	case st.Mode&groupWrite != 0 && st.GID != j.gid:
		return "its group"
	}
	return ""
}

// above judges the directories above the private one, from "/" down, and says from
// which on the user alone can pass.
func (j judge) above(chain []step) error {
	confined := false
	for _, s := range chain {
		st := s.info
		own := st.UID == j.uid
		switch {
		case confined && !own, !own && st.UID != 0 && st.UID != j.foreign:
			return j.refuse(s.path, "a directory above %s belongs to another user", j.what).
				WithHint("choose a place below your own home directory")
		case confined:
		case j.writable(st) != "" && st.Mode&sticky == 0:
			return j.refuse(s.path, "a directory above %s can be changed by %s (mode %04o)", j.what, j.writable(st), st.Mode).
				WithHint("choose another place; or, when nobody else needs that right, take it away with chmod go-w on the directory")
		}
		confined = confined || own && st.Mode&othersPass == 0
	}
	return nil
}

// private judges the private directory itself.
func (j judge) private(r *safefile.Root, s step) error {
	switch st := s.info; {
	case st.UID != j.uid:
		return j.refuse(s.path, "%s belongs to another user", j.what).
			WithHint("run the program as the user who owns it, or choose another place")
	case st.Mode&othersUse != 0 && j.holdsOthers(r):
		return j.refuse(s.path, "%s is open to other users (mode %04o), and holds what this program did not put there", j.what, st.Mode).
			WithHint("choose a directory of its own, and leave this one as it is")
	case st.Mode&othersUse != 0:
		return j.refuse(s.path, "%s is open to other users (mode %04o)", j.what, st.Mode).
			WithHint("close it with chmod 700 on the directory")
	}
	return nil
}

// holdsOthers reports whether a directory holds anything and none of the marks.
func (j judge) holdsOthers(r *safefile.Root) bool {
	if len(j.marks) == 0 {
		return false
	}
	entries, _, err := r.ReadDir(".")
	return err != nil || len(entries) > 0 && !slices.ContainsFunc(entries, func(e safefile.Entry) bool { return slices.Contains(j.marks, e.Name) })
}

// config judges a configuration directory or file: others may read it, nobody but
// the user and root may change it.
func (j judge) config(s step) error {
	switch st, path := s.info, s.path; {
	case st.UID != j.uid && st.UID != 0:
		return j.refuse(path, "%s belongs to another user", j.what).
			WithHint("make it your own with chown, or remove it")
	case j.writable(st) != "":
		return j.refuse(path, "%s can be changed by %s (mode %04o)", j.what, j.writable(st), st.Mode).
			WithHint("take that right away with chmod go-w")
	}
	return nil
}

func (j judge) refuse(path, format string, args ...any) *fault.Error {
	return fault.Wrap(Unsafe, &At{Path: path}, format, args...)
}
