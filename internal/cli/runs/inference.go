package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// together predicts with the other members of a plan.
func (q question) together(ctx context.Context, w *cli.Watch, stdout, text io.Writer) (err error) {
	if q.out == "" {
		return cli.Invalidf("with --plan --out must be given")
	}
	if q.data != "" || len(q.nodes) > 0 || q.shard == "" {
		return cli.Invalidf("with --plan each peer predicts for its own part: give --shard, and neither --data nor " +
			"--nodes")
	}
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
	}
	p, rank, err := q.SitAs(w, q.identify)
	if err != nil {
		return err
	}
	own, closer, err := cli.ReadParts(q.shard, len(p.Members))
	before := runNodes{}
	if err = errors.Join(err, q.check(m)); err == nil {
		before, err = q.runNodes(own.Alone(), card)
	}
	if err != nil {
		disclosure.Decline(ctx, *p, cli.SessionOf(q.Site))
	}
	if closer != nil {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	if err != nil {
		return err
	}
	q.Site.Shard = own
	out, err := heddle.Infer(ctx, *p, q.Site, m, card)
	if err != nil {
		return err
	}
	alone := own.Alone()
	alone.Split = slices.Clone(own.Split) // a part's splits cannot be written to
	used := before.mark(alone.Split, 0)
	of := cli.NodePredictions{Site: p.Members[rank].Name, IDs: own.IDs, Global: own.Global, Split: alone.Split,
		Labels: own.Labels, Predictions: out.Predictions, Hidden: out.Hidden, Only: cli.TargetType(own.Encoding)}
	if err := q.writePredictions(stdout, card, of); err != nil {
		return err
	}
	fmt.Fprintf(text, "%s: %d nodes, with %d neighbours at other peers and %d edges from them\n", q.out, own.Owned,
		own.Halo(),
		across(own))
	printSent(text, out.Sent)
	if out.Warning != "" && !before.strangers {
		fmt.Fprintf(text, "warning: %s\n", out.Warning)
	}
	score, notes, err := printScores(text, out, alone, before, used)
	if err != nil {
		return err
	}
	if q.report == "" {
		return nil
	}
	left, err := disclosure.OfModel(*p, m, card, own)
	if err != nil {
		return err
	}
	page := q.page(alone, m, card, out.Predictions, "test nodes", score)
	page.Notes = notes
	page.Together = &report.Together{Site: p.Members[rank].Name, Neighbours: own.Halo(), Edges: across(own),
		Inference: out,
		Left:      left}
	return q.writeReport(stdout, text, page)
}

// printScores prints the test figures of predictions that sites made together. It returns the figure of own nodes and
// the notes on it. used is a note on nodes that the model was trained on.
func printScores(
	text io.Writer, out *heddle.Inference, alone *graph.Graph, before runNodes, used string,
) (score float64, notes []string, err error) {
	score, nodes, err := out.Score(out.Metric, alone)
	if err != nil {
		return score, nil, err
	}
	if nodes > 0 {
		fmt.Fprintf(text, "test %s: %s of own nodes (%d)\n", out.Metric, cli.Measure(out.Metric, score), nodes)
	}
	if out.Tested > 0 {
		fmt.Fprintf(text, "test %s: %s of all peers' nodes (%d)\n", out.Metric,
			cli.Within(out.Metric, out.Test, out.Bound), out.Tested)
	}
	if used != "" && (nodes > 0 || before.unsure == "") {
		if before.unsure == "" && out.Tested > 0 {
			used += "; the figure of all peers has them"
		}
		notes = []string{used}
		fmt.Fprintln(text, used)
	}
	return score, notes, nil
}

// identify returns this peer's key. The ranks of a scheduler all have the same flags; each has its own parts and files.
func (q *question) identify(p *heddle.Plan) (own identity.Identity, err error) {
	own, rank, err := q.launch.Identify(&q.SiteFlags, p)
	if err != nil {
		return own, err
	}
	for _, path := range []*string{&q.out, &q.embeddings, &q.report} {
		if rank < 0 {
			break
		}
		if *path != "" && len(p.Members) > 1 && !strings.Contains(*path, "{rank}") {
			return own, cli.Invalidf("%s: each rank must have its own file: write {rank} in the name", *path)
		}
		*path = strings.ReplaceAll(*path, "{rank}", strconv.Itoa(rank))
	}
	q.shard, err = cli.LaunchedParts(q.shard, rank, len(p.Members))
	return own, err
}
