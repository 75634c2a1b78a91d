//go:build !linux

package git

import (
	"errors"
	"os"
)

func hold(*os.File) error { return errors.ErrUnsupported }

func stamp(*os.File, int64) error { return errors.ErrUnsupported }
