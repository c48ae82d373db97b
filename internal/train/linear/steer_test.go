package linear

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// steering adds to the sums of Components the products of a Gram matrix that no rows can produce, within the bound for
// its number of rows: each of its leading eigenvectors has a few columns of the table, weighed by powers of 2, so that
// a row's projection on it reveals all of them.
type steering struct {
	comm.Reducer
	k    int
	rows float64
	q    mat.Dense
	t    testing.TB
}

// columnsEach is how many columns are packed into a component.
const columnsEach = 11

// gram returns GQ.
func (s *steering) gram() mat.Dense {
	y := mat.New(s.q.Rows, s.q.Cols)
	for m := range s.k {
		length := 0.0
		for b := range columnsEach {
			length += math.Exp2(-2 * float64(b))
		}
		value := s.rows / float64(s.k) * (1 + 0.01*float64(s.k-m)) / length
		for c := range y.Cols {
			dot := 0.0
			for b := range columnsEach {
				dot += math.Exp2(-float64(b)) * float64(s.q.At((m*columnsEach+b)%y.Rows, c))
			}
			for b := range columnsEach {
				j := (m*columnsEach + b) % y.Rows
				y.Set(j, c, y.At(j, c)+float32(value*dot*math.Exp2(-float64(b))))
			}
		}
	}
	return y
}

func (s *steering) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	y := s.gram()
	if len(c.Update) != len(y.Data) { // QᵀGQ
		for a := range y.Cols {
			for b := range y.Cols {
				for j := range y.Rows {
					c.Update[a*y.Cols+b] += s.q.At(j, a) * y.At(j, b)
				}
			}
		}
		return s.Reducer.Reduce(ctx, c)
	}
	for i, v := range y.Data {
		c.Update[i] += v
	}
	r, err := s.Reducer.Reduce(ctx, c)
	if err == nil {
		s.q = mat.View(y.Rows, y.Cols, slices.Clone(c.Update))
		err = orthonormalise(ctx, s.q)
	}
	return r, err
}

// componentsOf returns each peer's error of Components; peer of[i] has row i of x. The last peer announces more rows
// than it has, and steers with them.
func componentsOf(t testing.TB, x graph.Features, of func(i int) int, peers, k int, more, steer float64) []error {
	key, net, errs, done := rng.New(3), netsim.New(peers, netsim.Config{}), make([]error, peers), make(chan bool)
	rows := make([][]int32, peers)
	for i := range x.Rows() {
		rows[of(i)] = append(rows[of(i)], int32(i))
	}
	for r := range peers {
		go func() {
			defer func() { done <- true }()
			g := comm.NewGroup(net.Transport(r), r, peers)
			var red comm.Reducer = g
			own, others := x.Select(rows[r]), float64(x.Rows()-len(rows[r]))+more
			if r == peers-1 && steer > 0 {
				s := &steering{g, k, steer, mat.New(x.Cols(), min(k+oversample, x.Cols())), t}
				for i := range s.q.Data {
					s.q.Data[i] = float32(key.Normal(uint64(i)))
				}
				red, own = s, x.Select(nil)
			}
			_, err := Components(t.Context(), red, comm.ReduceID{Kind: "products"}, own, others, k, 1, 0, key)
			errs[r] = g.Refuse(t.Context(), err)
			if err == nil {
				errs[r] = g.Barrier(t.Context())
			}
		}()
	}
	for range peers {
		<-done
	}
	return errs
}

func features(t testing.TB, name string) *graph.Graph {
	g, err := dataset.Read(testenv.DataDir(t, name), 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSteeredComponents: one peer of four that makes its sums 10⁹ times larger, so that each component shows eleven
// columns, is refused by its name, and so is their sum if it is larger than all rows; one that has enough rows for it
// is noticed by what the components are. Rows as they are pass, also where a peer has all nodes of a class.
func TestSteeredComponents(t *testing.T) {
	g := features(t, "cora")
	evenly := func(i int) int { return i % 4 }
	byClass := func(i int) int { return int(g.Labels.Class[i]) % 4 }
	for _, test := range []struct {
		of          func(int) int
		k           int
		more, steer float64
		want        string
	}{
		{evenly, 128, 0, 1e9, "a product with the Gram matrix must be"},
		{evenly, 128, 0, 4e3, "the trace of the projected Gram matrix of the other peers must be at most"},
		{evenly, 32, 2e5, 1e5, "the components must keep"},
		{evenly, 128, 0, 0, ""},
		{byClass, 128, 0, 0, ""},
		{byClass, 16, 0, 0, ""},
	} {
		for r, err := range componentsOf(t, g.X, test.of, 4, test.k, test.more, test.steer) {
			var at *comm.PeerError
			switch named := errors.As(err, &at); {
			case test.want == "" && err == nil, r == 3 && test.want != "":
			case test.want == "" || !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), test.want):
				t.Errorf("pca:%d, %g rows: peer %d must be refused by %q (got %v)", test.k, test.steer, r, test.want,
					err)
			case test.steer == 1e9 && (!named || at.Rank != 3):
				t.Errorf("pca:%d: peer %d must name peer 3 (got %v)", test.k, r, err)
			}
		}
	}
}

// TestComponentsAreNoAlarm: rows as they are pass where a few hundred are among thousands, and where peers have blocks
// of a graph of several types. The long form tries many components, too, which take a second each.
func TestComponentsAreNoAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	numbers := []int{16}
	if testenv.LongForm(t) {
		numbers = append(numbers, 128)
	}
	for _, name := range []string{"imdb", "chameleon-filtered"} {
		g := features(t, name)
		for how, of := range map[string]func(i int) int{
			"in blocks": func(i int) int { return i * 8 / g.N() },
			"few":       func(i int) int { return max(0, 7-i/260) },
		} {
			for _, k := range numbers {
				if err := errors.Join(componentsOf(t, g.X, of, 8, k, 0, 0)...); err != nil {
					t.Errorf("%s, %s, pca:%d: %v", name, how, k, err)
				}
			}
		}
	}
}
