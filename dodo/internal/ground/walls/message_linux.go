package walls

import (
	"bytes"
	"encoding/gob"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// File is the plan as the first process reads it. Paths and arguments are bytes, which JSON
// would change where they are not UTF-8.
func (p *Plan) File() (*os.File, error) {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(p); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("dodo-plan", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("dodo-plan", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err = f.Write(text.Bytes()); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// A Refusal is what the first process said of a failure.
type Refusal struct {
	Errno  syscall.Errno
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

func (r *Refusal) Unwrap() error {
	if r.Errno == 0 {
		return nil
	}
	return r.Errno
}

// Descriptors are those that came with a message.
func Descriptors(rights []byte) (fds []int, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, more...)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

// given takes the file that comes with the order to build.
func given(socket int) (*os.File, error) {
	order, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		n, rn, _, _, err := unix.Recvmsg(socket, order, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, errGivenUp
		}
		fds, err := Descriptors(rights[:rn])
		if err != nil {
			return nil, err
		}
		if order[0] != OrderBuild || len(fds) != 1 {
			return nil, errNoPlan
		}
		return os.NewFile(uintptr(fds[0]), "plan"), nil
	}
}

var (
	errGivenUp = errors.New("the server gave it up")
	errNoPlan  = errors.New("the first message is not a plan")
)
