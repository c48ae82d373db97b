package train

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/heddle-gnn/heddle/kernels"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest is a checksum of x, by which peers notice that they hold different parameters: a CRC-32C, for which processors
// have an instruction, of the values in little-endian order.
func Digest(x []float32) uint32 {
	b, ok := kernels.Bytes(x)
	if !ok {
		b = make([]byte, 0, 4*len(x))
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return crc32.Checksum(b, castagnoli)
}

// SelectionBins is the resolution of AUC and AP while states are compared, which happens often. Results have
// eval.DefaultBins.
const SelectionBins = 256
