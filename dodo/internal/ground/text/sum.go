package text

import (
	"context"
	"crypto/sha256"
	"io"

	"localmcp/dodo/internal/contract"
)

// Sum is the hash of a file as callers see it, read once in constant memory. It fails as
// [Read] does.
func Sum(ctx context.Context, r io.ReaderAt, size int64) (string, error) {
	w := window{ctx: ctx, r: r, size: size}
	h := sha256.New()
	buf := make([]byte, min(chunk, size))
	for from := int64(0); from < size; {
		b := buf[:min(chunk, size-from)]
		if err := w.readFull(b, from); err != nil {
			return "", err
		}
		h.Write(b)
		from += int64(len(b))
	}
	return contract.HashSum(h.Sum(nil)), nil
}
