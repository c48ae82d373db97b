package train

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
)

// TestTakeOfMost: peers whose digests agree keep their weights; else all take the weights of the first peer in the
// largest group that agrees, unless these are further apart than rounding explains.
func TestTakeOfMost(t *testing.T) {
	for _, c := range []struct {
		name    string
		digests string // a letter for each peer
		other   float32
		from    int
		refused bool
	}{
		{"alike", "aa", 1, -1, false},
		{"rounded apart", "ab", 1 + 1e-6, 0, false},
		{"most agree with the second", "abb", 1 + 1e-6, 1, false},
		{"far apart", "ab", 1.1, 0, true},
		{"not a number", "ab", float32(math.NaN()), 0, true},
	} {
		var digests [][]byte
		for _, d := range c.digests {
			digests = append(digests, []byte{byte(d)})
		}
		held := make([][][]float32, 2) // of two peers; a third one's digest is a vote only
		errs := eachOfTwo(func(rank int, g *comm.Group) error {
			held[rank] = [][]float32{{2, 3}, {[]float32{1, c.other}[rank]}}
			from, distance, err := TakeOfMost(t.Context(), g, digests, held[rank])
			if from != c.from || err == nil && (distance > 0) != (from >= 0 && rank != from) {
				t.Errorf("%s, peer %d: from %d, %g apart, want from %d", c.name, rank, from, distance, c.from)
			}
			return err
		})
		if c.refused {
			var fault *comm.PeerError
			if !errors.As(errs[1], &fault) || fault.Rank != c.from || held[1][0][0] != 2 {
				t.Errorf("%s: %v, want a fault of peer %d", c.name, errs[1], c.from)
			}
			continue
		}
		if errs[0] != nil || errs[1] != nil {
			t.Errorf("%s: %v", c.name, errs)
		}
		if must := []float32{1, c.other}; c.from >= 0 && (held[0][1][0] != must[c.from] ||
			!slices.Equal(held[0][1], held[1][1])) {
			t.Errorf("%s: weights are %v and %v, want those of peer %d", c.name, held[0], held[1], c.from)
		}
	}
}
