package minibatch

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/nn/optim"
)

// TestBF16: with rows of bf16 the products of training are rounded, and losses differ from float32's by at most 2⁻⁷,
// the step from one bfloat16 to the next. This is so for any number of peers: a peer also rounds the features that it
// sends.
func TestBF16(t *testing.T) {
	g := toy(160)
	for _, conv := range []string{"sage", "gcn", "gat"} {
		c := of(t, conv, g)
		c.Optimizer = optim.Config{Name: "sgd", LR: 0.05, Momentum: 0.9}
		exact := trained(t, c, cut(t, g, 1))[0].Result().Final()
		c.Rows.Values = "bf16"
		want := trained(t, c, cut(t, g, 1))[0].Result().Final()
		if want.Curve[0].Loss == exact.Curve[0].Loss {
			t.Errorf("%s: no product was rounded", conv)
		}
		for i, w := range want.Curve {
			within(t, fmt.Sprintf("%s, loss of round %d", conv, i), w.Loss, exact.Curve[i].Loss, 1./128)
		}
		for _, parts := range []int{2, 7} {
			for r, tr := range trained(t, c, cut(t, g, parts)) {
				got := tr.Result().Final()
				for i, w := range want.Curve {
					at := fmt.Sprintf("%s, peer %d of %d, round %d: ", conv, r, parts, i)
					within(t, at+"loss", got.Curve[i].Loss, w.Loss, 1./128)
					within(t, at+"validation loss", got.Curve[i].ValLoss, w.ValLoss, 1./128)
				}
			}
		}
	}
}
