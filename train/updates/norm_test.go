package updates

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// others is a sum with an update of others over so many labels.
type others struct {
	update []float32
	labels float64
	meta   string
}

func (o others) Reduce(_ context.Context, c *comm.Contribution) (comm.Reduced, error) {
	for i := range c.Update {
		c.Update[i] += o.update[i]
	}
	eval.PutReal(c.Counts[eval.RealLen:], eval.Real(c.Counts[eval.RealLen:])+o.labels)
	return comm.Reduced{Meta: [][]byte{c.Meta, []byte(o.meta)}}, nil
}

// TestNorm: an own update is made as short as its labels allow, and a sum that is longer than those of the others allow is
// refused, unless members differ.
func TestNorm(t *testing.T) {
	for _, test := range []struct {
		own    []float32
		from   others
		want   []float32
		refuse string
	}{
		{[]float32{0.3, 0.4}, others{[]float32{0, 1}, 10, "same"}, []float32{0.3, 1.4}, ""},
		{[]float32{30, 40}, others{[]float32{0, 0}, 10, "same"}, []float32{0.6, 0.8}, ""}, // 10 labels of 0.1
		{[]float32{30, 40}, others{[]float32{-0.6, -0.8}, 10, "same"}, []float32{0, 0}, ""},
		{[]float32{0, 0}, others{[]float32{0, 1.1}, 10, "same"}, nil, "must be at most 1 long (got 1.1)"},
		{[]float32{0, 0}, others{[]float32{0, 0.1}, 0, "same"}, nil, "must be at most 0 long (got 0.1)"},
		{[]float32{0, 0}, others{[]float32{0, 1.1}, 10, "else"}, []float32{0, 1.1}, ""},
	} {
		c := &comm.Contribution{Update: slices.Clone(test.own), Counts: make([]int64, 2*eval.RealLen), Meta: []byte("same"), Common: 4}
		eval.PutReal(c.Counts[eval.RealLen:], 10)
		_, err := Norm{Reducer: test.from, Most: 0.1, Rest: 30}.Reduce(t.Context(), c)
		if test.refuse != "" {
			if !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.refuse) {
				t.Errorf("%v and %v: must be refused since %q (got %v)", test.own, test.from, test.refuse, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range c.Update {
			if math.Abs(float64(v-test.want[i])) > 1e-6 {
				t.Errorf("%v and %v: the sum must be %v (got %v)", test.own, test.from, test.want, c.Update)
			}
		}
		if l := c.UpdateLimit(0); l.Most < 3 || l.Most > 3.001 || l.Least != -l.Most {
			t.Errorf("the limit of a number must be -3 to 3 (got %g to %g)", l.Least, l.Most)
		}
	}
}
