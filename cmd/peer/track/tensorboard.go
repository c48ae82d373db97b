package track

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// scalars writes files of events that TensorBoard reads: TFRecords (tensorflow/core/lib/io/record_writer.h) of Event
// messages (tensorflow/core/util/event.proto).
type scalars struct{ w io.Writer }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of a TFRecord.
func masked(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	return binary.LittleEndian.AppendUint32(nil, (sum>>15|sum<<17)+0xa282ead8)
}

func (s scalars) record(event []byte) error {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	all := append(append([]byte{}, length...), masked(length)...)
	_, err := s.w.Write(append(append(all, event...), masked(event)...))
	return err
}

// begin writes the first event of a file; seconds are since 1970.
func (s scalars) begin(seconds float64) error {
	return s.record(protowire.AppendString(protowire.AppendTag(timed(seconds), 3, protowire.BytesType), "brain.Event:2"))
}

// add writes a value at a step.
func (s scalars) add(seconds float64, step int64, tag string, v float64) error {
	value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), tag)
	value = protowire.AppendFixed32(protowire.AppendTag(value, 2, protowire.Fixed32Type), math.Float32bits(float32(v)))
	summary := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	event := protowire.AppendVarint(protowire.AppendTag(timed(seconds), 2, protowire.VarintType), uint64(step))
	return s.record(protowire.AppendBytes(protowire.AppendTag(event, 5, protowire.BytesType), summary))
}

func timed(seconds float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(seconds))
}
