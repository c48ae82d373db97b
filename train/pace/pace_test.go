package pace

import (
	"math"
	"slices"
	"testing"
)

// TestPace: who is slower than most gets less work, as much as makes it as fast; nobody is moved by a round or two, by a
// difference that is small, or by what one peer makes of its own time; and what was taken away comes back.
func TestPace(t *testing.T) {
	even := []float32{1, 1, 1, 1}
	for _, test := range []struct {
		name   string
		rounds [][]float32
		want   []float64
	}{
		{"all alike", repeat(even, 10), []float64{1, 1, 1, 1}},
		{"one slow", repeat([]float32{1, 1, 4, 1}, 5), []float64{1, 1, 0.25, 1}},
		{"not yet", repeat([]float32{1, 1, 4, 1}, 4), []float64{1, 1, 1, 1}},
		{"held up for two rounds", append(repeat([]float32{1, 1, 100, 1}, 2), repeat(even, 8)...), []float64{1, 1, 1, 1}},
		{"a little slow", repeat([]float32{1, 1, 1.4, 1}, 10), []float64{1, 1, 1, 1}},
		{"slow, but who cares", repeat([]float32{.001, .001, .009, .001}, 10), []float64{1, 1, 1, 1}},
		{"far too slow", repeat([]float32{1, 1, 1000, 1}, 5), []float64{1, 1, leastShare, 1}},
		{"slow with less work", append(repeat([]float32{1, 1, 4, 1}, 5), repeat([]float32{1, 1, 1.2, 1}, 5)...), []float64{1, 1, 0.25, 1}},
		{"fast again", append(repeat([]float32{1, 1, 4, 1}, 5), repeat([]float32{1, 1, 0.25, 1}, 5)...), []float64{1, 1, 1, 1}},
		{"somewhat faster", append(repeat([]float32{1, 1, 8, 1}, 5), repeat([]float32{1, 1, 0.5, 1}, 5)...), []float64{1, 1, 0.25, 1}},
		{"two of four", repeat([]float32{1, 2, 4, 1}, 5), []float64{1, 0.5, 0.25, 1}},
		{"most are slow", repeat([]float32{1, 4, 4, 4}, 5), []float64{1, 1, 1, 1}},
		{"one says that it took no time", repeat([]float32{0, 1, 1, 1}, 5), []float64{1, 1, 1, 1}},
		{"one says what is no time", repeat([]float32{float32(math.NaN()), -1, 1, float32(math.Inf(1))}, 5), []float64{1, 1, 1, 1}},
	} {
		p := New(4)
		for _, r := range test.rounds {
			p.Note(r, []int{0, 1, 2, 3})
		}
		if !slices.Equal(p.Share, test.want) {
			t.Errorf("%s: shares must be %v (got %v)", test.name, test.want, p.Share)
		}
	}

	p := New(3) // whoever is not there has no say and keeps what it had
	for range 5 {
		p.Note([]float32{1, 0, 3}, []int{0, 2})
	}
	if want := []float64{1, 1, 1.0 / 3}; !slices.Equal(p.Share, want) {
		t.Errorf("shares of two members must be %v (got %v)", want, p.Share)
	}
}

func repeat(x []float32, n int) [][]float32 {
	all := make([][]float32, n)
	for i := range all {
		all[i] = x
	}
	return all
}
