package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"localmcp/dodo/internal/ground/walls"
)

// A command that reads a directory could connect to the servers of others that listen on socket
// files in it: that a mount cannot be written does not keep anybody from that. Those that listen
// now look like empty files.

// sockets are the socket files of this machine's servers in what is mounted for reading.
func sockets(mounts []walls.Mount) (paths []string) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		// Num RefCount Protocol Flags Type St Inode Path
		fields := bytes.SplitN(bytes.TrimRight(line, "\n"), []byte(" /"), 2)
		if len(fields) < 2 {
			continue // it has no file, or not by its whole path
		}
		path, err := filepath.EvalSymlinks("/" + string(fields[1]))
		if err != nil {
			continue
		}
		if st, err := os.Lstat(path); err != nil || st.Mode()&os.ModeSocket == 0 {
			continue
		}
		for _, m := range mounts {
			if m.Write || m.Device {
				continue
			}
			if from, err := filepath.EvalSymlinks(m.From); err == nil && walls.Within(from, path) {
				paths = append(paths, place(mounts, m)+path[len(from):])
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// place is where a mount is for a command: a link on the way there counts where a mount has it.
func place(mounts []walls.Mount, m walls.Mount) string {
	real, err := filepath.EvalSymlinks(m.To)
	if err == nil && slices.ContainsFunc(mounts, func(other walls.Mount) bool { return other.To != m.To && walls.Within(other.To, real) }) {
		return real
	}
	return m.To
}
