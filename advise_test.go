package heddle

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// TestAdvice: settings that are allowed but probably not meant are named before a run, and no others are.
func TestAdvice(t *testing.T) {
	classes := dataset.Sites(dataset.SitesConfig{Nodes: 300, Columns: 40}, rng.New(1))
	numbers := *classes
	numbers.Labels = graph.Labels{Classes: 1}
	for _, k := range classes.Labels.Class {
		numbers.Labels.Values = append(numbers.Labels.Values, float32(k))
	}
	bare := *classes
	bare.X = graph.Features{}
	const half, mixes, less = "keeps 20 components, half of the 40 columns", "mixes the features of a node",
		"with method: class-means it would send up to"
	for _, c := range []struct {
		given string
		g     *graph.Graph
		want  string // parts in order (empty = no advice)
	}{
		{"method: layer-wise; rounds: 1", classes, half},
		{"method: layer-wise; rounds: 5000", classes, half + "|" + less},
		{"method: layer-wise; rounds: 5000; encoder: pca:20", classes, less},
		{"method: layer-wise; rounds: 5; encoder: pca:20", classes, ""},
		{"method: layer-wise; encoder: pca:20; rounds: 5000; task: links", classes, ""},
		{"method: layer-wise; encoder: pca:20; rounds: 5000; peers: 1", classes, ""},
		{"method: full-batch", classes, ""},
		{"method: full-batch", &numbers, mixes + "|sage, sage-sum, sage-pool, gine keep"},
		{"method: full-batch; model: gin", &numbers, "model gin " + mixes},
		{"method: full-batch; residual: true", &numbers, ""},
		{"method: full-batch; model: sage", &numbers, ""},
		{"method: full-batch; task: links", &numbers, ""},
		{"", &numbers, ""},
		{"method: full-batch", &bare, "sums weights for 300 nodes|embedding:16"},
		{"method: full-batch; encoder: embedding:16", &bare, ""},
		{"method: full-batch; peers: 1", &bare, ""},
	} {
		p := read(t, strings.ReplaceAll(c.given, "; ", "\n"))
		if p.Peers == plan.AutoPeers {
			p.Peers = 3
		}
		shards, err := Split(c.g, p)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(disclosure.Advice(p, shards[0]), "\n")
		rest := got
		for part := range strings.SplitSeq(c.want, "|") {
			_, after, ok := strings.Cut(rest, part)
			if rest = after; !ok || c.want == "" && got != "" {
				t.Errorf("%q: advice %q, must have %q", c.given, got, c.want)
			}
		}
		if strings.Count(got, "\n") != strings.Count(c.want, half+"|") {
			t.Errorf("%q: advice is %q, must be of %q only", c.given, got, c.want)
		}
	}
}
