package comm

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// floats that any bit pattern may be among.
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
		got := make([]byte, 4*n)
		putFloats(got, x)
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%d floats: %x, want %x", n, got, want.Bytes())
		}
		back := make([]float32, n)
		getFloats(back, got)
		acc := make([]float64, n)
		addFloats(acc, got)
		for i := range back {
			if math.Float32bits(back[i]) != math.Float32bits(x[i]) {
				t.Fatalf("%d floats: bits of [%d] are %x, want %x", n, i, math.Float32bits(back[i]), math.Float32bits(x[i]))
			}
			if acc[i] != float64(x[i]) && x[i] == x[i] {
				t.Fatalf("%d floats: sum of [%d] is %v, want %v", n, i, acc[i], x[i])
			}
		}
	}
}

func TestHeaderLayout(t *testing.T) {
	b := make([]byte, HeaderLen)
	header{opBroadcast, Control, 1, 0x01020304, 0x1122}.put(b)
	want := []byte{1, 3, 2, 1, 4, 3, 2, 1, 0x22, 0x11, 0, 0, 0, 0, 0, 0}
	if !bytes.Equal(b, want) {
		t.Fatalf("header % x, want % x", b, want)
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

func BenchmarkFloats(b *testing.B) {
	x := patterns(1 << 16)
	buf, acc := make([]byte, 4*len(x)), make([]float64, len(x))
	for name, f := range map[string]func(){
		"put": func() { putFloats(buf, x) },
		"get": func() { getFloats(x, buf) },
		"add": func() { addFloats(acc, buf) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				f()
			}
		})
	}
}
