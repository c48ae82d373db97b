package train

import "fmt"

// Privacy is what a run kept private, as it is stated in its result, its model card and its ledger.
type Privacy struct {
	Unit      string  `json:"unit"` // "edge"
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	Mechanism string  `json:"mechanism"`
	Releases  int     `json:"releases"`          // sums that were released
	Numbers   float64 `json:"numbers,omitempty"` // with unit "run": that rows had of a node, in all of them
	Noise     float64 `json:"noise"`             // deviation of each number of a sum, of rows of length 1
	Mu        float64 `json:"mu"`                // of μ-Gaussian differential privacy
}

// String returns the statement in words.
func (s Privacy) String() string {
	return fmt.Sprintf("%ss, ε %g at δ %g: %d %s of deviation %.3g, where a row has length 1", s.Unit, s.Epsilon,
		s.Delta, s.Releases, s.Mechanism, s.Noise)
}
