package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// systemDirs are shown for reading where they are; a link is made again as a link.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap"}

// systemFiles of /etc are what programs need to find libraries, names, certificates and
// time zones. Everything else there stays out of sight.
var systemFiles = []string{
	"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf", "group", "host.conf", "hosts",
	"inputrc", "java", "java-*-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "lsb-release",
	"magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/nssdb", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/*.cnf", "protocols", "python3*", "resolv.conf", "rpc", "services", "shells",
	"ssl/cert.pem", "ssl/certs", "ssl/*.cnf", // and no private key
	"terminfo", "timezone", "xdg",
}

// devices are the device files of a command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// links of the device directory, and one for programs that keep larger files apart.
var links = []walls.Link{
	{Name: "/dev/ptmx", To: "pts/ptmx"}, {Name: "/dev/fd", To: "/proc/self/fd"}, {Name: "/dev/stdin", To: "/proc/self/fd/0"}, {Name: "/dev/stdout", To: "/proc/self/fd/1"},
	{Name: "/dev/stderr", To: "/proc/self/fd/2"}, {Name: "/var/tmp", To: "/tmp"},
}

// system is what every command sees of the machine.
func system() (mounts []walls.Mount, made []walls.Link) {
	made = slices.Clone(links)
	for _, dir := range systemDirs {
		if to, err := os.Readlink(dir); err == nil {
			made = append(made, walls.Link{Name: dir, To: to})
			continue
		}
		mounts = append(mounts, walls.Mount{From: dir, To: dir, Optional: true})
	}
	for _, path := range configuration() {
		// A link is followed here: what it names may be where a command sees nothing.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			mounts = append(mounts, walls.Mount{From: real, To: path, Optional: true})
		}
	}
	for _, dev := range devices {
		mounts = append(mounts, walls.Mount{From: dev, To: dev, Write: true, Device: true, Optional: dev == "/dev/tty"})
	}
	return mounts, made
}

// configuration are the paths of systemFiles that are there.
func configuration() (paths []string) {
	for _, name := range systemFiles {
		if !strings.Contains(name, "*") {
			paths = append(paths, "/etc/"+name)
			continue
		}
		if found, err := filepath.Glob("/etc/" + name); err == nil {
			paths = append(paths, found...)
		}
	}
	return paths
}

// toolchain is what belongs to a directory of programs: the directory itself, and where it
// is the bin of a tree of a program's own, the tree.
func toolchain(bin, home string) string {
	prefix := filepath.Dir(bin)
	if filepath.Base(bin) != "bin" || prefix == "/" || home != "" && walls.Within(prefix, home) || filepath.Base(prefix) == ".local" || filepath.Base(prefix) == ".cargo" {
		return bin
	}
	for _, part := range []string{"lib", "libexec", "include", "pkg"} {
		if st, err := os.Stat(filepath.Join(prefix, part)); err == nil && st.IsDir() {
			return prefix
		}
	}
	return bin
}

// tools are the directories of programs that the system's own do not cover.
func tools(path []string, home string) (dirs []string) {
	for _, dir := range path {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		for _, d := range []string{dir, toolchain(real, home)} {
			if home != "" && walls.Within(d, home) {
				continue // the whole home
			}
			if !slices.ContainsFunc(systemDirs, func(s string) bool { return walls.Within(s, d) }) && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

// limits are the bounds of each process of a command. Memory is bounded by its data: bounds
// on addresses break programs that reserve them.
func limits(alone bool) []walls.Limit {
	list := []walls.Limit{
		{What: unix.RLIMIT_CORE, Most: 1}, // none, as confine.Jail has it
		{What: unix.RLIMIT_NOFILE, Most: 4096},
		{What: unix.RLIMIT_FSIZE, Most: 2 << 30},
		{What: unix.RLIMIT_DATA, Most: 4 << 30},
	}
	if !alone { // elsewhere the user's other processes count too
		list = append(list, walls.Limit{What: unix.RLIMIT_NPROC, Most: 512})
	}
	return list
}

// homeOf is where a command has its home: a path that the workspace is not at.
func homeOf(root, owner string) string {
	home := "/home/dodo"
	// An owner of that name has programs there.
	if walls.Within(home, root) || walls.Within(root, home) || owner != "" && walls.Within(home, owner) {
		home = "/var/dodo"
	}
	return home
}

// sortMounts puts what is below after what is above.
func sortMounts(list []walls.Mount) {
	slices.SortStableFunc(list, func(a, b walls.Mount) int {
		return strings.Count(strings.TrimSuffix(a.To, "/"), "/") - strings.Count(strings.TrimSuffix(b.To, "/"), "/")
	})
}
