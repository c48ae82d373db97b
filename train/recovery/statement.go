package recovery

import (
	"encoding/binary"
	"fmt"
)

// Statement is what a peer says of itself with its part of a reduction. It is compared, not summed.
type Statement struct {
	Digest uint32 // of the parameters that it holds
}

const (
	DigestLen    = 4 // bytes of a statement that are the same at all peers that hold the same
	statementLen = DigestLen + 5
)

// Encode appends u32 digest · 5 bytes 0, room that messages keep.
func (s Statement) Encode(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, s.Digest), 0, 0, 0, 0, 0)
}

// ParseStatement reads what Encode appended.
func ParseStatement(b []byte) (s Statement, err error) {
	if len(b) != statementLen || [5]byte(b[DigestLen:]) != [5]byte{} {
		return s, fmt.Errorf("a statement must have %d bytes, the last five of them 0 (got % x)", statementLen, b[:min(len(b), 2*statementLen)])
	}
	return Statement{Digest: binary.LittleEndian.Uint32(b)}, nil
}
