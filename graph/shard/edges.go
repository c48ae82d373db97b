package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Edges returns a digest of the edges into the own nodes of parts, by the numbers of nodes in the whole graph: the same
// for every name of the graph, and for all parts together however they are cut.
func Edges(parts ...*Shard) string {
	var sum [4]uint64
	var b [16]byte
	for _, s := range parts {
		for i := range s.Owned {
			col, _ := s.Adj.Row(i)
			binary.LittleEndian.PutUint64(b[:], uint64(s.Global[i]))
			for _, j := range col {
				binary.LittleEndian.PutUint64(b[8:], uint64(s.Global[j]))
				h := sha256.Sum256(b[:])
				for k := range sum {
					sum[k] += binary.LittleEndian.Uint64(h[8*k:])
				}
			}
		}
	}
	return fmt.Sprintf("%016x%016x%016x%016x", sum[0], sum[1], sum[2], sum[3])
}
