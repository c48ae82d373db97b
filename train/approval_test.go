package train_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/train"
)

// listed returns the group of one of two members. It may send two rounds of 3 columns of 5 rows, a sum of 4 numbers in
// one or two parts with 2 whole numbers, and one of 6 numbers in int8.
func listed(t *testing.T) *comm.Group {
	t.Helper()
	l := train.NewMessages(train.Members{Peers: 2, Nodes: 10})
	l.Send("rows", "columns", 2, 3, true, comm.Coding{})
	l.SumInParts("gradient", "gradients", 1, 2, 4, 2)
	l.Fixed("means", "means", 1, 6, 2, 0, 0, "int8")
	g := comm.NewGroup(netsim.New(2, netsim.Config{}).Transport(0), 0, 2)
	t.Cleanup(func() { g.Close() })
	g.Under(train.NewApproval([]int{0, 5}, []int{0, 7}, l))
	return g
}

// TestRefusedBeforeSent: what is not on the list, is wider, in a wider format or comes too often is refused by name,
// and nothing of it is sent.
func TestRefusedBeforeSent(t *testing.T) {
	sum := func(kind string, numbers, counts, bits int) *comm.Contribution {
		return &comm.Contribution{ID: comm.ReduceID{Kind: kind}, Update: make([]float32, numbers),
			Counts: make([]int64, counts), Bits: bits}
	}
	for name, test := range map[string]struct {
		send func(*comm.Group) error
		want string
	}{
		"a column more": {func(g *comm.Group) error {
			return g.Exchange(t.Context(), comm.Halo, "rows", [][]float32{nil, make([]float32, 5*4)},
				make([][]float32, 2))
		}, `rows "rows" must be as on the list`},
		"rows of components": {func(g *comm.Group) error {
			_, err := g.SendRecv(t.Context(), comm.Halo, "components", [][]byte{nil, {1}}, 10)
			return err
		}, `rows "components" must be on the list`},
		"a stream": {func(g *comm.Group) error {
			_, err := g.Stream(t.Context(), comm.Halo, "components",
				comm.Lane{Out: []int{0, 8}, In: []int{0, 0}, Unit: 4})
			return err
		}, `rows "components" must be on the list`},
		"an unknown sum": {func(g *comm.Group) error {
			_, err := g.Reduce(t.Context(), sum("secret", 1, 0, 0))
			return err
		}, `sum "secret" must be on the list`},
		"a number more": {func(g *comm.Group) error {
			_, err := g.Reduce(t.Context(), sum("gradient", 5, 0, 0))
			return err
		}, `(got 5 numbers of float32 and 0 whole numbers)`},
		"a whole number more": {func(g *comm.Group) error {
			_, err := g.Reduce(t.Context(), sum("gradient", 4, 3, 0))
			return err
		}, `(got 4 numbers of float32 and 3 whole numbers)`},
		"a wider format": {func(g *comm.Group) error {
			_, err := g.Reduce(t.Context(), sum("means", 6, 0, 0))
			return err
		}, `sum "means" must be as on the list`},
		"by a second group": {func(g *comm.Group) error {
			_, err := g.Dup().Reduce(t.Context(), sum("secret", 1, 0, 0))
			return err
		}, `sum "secret" must be on the list`},
	} {
		g := listed(t)
		err := test.send(g)
		if !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.want) || g.Bytes().Total() > 0 {
			t.Errorf("%s: %v, %d bytes sent; must be refused with %q", name, err, g.Bytes().Total(), test.want)
		}
	}
}

// TestFewerBits: labels of all sites may show that fewer bits are enough.
func TestFewerBits(t *testing.T) {
	l := train.NewMessages(train.Members{Peers: 2})
	l.Fixed("means", "means", 1, 6, 2, 0, 0, "int16")
	for bits, fits := range map[int]bool{0: false, 8: true, 16: true, 32: false} {
		a := train.NewApproval([]int{0, 0}, []int{0, 0}, l)
		c := &comm.Contribution{ID: comm.ReduceID{Kind: "means"}, Update: make([]float32, 6), Bits: bits}
		if err := a.Sum(c); (err == nil) != fits {
			t.Errorf("%d bits (0 = float32) of 16: %v", bits, err)
		}
	}
}

// TestRefusedTooOften: each time counts, and the parts of a sum together are no longer than it.
func TestRefusedTooOften(t *testing.T) {
	l := train.NewMessages(train.Members{Peers: 2, Nodes: 10})
	l.Send("rows", "columns", 2, 3, true, comm.Coding{})
	l.SumInParts("gradient", "gradients", 1, 2, 4, 2)
	a := train.NewApproval([]int{0, 5}, []int{0, 7}, l)
	rows := func() error { return a.Rows(comm.Halo, "rows", func(q int) int { return 5 * 3 * 4 * q }) }
	part := func(n int) error {
		return a.Sum(&comm.Contribution{ID: comm.ReduceID{Kind: "gradient"}, Update: make([]float32, n)})
	}
	if err := errors.Join(rows(), rows(), part(3), part(1)); err != nil {
		t.Errorf("two rounds of rows and two parts of a sum are on the list: %v", err)
	}
	if rows() == nil || part(0) == nil {
		t.Error("a third round and a third part must be refused")
	}
	b := train.NewApproval([]int{0, 5}, []int{0, 7}, l)
	long := func() error {
		return b.Sum(&comm.Contribution{ID: comm.ReduceID{Kind: "gradient"}, Update: make([]float32, 3)})
	}
	if long() != nil || long() == nil {
		t.Error("two parts of 3 numbers are more than a sum of 4")
	}
}

// TestOneListOfSeveral: if several lists may be sent, what was sent decides which it is.
func TestOneListOfSeveral(t *testing.T) {
	wide, long := train.NewMessages(train.Members{Peers: 2}), train.NewMessages(train.Members{Peers: 2})
	wide.Sum("means", "", 1, 8, 0)
	long.Sum("means", "", 2, 4, 0)
	a := train.NewApproval([]int{0, 0}, []int{0, 0}, wide, long)
	sum := func(n int) error {
		return a.Sum(&comm.Contribution{ID: comm.ReduceID{Kind: "means"}, Update: make([]float32, n)})
	}
	if err := sum(8); err != nil {
		t.Error(err)
	}
	if sum(4) == nil {
		t.Error("after a wide sum only the list with the wide one is left")
	}
}
