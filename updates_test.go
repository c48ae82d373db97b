package heddle

import (
	"math"
	"strings"
	"testing"
)

// TestNarrowUpdatesAreSummedAlike: with updates in fixed point a run has the same bits whether its sums are
// secure or in the clear, and over either transport.
func TestNarrowUpdatesAreSummedAlike(t *testing.T) {
	for _, updates := range []string{"updates: int16", "updates: int8; local_steps: 3", "updates: int4; local_steps: 3",
		"updates: auto"} {
		var first []float32
		for k, ways := range []string{"secure_sums: off; transport: memory", "secure_sums: on; transport: memory",
			"secure_sums: on; transport: libp2p"} {
			l := ofSites(t, 3, "")
			l.Plan = read(t, strings.ReplaceAll("method: layer-wise; rounds: 5; model: gcn; encoder: pca:8; "+
				"hidden: 12; sums: int16; rows: int8; "+updates+"; "+ways, "; ", "\n"))
			r, err := l.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all []float32
			for _, p := range r.Model.Params() {
				all = append(all, p.Value.Clone().Data...)
			}
			if k == 0 {
				first = all
			}
			apart := 0
			for i, v := range all {
				if math.Float32bits(v) != math.Float32bits(first[i]) {
					apart++
				}
			}
			if apart > 0 || len(all) != len(first) {
				t.Errorf("%s, %s: parameters must be those of sums in the clear (got %d of %d others)", updates, ways,
					apart, len(all))
			}
		}
	}
}
