package recovery

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Statement is what a peer says of itself with its part of a reduction. It is compared, not summed.
type Statement struct {
	Digest  uint32  // of the parameters that it holds
	Seconds float32 // of its own work; 0: not measured
	Regroup bool    // it asks for another generation
}

const (
	DigestLen    = 4 // bytes of a statement that are the same at all peers that hold the same
	statementLen = DigestLen + 4 + 1
)

// Encode appends u32 digest · f32 seconds · u8, 1: asks for another generation.
func (s Statement) Encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, s.Digest)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s.Seconds))
	if s.Regroup {
		return append(b, 1)
	}
	return append(b, 0)
}

// ParseStatement reads what Encode appended.
func ParseStatement(b []byte) (s Statement, err error) {
	if len(b) != statementLen || b[8] > 1 {
		return s, fmt.Errorf("a statement must have %d bytes, the last of them 0 or 1 (got % x)", statementLen, b[:min(len(b), 2*statementLen)])
	}
	return Statement{Digest: binary.LittleEndian.Uint32(b), Seconds: math.Float32frombits(binary.LittleEndian.Uint32(b[4:])), Regroup: b[8] == 1}, nil
}
