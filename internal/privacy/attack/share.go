package attack

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	"github.com/heddle-gnn/heddle/graph"
)

// Bags reports whether the values of each row of x that are not 0 are the same, as in bags of words.
func Bags(x graph.Features) bool {
	for i := range int32(x.Rows()) {
		if _, val := NonZeros(x, i); len(val) > 0 && !sameValue(val) {
			return false
		}
	}
	return true
}

// mostShared is up to how many columns Share is for: it takes the eigenvalues of their correlations.
const mostShared = 1024

// Share returns, in words, how much `numbers` numbers of each node reveal of its row of x at most. It is the fraction
// of the variance of the columns that a linear guess by them explains. No numbers, linear maps of the row or not, give
// a linear guess more than the principal components do. So the figure is an upper bound for any map that the sites
// agree on.
func Share(x graph.Features, numbers int) string {
	f, n := x.Cols(), float64(x.Rows())
	if f > mostShared || n < leastTried {
		return fmt.Sprintf("not measured: at least %d nodes, of at most %d columns, are needed (got %.0f of %d)",
			leastTried, mostShared, n, f)
	}
	sums, products := make([]float64, f), make([]float64, f*f)
	for i := range int32(x.Rows()) {
		col, val := NonZeros(x, i)
		for k, a := range col {
			sums[a] += float64(val[k])
			for l, b := range col {
				products[int(a)*f+int(b)] += float64(val[k]) * float64(val[l])
			}
		}
	}
	varies, deviation := 0, make([]float64, f)
	for a := range f {
		square := products[a*f+a] / n
		if v := square - sums[a]/n*(sums[a]/n); v > 1e-9*square {
			deviation[a], varies = math.Sqrt(v), varies+1
		}
	}
	for a := range f {
		for b := range f {
			if d := deviation[a] * deviation[b]; d > 0 {
				products[a*f+b] = (products[a*f+b]/n - sums[a]/n*(sums[b]/n)) / d
			} else {
				products[a*f+b] = 0
			}
		}
	}
	if numbers >= varies {
		return fmt.Sprintf("%d numbers of each node are mixes of its %d columns that vary: the row can be "+
			"computed from them", numbers, varies)
	}
	var impl lapackgonum.Implementation
	values, work := make([]float64, f), make([]float64, 1)
	impl.Dsyev(lapack.EVNone, blas.Upper, f, products, f, values, work, -1) // asks for the size of work
	work = make([]float64, int(work[0]))
	if !impl.Dsyev(lapack.EVNone, blas.Upper, f, products, f, values, work, len(work)) {
		return "not measured: no eigenvalues of the columns were found"
	}
	largest := 0.0
	for _, v := range values[f-numbers:] {
		largest += v
	}
	return fmt.Sprintf("%d numbers of each node are mixes of its %d columns that vary. "+
		"A linear guess by them explains\n  at most %.0f %% of the variance of the columns; of a single column it "+
		"can be all. Who knows all columns but one can compute that one",
		numbers, varies, math.Ceil(100*largest/float64(varies)))
}
