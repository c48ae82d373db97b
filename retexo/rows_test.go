package retexo

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// FuzzGreeting: no bytes make the reader panic, and what it accepts encodes to the same bytes.
func FuzzGreeting(f *testing.F) {
	g := Greeting{Rank: 2, Size: 5, Config: [32]byte{1}, Partition: [32]byte{31: 9}}
	f.Add(g.encode())
	g.Checkpoints = []uint64{1, 1<<32 | 7, math.MaxUint64}
	f.Add(g.encode())
	f.Add(g.encode()[:75])
	f.Add(append(g.encode(), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b)
		if err != nil {
			return
		}
		if len(g.Checkpoints) > maxCheckpoints {
			t.Fatalf("%d checkpoints", len(g.Checkpoints))
		}
		if again := g.encode(); !bytes.Equal(again, b) {
			t.Fatalf("% x encodes to % x", b, again)
		}
	})
}

func TestGreeting(t *testing.T) {
	g := Greeting{Rank: 2, Size: 5, Config: [32]byte{1}, Partition: [32]byte{31: 9}, Checkpoints: []uint64{3, 1<<32 | 7}}
	got, err := parseGreeting(g.encode())
	if err != nil || got.Rank != 2 || got.Size != 5 || got.Config != g.Config || got.Partition != g.Partition || !slices.Equal(got.Checkpoints, g.Checkpoints) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, n := range []int{0, 71, 73, greetingLen(maxCheckpoints) + 8} {
		if _, err := parseGreeting(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were taken for a greeting", n)
		}
	}
}
