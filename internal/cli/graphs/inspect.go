package graphs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/train"
)

func newInspect() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect PATH",
		Short: "Describe a data set, partition, part, run, model or checkpoint",
		Example: "  heddle inspect data/cora\n  heddle inspect parts\n  heddle inspect parts/part-0\n  heddle " +
			"inspect runs/cora-retexo-gcn-1/model.safetensors",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Invalid(inspect(c.OutOrStdout(), args[0]))
		},
	}
}

func inspect(w io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(path, name))
		return err == nil
	}
	switch {
	case info.IsDir() && has("manifest.json"):
		m, err := shard.ReadManifest(path)
		if err != nil {
			return err
		}
		describe(w, path, m)
		return imported(w, path)
	case info.IsDir() && has("model.safetensors"):
		return inspectModel(w, filepath.Join(path, "model.safetensors"))
	case info.IsDir() && has("graph.npz"), strings.HasSuffix(path, ".npz"), strings.HasSuffix(path, storedSuffix):
		return inspectData(w, path)
	case info.IsDir():
		return inspectState(w, path)
	case strings.HasSuffix(path, ".safetensors"):
		return inspectModel(w, path)
	case strings.HasPrefix(info.Name(), "part-"):
		return inspectShard(w, path)
	}
	return fmt.Errorf("%s must be a data set (directory, .npz or .graph), a partition, its part-N, a model "+
		"(.safetensors) or a directory of checkpoints", path)
}

func inspectData(w io.Writer, path string) error {
	g, err := dataset.Read(path, 0)
	if err != nil {
		return err
	}
	edges := fmt.Sprintf("%d undirected edges", g.Adj.NumEdges()/2)
	if !g.Adj.Symmetric() {
		edges = fmt.Sprintf("%d directed edges", g.Adj.NumEdges())
	}
	fmt.Fprintf(w, "%s: data set %s\n  %d nodes, %s\n", path, g.Name, g.N(), edges)
	printParts(w, g.Types, &g.Typed, g.EdgeX.Cols, g.X)
	labels(w, g.Labels, g.Split)
	if len(g.Sites) > 0 {
		fmt.Fprintf(w, "  %d sites: %s\n", len(g.Sites), strings.Join(g.Sites, ", "))
	}
	return imported(w, path)
}

// imported prints what became of the tables behind a data set or part, if it is known.
func imported(w io.Writer, dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	f, err := table.ReadFacts(dir)
	if f != nil {
		f.Print(w)
	}
	return err
}

// printParts prints the types of nodes, relations and columns of nodes and edges.
func printParts(w io.Writer, t graph.Types, typed *graph.Relations, edgeColumns int, x graph.Features) {
	var list []string
	for k, n := range t.Nodes() {
		text := fmt.Sprintf("%s (%d", t.Names[k], n)
		if t.Ptr != nil {
			lo, hi := t.Columns(k, x.Cols())
			text += fmt.Sprintf(", features %d", hi-lo)
		}
		list = append(list, text+")")
	}
	if len(list) > 0 {
		fmt.Fprintf(w, "  %d types (nodes of each): %s\n", t.Count(), strings.Join(list, ", "))
	}
	relations(w, typed)
	if edgeColumns > 0 {
		fmt.Fprintf(w, "  features of edges: %d\n", edgeColumns)
	}
	switch {
	case x.Cols() == 0:
		fmt.Fprintln(w, "  no features: training uses the numbers of the nodes")
	case x.Sparse != nil:
		fmt.Fprintf(w, "  %d features, sparse, %.2f %% filled\n", x.Cols(),
			100*float64(x.Sparse.NNZ())/max(1, float64(x.Rows())*float64(x.Cols())))
	default:
		fmt.Fprintf(w, "  %d features, dense\n", x.Cols())
	}
}

// relations prints the number of edges of each relation; of many, the first few.
func relations(w io.Writer, t *graph.Relations) {
	n := t.Count()
	if n == 0 {
		return
	}
	const shown = 12
	var list []string
	for k, name := range t.Names[:min(n, shown)] {
		rows := t.Adj.NumDst / n
		list = append(list, fmt.Sprintf("%s (%d)", name, t.Adj.RowPtr[(k+1)*rows]-t.Adj.RowPtr[k*rows]))
	}
	if n > shown {
		list = append(list, fmt.Sprintf("and %d more", n-shown))
	}
	fmt.Fprintf(w, "  %d relations (edges of each): %s\n", n, strings.Join(list, ", "))
}

func labels(w io.Writer, l graph.Labels, split []graph.Split) {
	kind := "one a node"
	what := "classes"
	if l.Kind() == graph.Numbers {
		what, kind = "targets", "numbers"
	}
	if l.Multi() {
		kind = "any number a node"
	}
	var n [graph.Test + 1]int
	for _, s := range split {
		n[s]++
	}
	fmt.Fprintf(w, "  %d %s (%s): %d training, %d validation, %d test nodes\n", l.Classes, what, kind, n[graph.Train],
		n[graph.Val], n[graph.Test])
}

func inspectShard(w io.Writer, path string) (err error) {
	s, closer, err := shard.ReadShard(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	fmt.Fprintf(w, "%s: part %d of %d of %s, partition %x\n  %d of %d nodes, %d edges into them, %d halo rows\n",
		path, s.Rank, s.Parts, s.Name, s.Fingerprint[:6], s.Owned, s.Nodes, s.Adj.NumEdges(), s.Halo())
	for q := range s.Parts {
		if q != s.Rank {
			fmt.Fprintf(w, "  peer %d: sends %d rows, receives %d\n", q, s.HaloPtr[q+1]-s.HaloPtr[q],
				len(s.Boundary[q]))
		}
	}
	printParts(w, s.Types, &s.Typed, s.EdgeX.Cols, s.X)
	labels(w, s.Labels, s.Split)
	if s.Import == nil {
		return imported(w, path)
	}
	f, err := table.ParseFacts(s.Import)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.Print(w)
	return nil
}

func inspectModel(w io.Writer, path string) error {
	m, card, err := modelfile.Read(path)
	if err != nil {
		return err
	}
	what, metric := "classes", eval.Metric(card.Metric)
	if m.Spec.Kind() == graph.Numbers {
		what = "targets"
	}
	fmt.Fprintf(w, "%s: model for %d features and %d %s (%s)\n", path, m.Spec.Features, m.Spec.Classes, what,
		m.Spec.Task)
	if len(card.Classes) > 0 {
		fmt.Fprintf(w, "  %s: %s\n", what, strings.Join(card.Classes, ", "))
	}
	for _, u := range m.Spec.Units {
		fmt.Fprintf(w, "  predicts in deviations of %g from a mean of %g\n", u.Deviation, u.Mean)
	}
	fmt.Fprintf(w, "  encoder %s: %d columns\n", m.Spec.Encoder.Kind, m.Spec.Encoder.Out)
	for k, l := range m.Spec.Layers {
		fmt.Fprintf(w, "  layer %d: %s %d → %d, %d hops\n", k+1, l.Conv, l.In, l.Out, max(1, l.Hops))
	}
	n := 0
	for _, p := range m.Params() {
		n += p.Value.Rows * p.Value.Cols
	}
	if card.Positive != "" {
		fmt.Fprintf(w, "  figures of one class: %s\n", card.Positive)
	}
	if card.Val == 0 { // as in a card without validation nodes, or whose AUC is undefined
		card.Val = math.NaN()
	}
	if card.Test == 0 {
		card.Test = math.NaN()
	}
	fmt.Fprintf(w, "  %d parameters\n  trained on %s (%d nodes) by %d peers, method %s, seed %d\n  %s: validation "+
		"%s, test %s\n",
		n, card.Dataset, card.Nodes, card.Peers, card.Method, card.Seed, card.Metric, cli.Measure(metric, card.Val),
		cli.Measure(metric, card.Test))
	if card.Privacy != nil {
		var s train.Privacy
		if err := json.Unmarshal(card.Privacy, &s); err != nil {
			return fmt.Errorf("%s: privacy of the card: %w", path, err)
		}
		fmt.Fprintf(w, "  keeps private: %s\n", s)
	}
	if card.Encoding != nil {
		fmt.Fprintln(w, "  reads tables: heddle predict --nodes and --edges")
	}
	return nil
}
