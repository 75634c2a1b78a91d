package index

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// blockBytes is the text a block is closed at; a longer span stands alone.
const (
	blockBytes = 8 << 10
	blockSpans = 64
)

// How a block's text is kept.
const (
	textPlain = 0
	textZstd  = 1
)

type packer struct {
	enc *zstd.Encoder
}

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return &packer{enc: enc}, nil
}

// pack appends the kept form of text to dst.
func (p *packer) pack(dst, text []byte) []byte {
	n := len(dst)
	dst = p.enc.EncodeAll(text, append(dst, textZstd))
	if len(dst)-n > len(text) {
		dst = append(append(dst[:n], textPlain), text...)
	}
	return dst
}

// decoder unpacks for all: several at a time, each with memory of its own.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxText))
})

// unpack appends the text of its kept form to dst.
func unpack(dst, kept []byte) ([]byte, error) {
	if len(kept) == 0 {
		return dst, errDamaged
	}
	switch kept[0] {
	case textPlain:
		return append(dst, kept[1:]...), nil
	case textZstd:
		dec, err := decoder()
		if err != nil {
			return dst, err
		}
		text, err := dec.DecodeAll(kept[1:], dst)
		if err != nil {
			return dst, errDamaged
		}
		return text, nil
	}
	return dst, errDamaged
}
