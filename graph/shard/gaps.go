package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// appendGaps appends an ascending list to b: each number as a uvarint, the count of numbers between it and the one
// before.
func appendGaps(b []byte, list []int32) []byte {
	last := int32(-1)
	for _, v := range list {
		b = binary.AppendUvarint(b, uint64(v-last-1))
		last = v
	}
	return b
}

// parseGaps reads n numbers in [0, limit) that appendGaps wrote, and returns the rest of b, which may be any bytes.
func parseGaps(b []byte, n uint64, limit int) (list []int32, rest []byte, err error) {
	if n > uint64(len(b)) { // a number takes at least a byte, which bounds the allocation
		return nil, b, fmt.Errorf("%d numbers announced in %d bytes", n, len(b))
	}
	list = slices.Grow(list, int(n))
	last := -1
	for range n {
		gap, size := binary.Uvarint(b)
		if size <= 0 {
			return list, b, errors.New("it ends within a number")
		}
		if gap >= uint64(limit-1-last) {
			return list, b, fmt.Errorf("a gap of %d after %d leaves [0, %d)", gap, last, limit)
		}
		b = b[size:]
		last += int(gap) + 1
		list = append(list, int32(last))
	}
	return list, b, nil
}
