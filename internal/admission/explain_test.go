package admission

import (
	"slices"
	"strings"
	"testing"
)

// TestTemplates: each template is a policy of ten lines with comments; in force as it is.
func TestTemplates(t *testing.T) {
	for _, name := range Templates {
		text := Template(name, "tumour-registry")
		p, err := parsePolicy([]byte(text))
		if err != nil || p.Federation != "tumour-registry" {
			t.Errorf("%s: %q, %v", name, p.Federation, err)
		}
		if n := strings.Count(text, "\n"); n != 10 || strings.Count(text, " # ") < 8 {
			t.Errorf("%s must have ten lines with comments (got %d):\n%s", name, n, text)
		}
	}
	if Template("clinic", "x") != "" {
		t.Error("there is no template of that name")
	}
}

// TestExplain: the explanation of a policy follows from Check: a bound is a refusal, its absence is left open.
func TestExplain(t *testing.T) {
	_, refuses, _ := policy(t).Explain()
	for _, want := range []string{"more layers than 2", "more bytes sent in one run than 100000",
		"fewer than 3 members, this one included", "sums that show the parts of fewer than 3 members",
		"plans without differential privacy of edges, or with an ε above 4", "more δ than 0.001",
		"training outside 20:00-06:30, 12:00-13:00, by this machine's clock"} {
		if !slices.Contains(refuses, want) {
			t.Errorf("%q must be refused: %q", want, refuses)
		}
	}
	p, err := parsePolicy([]byte("federation: x\nmethods: [class-means]\nmin_members: 2\nmin_members_in_sum: 2\n" +
		"categories: [ward]\nsite_figures: 30\n"))
	if err != nil {
		t.Fatal(err)
	}
	allows, refuses, open := p.Explain()
	for _, want := range []string{"rows of a node as float32, bf16, int8, int4",
		"heddle match sends texts that 10 nodes of this site have, of column ward",
		"this site publishes its own test metric, in whole percent, if 30 test nodes or more have labels"} {
		if !slices.Contains(allows, want) {
			t.Errorf("%q must be allowed: %q", want, allows)
		}
	}
	if !slices.Contains(refuses, "sums in the clear") || len(open) != 5 ||
		!strings.HasPrefix(open[4], "no limit of δ; ") {
		t.Errorf("refused %q, open %q", refuses, open)
	}
}
