package section

import (
	"encoding/binary"
	"hash/crc32"
)

// reseal sets the checksums of table and header, and the file's length, to what b holds, as far as
// it holds them.
func reseal(b []byte) {
	if len(b) < headerSize {
		return
	}
	le := binary.LittleEndian
	le.PutUint64(b[16:], uint64(len(b)))
	if table := le.Uint64(b[24:]); table <= uint64(len(b)-headerSize) {
		le.PutUint32(b[56:], crc32.Checksum(b[headerSize:headerSize+table], castagnoli))
	}
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}
