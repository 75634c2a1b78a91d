package oauth

import (
	"errors"
	"io/fs"
	"path/filepath"

	"localmcp/internal/privdir"
)

// CheckKeys looks whether the signing keys of an installation directory can be used, and
// changes nothing. That there are none yet is no fault.
func CheckKeys(dir string) error {
	root, err := privdir.Open(filepath.Join(dir, keysDir), whatDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if _, _, err = readKeys(root); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
