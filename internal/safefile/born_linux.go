package safefile

import "golang.org/x/sys/unix"

// Born is when the directory was made, in nanoseconds since 1970 UTC: it tells it from a
// later one that was given the same inode. known is false where the file system does not
// keep it.
func (r *Root) Born() (ns int64, known bool, err error) {
	var st unix.Statx_t
	if err := again(func() error { return unix.Statx(r.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st) }); err != nil {
		return 0, false, pathError("stat", ".", err)
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec), st.Mask&unix.STATX_BTIME != 0, nil
}
