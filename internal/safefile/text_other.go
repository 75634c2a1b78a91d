//go:build !linux

package safefile

// LoadText answers NotSupported.
func (d *Dir) LoadText(name string, buf []byte, max int64) (data []byte, in Info, text, more bool, err error) {
	return nil, Info{}, false, false, notSupported()
}
