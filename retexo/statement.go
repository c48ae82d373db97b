package retexo

import (
	"encoding/binary"
	"fmt"
)

// statement is what a peer says of itself with its part of a reduction. It is compared, not summed.
type statement struct {
	Digest uint32 // of the parameters that it holds
}

const (
	digestLen    = 4 // bytes of a statement that are the same at all peers that hold the same
	statementLen = digestLen + 5
)

// encode appends u32 digest · 5 bytes 0, room that messages keep.
func (s statement) encode(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, s.Digest), 0, 0, 0, 0, 0)
}

// parseStatement reads what encode appended.
func parseStatement(b []byte) (s statement, err error) {
	if len(b) != statementLen || [5]byte(b[digestLen:]) != [5]byte{} {
		return s, fmt.Errorf("a statement must have %d bytes, the last five of them 0 (got % x)", statementLen, b[:min(len(b), 2*statementLen)])
	}
	return statement{Digest: binary.LittleEndian.Uint32(b)}, nil
}
