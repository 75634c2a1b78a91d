package privdir

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

// Held is a lock this process holds. The system releases it when the process ends.
type Held struct{ fd int }

// TryLock takes the exclusive lock on the file at path, which is made with mode 0600
// when missing and is never removed. When another process, or another Held of this
// one, has it, the fault is [Busy]. The directory should be private.
func TryLock(path string) (*Held, error) { return try(path, unix.LOCK_EX) }

// TryLockShared takes the lock together with others who take it shared; it excludes
// TryLock.
func TryLockShared(path string) (*Held, error) { return try(path, unix.LOCK_SH) }

// Lock takes the exclusive lock as [TryLock] does and waits for it until ctx ends;
// then the fault is [Busy].
func Lock(ctx context.Context, path string) (*Held, error) {
	// flock itself cannot be told to stop waiting, so ask again, ever more rarely.
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		h, err := TryLock(path)
		if !errors.Is(err, Busy) {
			return h, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// Unlock gives the lock back, also when a program that is just being started still shares
// the descriptor.
func (h *Held) Unlock() error {
	err := unix.Flock(h.fd, unix.LOCK_UN)
	return errors.Join(err, unix.Close(h.fd))
}

func try(path string, how int) (*Held, error) {
	for {
		h, current, err := tryOnce(path, how)
		if err != nil || current {
			return h, err
		}
	}
}

// tryOnce reports with current whether the locked file still has its name: one that
// was removed meanwhile protects nothing.
func tryOnce(path string, how int) (h *Held, current bool, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, false, unusable(path, "the lock file", err)
	}
	for {
		err = unix.Flock(fd, how|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		unix.Close(fd)
		if err == unix.EWOULDBLOCK {
			return nil, false, fault.Wrap(Busy, &At{Path: path}, "another process is at work here").
				WithHint("wait until the other process is done and try again")
		}
		return nil, false, unusable(path, "the lock file", err)
	}
	var open, named unix.Stat_t
	if err := unix.Fstat(fd, &open); err != nil {
		unix.Close(fd)
		return nil, false, unusable(path, "the lock file", err)
	}
	if err := unix.Lstat(path, &named); err != nil || open.Dev != named.Dev || open.Ino != named.Ino {
		unix.Close(fd)
		return nil, false, nil
	}
	return &Held{fd: fd}, true, nil
}
