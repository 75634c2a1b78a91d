package change

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packer compresses what is kept in the installation directory. One process has one, used
// by one goroutine at a time.
type packer struct {
	mu  sync.Mutex // guards both
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// packMax is the largest content in bytes that is unpacked. It does not depend on the owner's
// limits: what was kept under larger ones is given back, too.
const packMax = 64 << 20

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(packMax))
	if err != nil {
		return nil, fmt.Errorf("make a decompressor: %w", err)
	}
	return &packer{enc: enc, dec: dec}, nil
}

func (p *packer) pack(data []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.enc.EncodeAll(data, nil)
}

func (p *packer) unpack(packed []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := p.dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return data, nil
}
