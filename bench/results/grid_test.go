package results

import (
	"slices"
	"testing"
)

func TestCombine(t *testing.T) {
	got := combine([]string{"a"}, []string{"", "b"}, []string{"c", "d"})
	if want := []string{"a c", "a d", "a b c", "a b d"}; !slices.Equal(got, want) {
		t.Errorf("must be %q (got %q)", want, got)
	}
}
