package comm

import (
	"errors"
	"fmt"
)

// Coding is how the values of a row are encoded. The zero Coding is float32, bit by bit. Rounding
// depends only on the row: the bytes are the same in every run.
type Coding struct {
	// Empty is float32, "bf16" its upper half, rounded to even. "int8" is multiples of the row's scale, which is its
	// greatest magnitude over 127; "int4" is the same over 7, two values a byte.
	Values string `json:"values,omitempty"`
	// Columns gives each column of a message one scale instead of each row. It is a trainer's
	// choice: rows of few columns, all about as large, take fewer bytes.
	Columns bool `json:"columns,omitempty"`
	// Empty is none; "zstd" (RFC 8878) is used for each message, or piece of a message, that it makes shorter.
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

// MaxLen is the most bytes that a message of rows×cols takes.
func (c Coding) MaxLen(rows, cols int) int {
	if c.Columns && rows > 0 {
		return 1 + 4*cols + c.valuesLen(rows*cols)
	}
	return 1 + c.RowLen(cols)*rows
}
