package comm

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// floats may have any bit pattern.
func patterns(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(uint32(i) * 2654435761)
	}
	return x
}

func TestFloatsAreLittleEndian(t *testing.T) {
	for n := range 40 {
		x := patterns(n)
		var want bytes.Buffer
		if err := binary.Write(&want, binary.LittleEndian, x); err != nil {
			t.Fatal(err)
		}
		got := FloatBytes(x)
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%d floats: %x, must be %x", n, got, want.Bytes())
		}
		back := floats(want.Bytes())
		for i := range x {
			if math.Float32bits(back[i]) != math.Float32bits(x[i]) {
				t.Fatalf("%d floats: bits of [%d] are %x, must be %x", n, i, math.Float32bits(back[i]),
					math.Float32bits(x[i]))
			}
		}
		if n > 0 {
			odd := append([]byte{0}, got...)[1:] // not aligned for a float32
			if back := floats(odd); math.Float32bits(back[n-1]) != math.Float32bits(x[n-1]) {
				t.Fatalf("%d floats at an odd address: bits of the last are %x, must be %x", n,
					math.Float32bits(back[n-1]), math.Float32bits(x[n-1]))
			}
		}
	}
}

func TestHeaderLayout(t *testing.T) {
	b := make([]byte, HeaderLen)
	header{opBroadcast, Control, 1, 0x01020304, 0x1122}.put(b)
	want := []byte{2, 3, 2, 1, 4, 3, 2, 1, 0x22, 0x11, 0, 0, 0, 0, 0, 0}
	if !bytes.Equal(b, want) {
		t.Fatalf("header % x, must be % x", b, want)
	}
}

// A frame is refused, or its header and payload re-encode to the same bytes.
func FuzzParseFrame(f *testing.F) {
	good := make([]byte, HeaderLen+8)
	header{opExchange, Halo, 0, 7, 8}.put(good)
	f.Add(good)
	f.Add(good[:HeaderLen-1])
	f.Add(append(bytes.Clone(good), 1))
	f.Add([]byte{})
	for at, v := range map[int]byte{0: 2, 1: byte(numOps), 2: byte(numDoors), 8: 0, 15: 255} {
		bad := bytes.Clone(good)
		bad[at] = v
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, payload, err := parseFrame(frame)
		if err != nil {
			return
		}
		if len(payload) > maxPayload || uint64(len(payload)) > h.total {
			t.Fatalf("payload of %d bytes in a message of %d", len(payload), h.total)
		}
		_ = h.String() // must know every operation and door that is let through
		back := make([]byte, HeaderLen, len(frame))
		h.put(back)
		if back = append(back, payload...); !bytes.Equal(back, frame) {
			t.Fatalf("re-encoded to % x, from % x", back, frame)
		}
	})
}
