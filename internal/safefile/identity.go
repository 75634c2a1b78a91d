package safefile

// Identity tells one state of one file from another. Two equal identities of a
// regular file mean the same content unless it was rewritten within one granule of
// the file system's clock.
type Identity struct {
	Dev, Ino uint64
	Size     int64 // bytes
	MtimeNS  int64 // last change of content, nanoseconds since 1970 UTC
	CtimeNS  int64 // last change of content or metadata, nanoseconds since 1970 UTC
}

// SameFile reports whether both are states of one file.
func (i Identity) SameFile(o Identity) bool { return i.Dev == o.Dev && i.Ino == o.Ino }

// Type is the kind of a directory entry.
type Type uint8

// The types. Other is everything that is neither file, directory nor link: FIFO,
// socket, device.
const (
	Other Type = iota
	Regular
	Directory
	Link
)

// Info is what a stat tells.
type Info struct {
	Identity
	Type Type
	Mode uint32 // permission bits, with setuid, setgid and sticky: 07777
	UID  uint32
	GID  uint32
	Hard uint64 // number of hard links
}

// Entry is a name in a directory.
type Entry struct {
	Name string // one path component; any bytes but "/" and NUL
	Type Type
}
