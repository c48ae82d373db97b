package attack

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// Recovery is what an attack got out of rows of features. A row is exact if the claim equals the victim's raw row in
// every column, except for its length and within rounding.
type Recovery struct {
	Tried int // rows that were attacked
	Exact int // rows that were recovered exactly

	Named, Values int // columns of stored values that are named (0 = they are not counted)
}

// Few is the number of values up to which enumeration finds a row from few measurements.
const Few = 5

func (r Recovery) String() string {
	if r.Tried < leastTried {
		return fmt.Sprintf("not measured: at least %d rows must be tried, in the time for it (got %d)",
			leastTried, r.Tried)
	}
	share := 100 * float64(r.Exact) / float64(r.Tried)
	text := fmt.Sprintf("an attacker recovers %d of %d rows exactly (%.0f %%)", r.Exact, r.Tried, share)
	if r.Values > 0 {
		text += fmt.Sprintf(", and names %.0f %% of the columns that all of them store",
			100*float64(r.Named)/float64(r.Values))
	}
	return text
}

// Name counts which columns of row i of x a guess names.
func (r *Recovery) Name(x graph.Features, i int32, guess Guess) {
	col, _ := NonZeros(x, i)
	r.Values += len(col)
	for _, j := range guess.Col {
		if slices.Contains(col, j) {
			r.Named++
		}
	}
}

// Score adds a guess of row i of x and reports whether it is exact.
func (r *Recovery) Score(x graph.Features, i int32, guess Guess) bool {
	col, val := NonZeros(x, i)
	right := slices.Equal(guess.Col, col) && proportional(guess.Value, val, min(max(1e-3, 2*guess.Miss), 0.05))
	r.Tried++
	if right {
		r.Exact++
	}
	return right
}

// NonZeros returns the columns and values of row i of x that are not 0.
func NonZeros(x graph.Features, i int32) (col []int32, val []float32) {
	if s := x.Sparse; s != nil {
		c, v := s.Row(int(i))
		for k, j := range c {
			if v[k] != 0 {
				col, val = append(col, j), append(val, v[k])
			}
		}
		return col, val
	}
	for j, v := range x.Dense.Row(int(i)) {
		if v != 0 {
			col, val = append(col, int32(j)), append(val, v)
		}
	}
	return col, val
}

// proportional reports whether two lists are multiples of one another, within a fraction of each number.
func proportional(a []float64, b []float32, within float64) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	ratio := a[0] / float64(b[0])
	for i, v := range a {
		if math.Abs(v-ratio*float64(b[i])) > within*math.Abs(v) {
			return false
		}
	}
	return true
}

// Sound is what is left of the measurements, by their length, below which a guess is right: float32 leaves
// less, and a wrong guess more.
const Sound = 1e-4

// Equal reports whether the values of a guess are the same, as in a bag of words.
func (g Guess) Equal() bool {
	if len(g.Value) == 0 {
		return false
	}
	return slices.Max(g.Value)-slices.Min(g.Value) <= 1e-2*slices.Max(g.Value)
}

// Evenly returns a guess of the same value in each column.
func Evenly(set []int32) Guess {
	g := Guess{Col: set, Value: make([]float64, len(set))}
	for i := range g.Value {
		g.Value[i] = 1
	}
	return g
}
