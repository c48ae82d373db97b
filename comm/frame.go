package comm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/kernels"
)

// A message is cut into frames of at most MaxFrame bytes; every frame begins with the same header:
//
//	byte 0      version of this layout, 2
//	byte 1      operation; the highest bit marks operations of a second group (Dup)
//	byte 2      door
//	byte 3      step within the operation (of AllReduce: allreduce.go)
//	bytes 4–7   sequence number of the operation in its Group, little endian, from 1, wrapping
//	bytes 8–15  payload bytes of the whole message, little endian
//
// All frames of a message except the last are full, so a reader finds the end of a message from its header.
const (
	HeaderLen  = 16
	MaxFrame   = HeaderLen + maxPayload
	maxPayload = 1 << 18 // a multiple of 8; small enough that a frame stays in a core's cache from encoding to sending

	frameVersion = 2
)

type op uint8

const (
	opAllReduce op = iota
	opExchange
	opSendRecv
	opBroadcast
	opBarrier
	opStream
	_ // was another operation
	opRefuse
	opLost
	numOps
)

func (o op) String() string {
	return [...]string{"allreduce", "exchange", "sendrecv", "broadcast", "barrier", "stream", "", "refuse", "lost"}[o]
}

type header struct {
	op    op
	door  Door
	step  uint8
	seq   uint32
	total uint64
}

func (h header) String() string {
	return fmt.Sprintf("%v %d by %v, step %d, %d bytes", h.op, h.seq, h.door, h.step, h.total)
}

// ends reports whether the frame ends a run, of both groups of a transport.
func (h header) ends() bool { return h.op == opRefuse || h.op == opLost }

func (h header) put(b []byte) {
	b[0], b[1], b[2], b[3] = frameVersion, byte(h.op), byte(h.door), h.step
	binary.LittleEndian.PutUint32(b[4:], h.seq)
	binary.LittleEndian.PutUint64(b[8:], h.total)
}

// parseFrame splits a frame into its header and payload, checking only what can be known without expectation.
func parseFrame(frame []byte) (h header, payload []byte, err error) {
	if len(frame) < HeaderLen {
		return h, nil, fmt.Errorf("a frame must have at least %d bytes (got %d)", HeaderLen, len(frame))
	}
	if frame[0] != frameVersion {
		return h, nil, fmt.Errorf("the version of the frame must be %d (got %d)", frameVersion, frame[0])
	}
	seq, total := binary.LittleEndian.Uint32(frame[4:]), binary.LittleEndian.Uint64(frame[8:])
	h = header{op(frame[1]), Door(frame[2]), frame[3], seq, total}
	if h.op >= numOps {
		return h, nil, fmt.Errorf("the operation of the frame must be below %d (got %d)", numOps, frame[1])
	}
	if h.door >= numDoors {
		return h, nil, fmt.Errorf("the door of the frame must be below %d (got %d)", numDoors, frame[2])
	}
	payload = frame[HeaderLen:]
	if uint64(len(payload)) > min(h.total, maxPayload) {
		return h, nil, fmt.Errorf("the frame must carry at most %d bytes (got %d)",
			min(h.total, maxPayload), len(payload))
	}
	return h, payload, nil
}

// Frame is what the header of a frame states, and its payload.
type Frame struct {
	Op      string // "allreduce", "exchange", "sendrecv", "broadcast", "barrier", "stream", "", "refuse" or "lost"
	Dup     bool   // of the group that Dup returned
	Door    Door
	Step    uint8  // within the operation
	Given   bool   // it is a member's own part, to the member that sums it
	Seq     uint32 // of the operation in its Group, from 1
	Total   uint64 // payload bytes of the whole message
	Payload []byte // in the memory of the frame
}

// ParseFrame reads a frame as a Transport carries it.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < HeaderLen {
		return Frame{}, fmt.Errorf("a frame must have at least %d bytes (got %d)", HeaderLen, len(b))
	}
	plain := append([]byte(nil), b[:HeaderLen]...)
	plain[1] &^= dupBit
	h, _, err := parseFrame(plain)
	return Frame{Op: h.op.String(), Dup: b[1]&dupBit != 0, Door: h.door, Step: h.step, Seq: h.seq,
		Given: h.op == opAllReduce && (h.step == stepGive || h.step == stepGiveCount), Total: h.total,
		Payload: b[HeaderLen:]}, err
}

// FloatBytes returns the bytes of x, little endian: its own memory, except on machines of another byte order.
func FloatBytes(x []float32) []byte {
	if b, ok := kernels.Bytes(x); ok {
		return b
	}
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// floats is the inverse of FloatBytes.
func floats(b []byte) []float32 {
	if x, ok := kernels.Floats(b); ok {
		return x
	}
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}
