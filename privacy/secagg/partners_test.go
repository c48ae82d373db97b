package secagg

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
)

// TestPartners: masks are shared by both or by neither, each member has as many partners as Partners
// says, other keys give other partners, and the honest members stay connected where a third collude.
func TestPartners(t *testing.T) {
	for _, n := range []int{2, 3, 50, 51, 64, 1000} {
		seen := sha256.Sum256([]byte(fmt.Sprint(n)))
		near := make(map[int][]int, n)
		for q := range n {
			near[q] = partners(n, q, seen[:])
			if len(near[q]) != Partners(n) {
				t.Fatalf("%d members: member %d must have %d partners (got %d)", n, q, Partners(n), len(near[q]))
			}
		}
		for q := range n {
			for _, p := range near[q] {
				if p == q || !slices.Contains(near[p], q) {
					t.Fatalf("%d members: %d and %d do not both share a mask", n, q, p)
				}
			}
		}
		if n > allPairs {
			other := sha256.Sum256([]byte("other"))
			if slices.Equal(near[0], partners(n, 0, other[:])) {
				t.Errorf("%d members: partners must depend on the keys", n)
			}
		}
		honest := func(q int) bool { return q%3 != 0 } // each third member colludes
		reached, queue := map[int]bool{1: true}, []int{1}
		for len(queue) > 0 && n > 2 {
			for _, p := range near[queue[0]] {
				if honest(p) && !reached[p] {
					reached[p], queue = true, append(queue, p)
				}
			}
			queue = queue[1:]
		}
		for q := range n {
			if n > 2 && honest(q) && !reached[q] {
				t.Errorf("%d members: honest member %d is cut off from the others", n, q)
			}
		}
	}
}
