package section

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Encode writes the section file of the given kind (1 to 24 characters, as in names) to w.
func Encode(w io.Writer, kind string, sections []Section) error {
	sum := make([]uint32, len(sections))
	for i, s := range sections {
		switch {
		case s.sum != nil:
			sum[i] = *s.sum
		case s.from == nil:
			sum[i] = crc32.Checksum(s.data, castagnoli)
		default:
			return fmt.Errorf("section %q: its checksum is not known before it is written", s.Name)
		}
	}
	b, offset, err := encodeHead(kind, sections, sum)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	_, err = payloads(w, sections, offset, int64(len(b)))
	return err
}

// payloads writes the payloads after the head, which ends at byte end, and returns their checksums.
func payloads(w io.Writer, sections []Section, offset []int64, end int64) (sum []uint32, err error) {
	var zero [align]byte
	sum = make([]uint32, len(sections))
	for i, s := range sections {
		if _, err := w.Write(zero[:offset[i]-end]); err != nil {
			return nil, err
		}
		if sum[i], err = s.payload(w); err != nil {
			return nil, err
		}
		end = offset[i] + s.Bytes()
	}
	return sum, nil
}

// Write writes the section file path: to a temporary file next to it, synced and renamed, so that path has either its
// old content or all of the new file. Only the owner may read it (mode 0600). It returns the same digest as
// Arrays.Digest.
func Write(path, kind string, sections []Section) (digest [32]byte, err error) {
	return writeOn(disk.OS{}, path, kind, sections)
}

// writeOn is Write on a given file system, which tests interrupt.
func writeOn(on disk.FS, path, kind string, sections []Section) (digest [32]byte, err error) {
	err = disk.Replace(on, path, 0o600, func(f disk.File) error {
		b, offset, err := encodeHead(kind, sections, make([]uint32, len(sections)))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<18)
		if _, err := w.Write(b); err != nil {
			return err
		}
		sum, err := payloads(w, sections, offset, int64(len(b)))
		if err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		// The head includes the checksums, which are known only now.
		if b, _, err = encodeHead(kind, sections, sum); err != nil {
			return err
		}
		digest = sha256.Sum256(b)
		_, err = f.WriteAt(b, 0)
		return err
	})
	return digest, err
}
