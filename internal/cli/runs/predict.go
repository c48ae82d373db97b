package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// question has the flags of heddle predict.
type question struct {
	cli.SiteFlags                       // with --plan
	model, data, shard, out, embeddings string
	nodes, known, edges                 []string // tables
	dates                               []string // columns
	report                              string   // HTML page (empty = none)
	split                               int
	cells                               table.Format
	launch                              cli.LaunchFlags // with --plan
}

func newPredict() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use: "predict --model FILE (--data D | --shard S [--plan P] | --nodes TABLE) (--out FILE | --embeddings " +
			"FILE)",
		Short: "Predict the classes of nodes with a trained model",
		Long: `Predict the classes of nodes with a trained model.

The CSV has one line per node: its ID, the class and
the probability of that class, its split and label if there are any, and the probability of every class. An --out that
ends in .npz or .parquet is written in that format. If test nodes have labels, the metric over them is printed. Nodes
that trained or chose the model, by predictions.npz in its folder, are marked in --out and not measured.

With --plan all members of a plan run this command with the same model file, each with its own part: they exchange
rows of boundary nodes once, under the same rules as in training, and each writes predictions for its own nodes,
computed with its neighbors at other peers. A site with a policy needs an approval of plan and model (heddle approve
--model). With --secret a scheduler starts them, as those of heddle join: {rank} in --out is a peer's rank, --shard
the whole partition.

With only --shard a peer predicts for its own nodes from its own rows and edges. With --nodes and --edges tables are
read like those that the model was trained on: those of new nodes, and with --known those of their neighbors. Without
--out, --embeddings writes only the nodes' last hidden rows; for a model of links these are what its decoder reads.`,
		Example: "  heddle predict --model runs/cora-class-means-1/model.safetensors --data data/cora --out " +
			"predictions.csv\n" +
			"  heddle predict --plan plan.yaml --model model.safetensors --shard parts/part-0 --out predictions.csv\n" +
			"  mpirun -n 4 heddle predict --plan plan.yaml --secret secret --model model.safetensors --shard parts " +
			"--out 'rank-{rank}.parquet'",
		RunE: func(c *cobra.Command, _ []string) error {
			text := cli.Text(c.OutOrStdout(), c.ErrOrStderr(), q.out, q.report)
			switch {
			case q.launch.Secret != "" && q.Plan == "":
				return cli.Invalidf("--secret requires --plan: peers that a scheduler starts predict together by " +
					"the settings of a plan")
			case q.Plan != "":
				return q.together(c.Context(), cli.NewWatch(c.ErrOrStderr(), false), c.OutOrStdout(), text)
			}
			return q.answer(c.OutOrStdout(), text)
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run")
	f.StringVar(&q.data, "data", "", "data set to predict for")
	f.IntVar(&q.split, "split", 0, "split of the data set")
	f.StringVar(&q.shard, "shard", "", "part to predict for, with or without --plan")
	f.StringArrayVar(&q.nodes, "nodes", nil, "table of nodes to predict for (may be repeated)")
	f.StringArrayVar(&q.known, "known", nil, "table of further nodes, which are only neighbors")
	f.StringArrayVar(&q.edges, "edges", nil, "table of edges (may be repeated)")
	cli.Reads(f, "model", "data", "shard", "nodes", "known", "edges")
	graphs.BindCells(f, &q.cells)
	graphs.BindDates(f, &q.dates)
	graphs.BindRows(f, &q.cells)
	f.StringVarP(&q.out, "out", "o", "", "CSV, .npz or .parquet file to write (- = standard output)")
	f.StringVar(&q.embeddings, "embeddings", "", cli.EmbeddingsHelp)
	f.StringVar(&q.report, "report", "", "HTML page about the predictions")
	q.Bind(f, "plan whose members predict together", "wait for the other peers, with --plan")
	q.BindGate(f)
	f.BoolVar(&q.Site.Network.LAN, "lan", false, "search the local network by mDNS, with --plan")
	f.StringVar(&q.Site.Network.Link, "link", "", cli.LinkHelp)
	q.launch.Bind(f)
	cli.Required(c, "model")
	cli.ShortHelp(c, "model", "data", "shard", "nodes", "edges", "known", "decimal-comma", "on-error", "plan",
		"identity", "roster", "policy", "approval", "report", "embeddings", "out")
	return c
}

// answer writes the predictions to files and messages to text.
func (q question) answer(stdout, text io.Writer) error {
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
	}
	of, err := q.graph(card, labelsOf(m, card), m.Spec.ReadsEdges(), text)
	if err != nil {
		return err
	}
	defer of.done()
	g := of.Graph
	if err := cmp.Or(q.alike(m, card, g), q.check(m)); err != nil {
		return err
	}
	if err := graphs.WriteSkipped(filepath.Dir(cmp.Or(q.out, q.embeddings)), q.cells.Faults); err != nil {
		return err
	}
	before, err := q.runNodes(g, card)
	if err != nil {
		return err
	}
	if q.out == "" {
		return q.embed(m, g, before, text)
	}
	p, err := heddle.Predict(m, g)
	if err != nil {
		return fmt.Errorf("%s: %w", q.model, err)
	}
	p = p.By(card)
	all := cli.NodePredictions{IDs: g.IDs, Labels: g.Labels, Predictions: p, Only: cli.TargetType(card.Encoding)}
	if q.embeddings != "" {
		if all.Hidden, err = heddle.Embed(m, g); err != nil {
			return fmt.Errorf("%s: %w", q.model, err)
		}
	}
	used := measured(&all, of, before)
	if err := q.writePredictions(stdout, card, all); err != nil {
		return err
	}
	count := all.Count()
	if filepath.Ext(q.out) == ".npz" { // arrays are of all nodes, whatever their type
		count = all.Predictions.Logits.Rows
	}
	fmt.Fprintf(text, "%s: %d nodes\n", q.out, count)
	if of.unseen != "" {
		fmt.Fprintln(text, of.unseen)
	}
	if p.Warning != "" && !before.strangers {
		fmt.Fprintf(text, "warning: %s\n", p.Warning)
		of.warnings = append(of.warnings, p.Warning)
	}
	score, nodes, err := p.Score(eval.Metric(card.Metric), g)
	if err != nil {
		return fmt.Errorf("%s: %w", q.model, err)
	}
	what := "test"
	if len(q.nodes) > 0 {
		what = "labelled" // tables have no split
	}
	if nodes > 0 {
		fmt.Fprintf(text, "%s %s: %s (%d nodes)\n", what, card.Metric, cli.Measure(eval.Metric(card.Metric), score),
			nodes)
	}
	page := q.page(g, m, card, all.Predictions, what+" nodes", score)
	page.Notes = of.warnings
	if used != "" && (nodes > 0 || before.unsure == "") {
		fmt.Fprintln(text, used)
		page.Notes = append(page.Notes, used)
	}
	if of.unseen != "" {
		page.Notes = append(page.Notes, "The predictions were made "+of.unseen+".")
	}
	return q.writeReport(stdout, text, page)
}

// labelsOf returns how data sets are read for m.
func labelsOf(m *nn.Model, card modelfile.Card) dataset.As {
	if m.Spec.Kind() == graph.Single {
		return dataset.As{Task: "classification", Classes: m.Spec.Classes, Names: card.Classes}
	}
	return dataset.As{Task: m.Spec.Task} // links and regression are tasks of data sets
}

// measured keeps for a figure the nodes whose label the model is not known to have had; with tables, also only the
// nodes of --nodes.
func measured(all *cli.NodePredictions, of subject, before runNodes) (used string) {
	g := of.Graph
	g.Split = slices.Clone(g.Split) // a part's splits cannot be written to
	used = before.mark(g.Split, of.predicted)
	all.Split = slices.Clone(g.Split)
	if of.predicted == 0 {
		return used
	}
	all.Predictions.Logits = all.Predictions.Logits.RowRange(0, of.predicted)
	if all.Hidden.Rows > 0 {
		all.Hidden = all.Hidden.RowRange(0, of.predicted)
	}
	for i := range g.Split {
		if all.Split[i] == graph.Test {
			all.Split[i] = graph.None // tables have none
		}
		if i >= of.predicted {
			g.Split[i] = graph.None
		}
	}
	return used
}

// runNodes are those nodes of a graph that a model's run had.
type runNodes struct {
	splits    map[int]graph.Split // that they had in the run
	strangers bool                // the run had no node of these names
	unsure    string              // why that is not known (empty = it is)
}

// runNodes finds the nodes of g that the model's run had. The run's predictions in the folder of the model have
// their names: the model has none.
func (q question) runNodes(g *graph.Graph, card modelfile.Card) (of runNodes, err error) {
	same := card.Dataset == g.Name && card.Nodes == int64(g.N())
	if g.IDs == nil && !same {
		return of, nil // another graph
	}
	path := filepath.Join(filepath.Dir(q.model), "predictions.npz")
	ids, splits, labels, err := readRun(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return of, cli.Invalidf("%s: %w", path, err)
	}
	if err != nil {
		of.unsure = "it is not known which nodes trained the model (" + path +
			" lists them): the figure may be too good"
		return of, nil
	}
	at := make(map[string]int, len(g.Split))
	for i := range g.Split {
		at[cli.NodePredictions{IDs: g.IDs}.Name(i)] = i
	}
	named := map[string]graph.Split{"train": graph.Train, "val": graph.Val, "test": graph.Test}
	before := cli.NodePredictions{IDs: ids, Only: cli.TargetType(card.Encoding)}
	of.strangers = true
	known, other := map[int]graph.Split{}, 0
	for k, id := range ids {
		i, ok := at[id]
		ok = ok && before.Predicts(k)
		of.strangers = of.strangers && !ok
		if !ok || named[splits[k]] == graph.None || g.Split[i] == graph.None {
			continue
		}
		label, is := cli.LabelOf(g.Labels, i, g.Labels.Names)
		if had, was := cli.LabelOf(labels, k, labels.Names); is && was && label != had {
			other++ // another node of that name
			continue
		}
		known[i] = named[splits[k]]
	}
	if 10*other <= len(known) {
		of.splits = known
	}
	return of, nil
}

// readRun reads the names, splits and labels of a run's nodes; there are no labels if they were numbers.
func readRun(path string) (ids, splits []string, labels graph.Labels, err error) {
	a, err := npy.Open(path)
	if err != nil {
		return nil, nil, labels, err
	}
	defer a.Close()
	if ids, _, err = npy.Texts(a, "id", -1); err == nil {
		splits, _, err = npy.Texts(a, "split", len(ids))
	}
	if err != nil || !a.Has("label") {
		return ids, splits, labels, err
	}
	if labels.Names, _, err = npy.Texts(a, "classes", -1); err != nil {
		return ids, splits, labels, err
	}
	labels.Classes = len(labels.Names)
	if h, fault := a.Header("label"); fault == nil && len(h.Shape) == 2 {
		labels.Bits, _, err = npy.Read[uint8](a, "label", len(ids), labels.Classes)
	} else {
		labels.Class, _, err = npy.Read[int32](a, "label", len(ids))
	}
	return ids, splits, labels, err
}

// mark gives the nodes of the run the split that they had then, and returns what to report. predicted is how many
// nodes of tables come first, which are predicted for (0 = no tables).
func (of runNodes) mark(split []graph.Split, predicted int) (used string) {
	marked := 0
	for i, had := range of.splits {
		if had != graph.Test && split[i] == graph.Test && (predicted == 0 || i < predicted) {
			marked++
		}
		split[i] = had
	}
	if marked == 0 {
		return of.unsure
	}
	return fmt.Sprintf("%d nodes trained or chose the model and are not in the figure: the column split marks them",
		marked)
}

// alike refuses data whose columns became other features than the model's.
func (q question) alike(m *nn.Model, card modelfile.Card, g *graph.Graph) error {
	if err := modelfile.SameColumns(m.Spec, card.Encoding, g.Encoding); err != nil {
		return cli.Invalidf("%s: %w (heddle import --like %s reads tables as the model does)",
			cmp.Or(q.data, q.shard, strings.Join(q.nodes, ", ")), err, q.model)
	}
	return nil
}

// embed writes only the hidden rows.
func (q question) embed(m *nn.Model, g *graph.Graph, before runNodes, text io.Writer) error {
	if q.embeddings == "" || q.report != "" {
		return cli.Invalidf("--out FILE or --embeddings FILE must be given")
	}
	hidden, err := heddle.Embed(m, g)
	if err == nil {
		err = cli.WriteEmbeddings(q.embeddings, []cli.NodePredictions{{IDs: g.IDs, Split: g.Split, Hidden: hidden}},
			report.Pages{})
	}
	if err == nil {
		_, err = fmt.Fprintf(text, "%s: %d nodes\n", q.embeddings, g.N())
	}
	if warning := m.Spec.Unlabelled(g.Labels, g.Split); warning != "" && !before.strangers {
		fmt.Fprintf(text, "warning: %s\n", warning)
	}
	return err
}

// check refuses --report for a model whose predictions have no page, and files that cannot be written, before anything
// is computed.
func (q question) check(m *nn.Model) (err error) {
	if q.report != "" && m.Spec.Kind() == graph.Numbers {
		err = cli.Invalidf("--report needs predictions of classes (got a numeric target): the file of " +
			"--out has them")
	}
	return errors.Join(err, cli.Writable(q.out), cli.Writable(q.report), cli.CheckEmbeddings(q.embeddings,
		report.Pages{}))
}

// page is the page of p for g. Its nodes with a label that training did not use have that name.
func (q question) page(
	g *graph.Graph, m *nn.Model, card modelfile.Card, p heddle.Predictions, knownAs string, score float64,
) report.Prediction {
	one := report.Prediction{Data: g.Name, File: filepath.Base(q.model), Model: "closed form", Card: card,
		Predictions: p,
		Labels:      g.Labels, KnownAs: knownAs, Score: score, Date: time.Now()}
	if m.Closed == nil {
		one.Model = m.Spec.Encoder.Kind // of a run that ended with its encoder
	}
	if len(m.Spec.Layers) > 0 {
		one.Model = m.Spec.Layers[0].Conv
	}
	if !math.IsNaN(score) {
		one.Known = g.InSplit(graph.Test)
	}
	return one
}

// writeReport writes the page to --report, if the flag is given.
func (q question) writeReport(stdout, text io.Writer, page report.Prediction) error {
	if q.report == "" {
		return nil
	}
	err := cli.WriteFile(stdout, q.report, func(w io.Writer) error { return report.WritePrediction(w, page) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(text, "report: %s\n", q.report)
	return err
}

// writePredictions writes predictions to --out, and hidden rows to --embeddings.
func (q question) writePredictions(stdout io.Writer, card modelfile.Card, of cli.NodePredictions) error {
	fill := cli.WriteCSV
	switch filepath.Ext(q.out) {
	case ".npz":
		fill = cli.WriteNPZ
	case ".parquet":
		fill = report.Pages{}.WriteParquet
	}
	all := []cli.NodePredictions{of}
	if err := cli.WriteFile(stdout, q.out, func(w io.Writer) error { return fill(w, card.Classes, all) }); err != nil {
		return err
	}
	return cli.WriteEmbeddings(q.embeddings, all, report.Pages{})
}

// subject is what is predicted for.
type subject struct {
	*graph.Graph
	unseen    string   // what of it the model cannot see (empty = nothing)
	warnings  []string // of its tables
	predicted int      // nodes of tables, behind which known ones follow (0 = no tables)
	done      func()   // ends the use of its arrays
}

// graph returns what to predict for, with labels of that kind, by a model that reads edges or none.
func (q question) graph(card modelfile.Card, as dataset.As, edges bool, text io.Writer) (of subject, err error) {
	given := 0
	for _, s := range []string{q.data, q.shard, strings.Join(q.nodes, "")} {
		if s != "" {
			given++
		}
	}
	of.done = func() {}
	switch {
	case given != 1:
		return of, cli.Invalidf("give one of --data D, --shard S and --nodes TABLE")
	case len(q.nodes) == 0 && len(q.known) > 0:
		return of, cli.Invalidf("--known must be given with --nodes (got %s)", strings.Join(q.known, ", "))
	case q.data != "":
		of.Graph, err = as.Read(q.data, q.split)
		return of, cli.Invalid(err)
	case len(q.nodes) > 0:
		err = q.readTables(&of, card, edges, text)
		return of, cli.Invalid(err)
	}
	s, closer, err := shard.ReadShard(q.shard)
	if err != nil {
		return of, cli.Invalid(err)
	}
	if edges && s.Halo() > 0 {
		of.unseen = fmt.Sprintf("without %d neighbours at other peers and the %d edges from them, which --plan sees",
			s.Halo(),
			across(s))
	}
	of.Graph, of.done = s.Alone(), func() { closer.Close() }
	return of, nil
}

// readTables reads the tables of nodes and edges as the model does.
func (q question) readTables(of *subject, card modelfile.Card, edges bool, text io.Writer) (err error) {
	switch {
	case card.Encoding == nil:
		return fmt.Errorf("%s was not trained on tables and cannot read %s: give --data", q.model, q.nodes[0])
	case typed.Encodes(card.Encoding):
		return fmt.Errorf("the model of %s reads tables of several types: make a data set of them with heddle import "+
			"--like %[1]s --nodes TYPE=FILE …, then give it by --data", q.model)
	case q.cells.Faults.Skip && q.out == "-":
		return errors.New("--on-error skip writes skipped.csv next to the file of --out, which must not be - " +
			"(standard output)")
	case edges && q.edges == nil:
		return fmt.Errorf("the model of %s reads the rows of neighbours: give --edges, if need be a table without "+
			"lines", q.model)
	}
	var f *table.Facts
	of.Graph, f, err = dataset.Encode(card.Encoding, slices.Concat(q.nodes, q.known), q.edges, q.dates, q.cells)
	if err != nil {
		return err
	}
	for k := range q.nodes {
		of.predicted += f.Tables[k].Rows
	}
	f.Warn() // of categories that the model does not know
	for k, warning := range f.Warnings {
		f.Warnings[k] = cli.Flags(warning)
		fmt.Fprintf(text, "warning: %s\n", f.Warnings[k])
	}
	if n := q.cells.Faults.Count(""); n > 0 {
		fmt.Fprintf(text, "skipped: %d rows at fault, in %s\n", n, filepath.Join(filepath.Dir(q.out),
			graphs.SkippedFile))
		for _, t := range f.Tables {
			t.PrintReasons(text)
		}
	}
	of.warnings = f.Warnings
	return nil
}

// across returns how many edges of a shard come from nodes of other peers.
func across(s *shard.Shard) (n int) {
	for _, j := range s.Adj.Col {
		if int(j) >= s.Owned {
			n++
		}
	}
	return n
}
