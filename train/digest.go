package train

import (
	"hash/crc32"

	"github.com/heddle-gnn/heddle/comm"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest is a checksum of x with which peers notice that their parameters differ: a CRC-32C, for which processors have
// an instruction, of the values in little-endian order.
func Digest(x []float32) uint32 {
	return crc32.Checksum(comm.FloatBytes(x), castagnoli)
}

// SelectionBins is the resolution of AUC and AP while states are compared, which happens often. Results have
// eval.DefaultBins.
const SelectionBins = 256
