// Package wire encodes rows of numbers (features, hidden rows and their gradients) that peers send
// to one another.
package wire

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-gnn/heddle/comm"
)

// Coding is how the values of a row are encoded. The zero Coding is float32, bit by bit. Rounding
// depends only on the row: the bytes are the same in every run.
type Coding struct {
	// "": float32; "bf16": its upper half, rounded to even; "int8": multiples of the row's scale,
	// which is its greatest magnitude over 127; "int4": over 7, two values a byte.
	Values string `json:"values,omitempty"`
	// Columns gives each column of a message one scale instead of each row. It is a trainer's
	// choice: rows of few columns, all about as large, take fewer bytes.
	Columns bool `json:"columns,omitempty"`
	// "": none; "zstd": RFC 8878, of each message, or piece of one, that it makes shorter.
	Compress string `json:"compress,omitempty"`
}

// Validate returns all faults at once, or nil.
func (c Coding) Validate() error {
	var errs []error
	if c.Values != "" && c.Values != "bf16" && !c.scaled() {
		errs = append(errs, fmt.Errorf("rows must be float32, bf16, int8 or int4 (got %q)", c.Values))
	}
	if c.Columns && !c.scaled() {
		errs = append(errs, fmt.Errorf("rows must be int8 or int4 where columns have scales (got %q)", c.Values))
	}
	if c.Compress != "" && c.Compress != "zstd" {
		errs = append(errs, fmt.Errorf("compress must be none or zstd (got %q)", c.Compress))
	}
	return errors.Join(errs...)
}

// scaled reports whether values are multiples of a scale.
func (c Coding) scaled() bool { return c.Values == "int8" || c.Values == "int4" }

// valuesLen is the bytes of n values without scales.
func (c Coding) valuesLen(n int) int {
	switch c.Values {
	case "bf16":
		return 2 * n
	case "int8":
		return n
	case "int4":
		return (n + 1) / 2
	}
	return 4 * n
}

// RowLen is the bytes of a dense row, before compression: 4 a value, 2 as bf16, 1 as int8 or half a
// one as int4, and 4 for its scale unless columns have them.
func (c Coding) RowLen(cols int) int {
	if c.scaled() && !c.Columns {
		return 4 + c.valuesLen(cols)
	}
	return c.valuesLen(cols)
}

// MaxCols is the widest row that every Coding can send.
const MaxCols = comm.MaxUnit - 4

// Coder encodes and decodes. Several goroutines may use it. The zero Coder sends float32.
type Coder struct {
	coding Coding
	enc    *zstd.Encoder
	dec    *zstd.Decoder
}

// New returns the coder of a valid c.
func New(c Coding) *Coder {
	k := &Coder{coding: c}
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
func (k *Coder) Coding() Coding { return k.coding }

// pack returns b as a zstd frame in the memory of dst, or b itself where that is not shorter.
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
