package graphs

import (
	"fmt"
	"io"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
)

// writeParts writes a partition and describes it.
func writeParts(w io.Writer, out string, shards []*shard.Shard, meta shard.Meta) error {
	m, err := shard.WriteDir(out, shards, meta)
	if err == nil {
		describe(w, out, m)
	}
	return cli.Invalid(err)
}

// describe prints the quality of a partition.
func describe(w io.Writer, dir string, m *shard.Manifest) {
	r := partition.Measure(m)
	fmt.Fprintf(w, "%s: %s in %d parts by %s, seed %d\n", dir, m.Name, r.Parts, m.Policy, m.Seed)
	fmt.Fprintf(w, "  %d nodes, %d edges (%.1f %% cut), replication factor %.2f\n", r.Nodes, r.Edges/2,
		100*r.CutShare, r.Replication)
	fmt.Fprintf(w, "  slowest worker of a cluster: part-%d, with %.2f of the mean work\n", r.Slowest, r.WorkBalance)
	fmt.Fprintf(w, "  largest part over the mean: nodes %.2f, edges %.2f, training nodes %.2f, bytes of features "+
		"%.2f, halo %.2f\n", r.NodeBalance, r.EdgeBalance, r.TrainBalance, r.ByteBalance, r.HaloBalance)
	row := r.Halo * 4 * report.Width
	fmt.Fprintf(w, "  an exchange is %d rows; of %d columns layer by layer %s a layer, once; full-batch %s a layer "+
		"and epoch\n", r.Halo, report.Width, cli.Bytes(row), cli.Bytes(2*row))
	if p, q, most := r.Widest(); most > 0 {
		fmt.Fprintf(w, "  most between two parts: %d rows from part-%d to part-%d\n", most, p, q)
	}
	for i, p := range m.Parts {
		name := ""
		if i < len(m.Sites) {
			name = " " + m.Sites[i]
		}
		halo := 0
		for _, n := range p.Halo {
			halo += n
		}
		fmt.Fprintf(w, "  part-%d%s: %d nodes (%d train, %d val, %d test), %d halo rows\n", i, name, p.Owned, p.Train,
			p.Val, p.Test, halo)
	}
}

// timings prints the times of the phases.
func timings(w io.Writer, phases []external.PhaseTimes) {
	if len(phases) == 0 {
		return
	}
	for _, t := range phases {
		rate := ""
		if t.Edges > 0 {
			rate = fmt.Sprintf(", %.1f M edges/s", float64(t.Edges)/1e6/t.Seconds)
		}
		fmt.Fprintf(w, "  %s: %.1f s%s\n", t.Phase, t.Seconds, rate)
	}
	if peak := cli.PeakMemory(); peak > 0 {
		fmt.Fprintf(w, "  peak memory %s\n", cli.Bytes(peak))
	}
}

// printFacts writes what tables became, with the flags of heddle import.
func printFacts(w io.Writer, f *table.Facts) {
	var text strings.Builder
	f.Print(&text)
	io.WriteString(w, cli.Flags(text.String()))
}
