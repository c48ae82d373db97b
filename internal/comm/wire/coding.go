// Package wire encodes rows of numbers (features, hidden rows and their gradients) that peers send
// to one another.
package wire

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-gnn/heddle/comm"
)

// coding is a comm.Coding that can encode.
type coding struct{ comm.Coding }

// scaled reports whether values are multiples of a scale.
func (c coding) scaled() bool { return c.Values == "int8" || c.Values == "int4" }

// valuesLen is the bytes of n values without scales.
func (c coding) valuesLen(n int) int {
	c.Columns = true // rows have no scales then
	return c.RowLen(n)
}

// MaxCols is the widest row that every coding can send.
const MaxCols = comm.MaxUnit - 4

// Coder encodes and decodes. Several goroutines may use it. The zero Coder sends float32.
type Coder struct {
	coding coding
	enc    *zstd.Encoder
	dec    *zstd.Decoder
}

// New returns the coder of a valid c.
func New(c comm.Coding) *Coder {
	k := &Coder{coding: coding{c}}
	if c.Compress == "" {
		return k
	}
	var err error
	if k.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true)); err == nil {
		k.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	}
	if err != nil {
		panic("wire: zstd refuses its options: " + err.Error())
	}
	return k
}

// Coding returns the coding of the coder.
func (k *Coder) Coding() comm.Coding { return k.coding.Coding }

// pack returns b as a zstd frame in the memory of dst, or b itself if that is not shorter.
func (k *Coder) pack(dst, b []byte) []byte {
	if k.enc == nil {
		return b
	}
	if frame := k.enc.EncodeAll(b, dst[:0]); len(frame) < len(b) {
		return frame
	}
	return b
}

// unpack returns the content of a zstd frame, at most limit bytes, in the memory of dst if it is
// large enough. The frame states its length; a longer one is refused before any memory is
// allocated.
func (k *Coder) unpack(dst, frame []byte, limit int) ([]byte, error) {
	if k.dec == nil {
		return nil, errors.New("rows must not be compressed (got a zstd frame)")
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("rows must be a zstd frame: %w", err)
	}
	if !h.HasFCS {
		return nil, errors.New("zstd frame must state its length")
	}
	if h.FrameContentSize > uint64(limit) {
		return nil, fmt.Errorf("zstd frame must have at most %d bytes (got %d)", limit, h.FrameContentSize)
	}
	n := int(h.FrameContentSize)
	if cap(dst) < n {
		dst = make([]byte, 0, n)
	}
	dst, err := k.dec.DecodeAll(frame, dst[:0:n])
	if err != nil {
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	return dst, nil
}
