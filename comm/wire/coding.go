// Package wire codes rows of numbers, features, hidden rows and their gradients, for the way from one peer to another.
package wire

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/heddle-gnn/heddle/comm"
)

// Coding is how the values of a row travel. The zero Coding is float32, bit by bit. What a coding rounds is a function of
// the row alone: the same bytes at every run.
type Coding struct {
	Values   string `json:"values,omitempty"`   // "": float32; "bf16": its upper half, rounded to even; "int8": multiples of a scale of the row, the greatest magnitude over 127
	Compress string `json:"compress,omitempty"` // "", or "zstd": RFC 8878, of a message or a piece of it where that makes it shorter
}

// Names of what Parse takes.
var (
	Values      = []string{"float32", "bf16", "int8"}
	Compressors = []string{"none", "zstd"}
)

// Parse returns the coding of the given names. Empty names are those of the zero Coding.
func Parse(values, compress string) (Coding, error) {
	var c Coding
	if values != "float32" {
		c.Values = values
	}
	if compress != "none" {
		c.Compress = compress
	}
	return c, c.Validate()
}

// Validate returns all faults at once, or nil.
func (c Coding) Validate() error {
	var errs []error
	if c.Values != "" && c.Values != "bf16" && c.Values != "int8" {
		errs = append(errs, fmt.Errorf("rows: %q, want one of %q", c.Values, Values))
	}
	if c.Compress != "" && c.Compress != "zstd" {
		errs = append(errs, fmt.Errorf("compress: %q, want one of %q", c.Compress, Compressors))
	}
	return errors.Join(errs...)
}

// RowLen is the bytes of a dense row, before compression: 4 a value, 2 as bf16, or 1 as int8 and 4 for its scale.
func (c Coding) RowLen(cols int) int {
	switch c.Values {
	case "bf16":
		return 2 * cols
	case "int8":
		return 4 + cols
	}
	return 4 * cols
}

// MaxCols is the widest row that every Coding can send.
const MaxCols = comm.MaxUnit - 4

// Coder codes and decodes, by any number of goroutines. The zero Coder sends float32.
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
	if k.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true)); err == nil {
		k.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	}
	if err != nil {
		panic("wire: zstd refuses its options: " + err.Error())
	}
	return k
}

// Coding returns what the coder was made for.
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

// unpack returns the content of a zstd frame, of limit bytes at most, in the memory of dst where it has room. The frame
// says how many they are, and is refused before any memory is taken if they are more.
func (k *Coder) unpack(dst, frame []byte, limit int) ([]byte, error) {
	if k.dec == nil {
		return nil, errors.New("a zstd frame, which was not agreed")
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("no zstd frame: %w", err)
	}
	if !h.HasFCS || h.FrameContentSize > uint64(limit) {
		return nil, fmt.Errorf("a zstd frame of %d bytes (told: %t), want %d at most", h.FrameContentSize, h.HasFCS, limit)
	}
	n := int(h.FrameContentSize)
	if cap(dst) < n {
		dst = make([]byte, 0, n)
	}
	dst, err := k.dec.DecodeAll(frame, dst[:0:n])
	if err != nil {
		return nil, fmt.Errorf("a zstd frame: %w", err)
	}
	return dst, nil
}
