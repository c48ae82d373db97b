package report

import (
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/internal/svg"
)

// Width is the number of columns for which the bytes of an exchange are estimated, the width of a usual hidden layer.
const Width = 64

// WritePartition writes the quality of a partition: balance, the rows between each pair of parts as a picture and in
// numbers, and, if known, the times of the phases and the peak of the memory (0 = unknown).
func WritePartition(w io.Writer, m *shard.Manifest, phases []external.PhaseTimes, memory int64) error {
	r := partition.Measure(m)
	facts := []Fact{
		{"nodes", fmt.Sprint(r.Nodes)}, {"edges", fmt.Sprint(r.Edges / 2)}, {"edges cut", cli.Percent(r.CutShare)},
		{"replication factor", fmt.Sprintf("%.2f", r.Replication)}, {"rows of an exchange", fmt.Sprint(r.Halo)},
	}
	if memory > 0 {
		facts = append(facts, Fact{"peak memory", cli.Bytes(memory)})
	}
	balance := cli.Table{Name: "Balance", Head: []string{"largest part over the mean", "ratio"}}
	for k, name := range []string{"work", "nodes", "edges", "training nodes", "bytes of features", "halo rows"} {
		ratio := [...]float64{r.WorkBalance, r.NodeBalance, r.EdgeBalance, r.TrainBalance, r.ByteBalance,
			r.HaloBalance}[k]
		balance.Add(name, fmt.Sprintf("%.3f", ratio))
	}
	exchange := cli.Table{Name: "Bytes of an exchange", Head: []string{"sent", "bytes"}}
	exchange.Add("layer by layer: a layer, once", cli.Bytes(r.Halo*4*Width))
	exchange.Add("full-batch: a layer and epoch, forward and back", cli.Bytes(2*r.Halo*4*Width))
	parts := cli.Table{Name: "Parts",
		Head: []string{"part", "nodes", "edges", "cut", "train", "val", "test", "features", "halo rows"}}
	for k, p := range m.Parts {
		name, halo := fmt.Sprint(k), 0
		if k < len(m.Sites) {
			name += " " + m.Sites[k]
		}
		for _, n := range p.Halo {
			halo += n
		}
		parts.Add(name, p.Owned, p.Edges, p.Cut, p.Train, p.Val, p.Test, cli.Bytes(p.Bytes), halo)
	}
	tables := []cli.Table{balance, exchange, parts}
	if len(r.Rows) <= 32 { // beyond that the picture is enough
		pairs := cli.Table{Name: "Rows between parts", Head: []string{"rows from part, to"}}
		for p, to := range r.Rows {
			pairs.Head = append(pairs.Head, fmt.Sprint(p))
			line := []any{p}
			for _, n := range to {
				line = append(line, n)
			}
			pairs.Add(line...)
		}
		tables = append(tables, pairs)
	}
	if len(phases) > 0 {
		took := cli.Table{Name: "Time by phase", Head: []string{"phase", "seconds", "million edges a second"}}
		for _, t := range phases {
			rate := "–"
			if t.Edges > 0 && t.Seconds > 0 {
				rate = fmt.Sprintf("%.1f", float64(t.Edges)/1e6/t.Seconds)
			}
			took.Add(t.Phase, fmt.Sprintf("%.1f", t.Seconds), rate)
		}
		tables = append(tables, took)
	}
	return Page{Title: fmt.Sprintf("%s in %d parts by %s, seed %d", m.Name, r.Parts, m.Policy, m.Seed), Facts: facts,
		Sections: []Section{{Charts: rowMatrix(r.Rows), Tables: tables,
			Foot: "Bytes are estimated for rows of 64 columns of 4 bytes."}}}.Write(w)
}

// rowMatrix draws the rows that each part sends to each other, dark for many; nil if none are sent.
func rowMatrix(rows [][]int64) []Chart {
	most := int64(0)
	for _, to := range rows {
		for _, n := range to {
			most = max(most, n)
		}
	}
	if most == 0 {
		return nil
	}
	p := newPlot("to part", "from part")
	p.Width, p.Height = 1.2*height, 1.2*height
	last, step := len(rows)-1, (len(rows)+15)/16
	for k, to := range rows {
		for q, n := range to {
			p.Cell(palette[0], 0.03+0.97*float64(n)/float64(most), svg.Point{X: float64(q), Y: float64(last - k)})
		}
		if k%step == 0 {
			p.X.Ticks = append(p.X.Ticks, svg.Tick{Value: float64(k), Text: fmt.Sprint(k)})
			p.Y.Ticks = append(p.Y.Ticks, svg.Tick{Value: float64(last - k), Text: fmt.Sprint(k)})
		}
	}
	return chartOf(p, fmt.Sprintf("Rows that one part sends to another in an exchange: %d at most, of %d parts; the "+
		"tables have "+
		"the numbers", most, len(rows)), "Rows that one part sends to another in an exchange; stronger color is more.")
}
