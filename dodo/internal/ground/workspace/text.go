package workspace

// LoadText is [Visit.Load] for searches: a file of more than max bytes gives FILE_TOO_LARGE
// without being read, and of one that is no text (a NUL in the first 64 KiB, and no mark of
// UTF-16) only the beginning is read, with text false.
func (v *Visit) LoadText(buf []byte, max int64) (data []byte, in Info, text bool, err error) {
	data, was, text, more, err := v.dir.LoadText(v.name, buf, max)
	switch {
	case err != nil:
		return buf[:0], Info{}, false, v.t.lookup(v.Path, err)
	case more:
		return buf[:0], infoOf(was), false, tooLarge(v.Path, was.Size, max)
	}
	if err := v.t.regular(v.Path, was); err != nil {
		return buf[:0], Info{}, false, err
	}
	if was.Dev != v.t.id.Dev { // a file may be a mount of its own
		f, err := v.Open()
		if err != nil {
			return buf[:0], Info{}, false, err
		}
		f.Close()
	}
	return data, infoOf(was), text, nil
}
