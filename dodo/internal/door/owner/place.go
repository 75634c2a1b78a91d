package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// Names in the directory of sockets.
const (
	ipcName       = "ipc"
	socketSuffix  = ".sock"
	authSuffix    = ".auth"
	tempPrefix    = ".new-"
	instancePrefx = "p-" // of one process
	aliasPrefix   = "w-" // of a workspace: the newest process that serves it
	keyChars      = 16   // of a name, behind the prefix
)

// maxPath is the longest path of a socket: the kernel takes 107 bytes on Linux, fewer
// elsewhere.
const maxPath = 100

// socketDir is where the sockets of an installation are: in it, or, where their paths would be
// too long, in a private directory below /tmp whose name follows from the installation's.
func socketDir(installation string) string {
	dir := filepath.Join(installation, ipcName)
	longest := filepath.Join(dir, tempPrefix+strings.Repeat("x", keyChars)+socketSuffix)
	if len(longest) <= maxPath {
		return dir
	}
	sum := sha256.Sum256([]byte(installation))
	return fmt.Sprintf("/tmp/dodo-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:8]))
}

const dirWhat = "the directory of dodo's sockets"

// aliasName is the name of a workspace's socket.
func aliasName(workspace string) string {
	id := strings.TrimPrefix(workspace, "ws_")
	return aliasPrefix + id[:min(keyChars, len(id))] + socketSuffix
}

// A descriptor lies beside a socket and holds what both ends must know. Only the owner can
// read it.
type descriptor struct {
	Version  int     `json:"version"`
	Nonce    string  `json:"nonce"`    // 128 bits, of this listener
	Token    string  `json:"token"`    // 256 bits
	Endpoint string  `json:"endpoint"` // path of the socket it belongs to
	Process  process `json:"process"`  // that listens
}

// maxDescriptor is the size of the file at most, in bytes.
const maxDescriptor = 2 << 10

const (
	tokenBytes           = 32
	descriptorNonceBytes = 16
)

func (d descriptor) token() []byte {
	b, _ := hex.DecodeString(d.Token) // its form was held when it was read
	return b
}

// readDescriptor reads the descriptor of the socket of a name, and refuses one that others
// could read or change, or that belongs to another socket.
func readDescriptor(dir *safefile.Root, name string) (d descriptor, err error) {
	const what = "the descriptor of a socket"
	if err := privdir.CheckFile(dir, name+authSuffix, what); err != nil {
		return d, err
	}
	f, id, err := dir.Open(name + authSuffix)
	if err != nil {
		return d, err
	}
	defer f.Close()
	if id.Size > maxDescriptor {
		return d, spoofed("its descriptor is too large")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDescriptor))
	if err != nil {
		return d, err
	}
	if err := jsonv2.Unmarshal(data, &d, jsonv2.RejectUnknownMembers(true)); err != nil {
		return d, spoofed("its descriptor cannot be read")
	}
	switch {
	case d.Version != protocol:
		return d, spoofed("its descriptor has another version")
	case !isHex(d.Nonce, descriptorNonceBytes), !isHex(d.Token, tokenBytes):
		return d, spoofed("its descriptor has no usable token")
	case d.Endpoint != filepath.Join(dir.Path(), name):
		return d, spoofed("its descriptor names another place")
	}
	return d, nil
}

// checkSocket refuses a socket that another user could have put there.
func checkSocket(dir *safefile.Root, name string) error {
	st, err := dir.Stat(name)
	if err != nil {
		return err
	}
	mode, err := os.Lstat(filepath.Join(dir.Path(), name))
	if err != nil {
		return err
	}
	switch {
	case mode.Mode().Type() != fs.ModeSocket:
		return spoofed("it is no socket")
	case st.UID != uint32(os.Geteuid()):
		return spoofed("it belongs to another user")
	case st.Mode&0o077 != 0:
		return spoofed("it is open to other users")
	}
	return nil
}

// spoofed is the fault of a socket that is not believed. why has no path.
func spoofed(why string) *fault.Error {
	return fault.New(contract.Forbidden, "a socket of the installation is not believed: %s", why).
		WithHint("remove it from the directory ipc of the installation, and restart the server")
}

// gone reports whether an error says that nobody is there any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
