package transcript

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what unpacking may hold in memory.
const maxWindow = 64 << 20

// Unpack reads what zstd packed. Its memory is bounded whatever the input claims;
// a damaged or truncated pack gives an error behind the last good bytes, never a
// silent end. Close ends the unpacking; it does not close r.
func Unpack(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(bufio.NewReaderSize(r, 64<<10),
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return &unpacker{d: d}, nil
}

type unpacker struct {
	d   *zstd.Decoder
	err error
}

// Read gives unpacked bytes; once it failed it goes on failing.
func (u *unpacker) Read(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.d.Read(p)
	switch err {
	case nil, io.EOF:
	default:
		err = fmt.Errorf("unpack: %w", err)
	}
	u.err = err
	return n, err
}

// Close frees the decoder.
func (u *unpacker) Close() error {
	u.d.Close()
	if u.err == nil {
		u.err = io.ErrClosedPipe
	}
	return nil
}
