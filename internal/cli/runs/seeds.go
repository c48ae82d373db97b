package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"gonum.org/v1/gonum/stat"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// trained is a finished run of a job.
type trained struct {
	*heddle.Result
	plan   heddle.Plan
	source cli.Source
	shards []*shard.Shard
	closer io.Closer
}

// oneRun is in --json one of the runs of --seeds.
type oneRun struct {
	Seed    uint64   `json:"seed"`
	Split   int      `json:"split"`
	Test    *float64 `json:"test"` // null: no test nodes
	Val     *float64 `json:"val"`
	Bytes   int64    `json:"bytes"` // that all peers sent
	Seconds float64  `json:"seconds"`
	Chosen  bool     `json:"chosen"` // the model and all other fields are of this run
}

// overRuns is a figure over the runs of --seeds.
type overRuns struct {
	Mean      *float64 `json:"mean"`
	Deviation *float64 `json:"deviation"` // between the runs
}

// over returns mean and sample deviation of what of returns; null where a run lacks it.
func over(runs []oneRun, of func(oneRun) *float64) (o overRuns) {
	var all []float64
	for _, r := range runs {
		x := of(r)
		if x == nil {
			return o
		}
		all = append(all, *x)
	}
	o.Mean, o.Deviation = number(stat.Mean(all, nil)), number(stat.StdDev(all, nil))
	return o
}

// runsOf adds the runs of --seeds to r; nothing for one.
func (r *ResultFile) runsOf(all []oneRun) {
	if len(all) < 2 {
		return
	}
	test, val := over(all, func(r oneRun) *float64 { return r.Test }), over(all, func(r oneRun) *float64 { return r.Val })
	r.Runs, r.TestRuns, r.ValRuns = all, &test, &val
}

func (o overRuns) text(m eval.Metric) string {
	if o.Mean == nil || o.Deviation == nil {
		return "none"
	}
	if m.Plain() {
		return m.Text(*o.Mean) + " ± " + m.Text(*o.Deviation)
	}
	return fmt.Sprintf("%.2f ± %.2f %%", 100**o.Mean, 100**o.Deviation)
}

// several is how many splits the data have, of which each run takes the next.
func (j *job) several() (int, error) {
	if j.Seeds < 1 || j.Seeds > 1000 {
		return 0, cli.Invalidf("--seeds must be 1 to 1000 (got %d)", j.Seeds)
	}
	if j.Data == "" || j.Seeds == 1 {
		return 1, nil
	}
	n, err := dataset.Splits(j.Data)
	if err != nil {
		return 0, cli.Invalid(err)
	}
	if j.Split < 0 || j.Split >= n {
		return 0, cli.Invalidf("split must be 0 to %d (got %d of %d)", n-1, j.Split, n)
	}
	return n, nil
}

// open opens the data of run k, the first of which is 0.
func (j *job) open(k, splits int, event func(heddle.Event)) (*trained, error) {
	t := &trained{plan: *j.plan, source: j.Source}
	t.plan.Seed += uint64(k)
	if k > 0 && splits > 1 {
		t.source.Split = (j.Split + k) % splits
	}
	var err error
	if t.shards, t.closer, err = t.source.Open(&t.plan, event); err != nil {
		return nil, err
	}
	if err := t.plan.Check(t.shards); err != nil {
		return nil, errors.Join(cli.Invalid(err), t.closer.Close())
	}
	return t, nil
}

// stateOf is the directory of the checkpoints of run k.
func (j *job) stateOf(state string, k int) string {
	if j.Seeds == 1 {
		return state
	}
	return filepath.Join(state, fmt.Sprintf("seed-%d", j.plan.Seed+uint64(k)))
}

// runs trains first, whose data are open, and the runs after it. It returns the one that validates best, and closes the
// others; without validation nodes that is the first. What events go to besides w is over's.
func (j *job) runs(ctx context.Context, first *trained, splits int, state string, w *cli.Watch, over func(func(heddle.Event)) func(heddle.Event)) (best *trained, all []oneRun, err error) {
	one, chosen := first, 0
	for k := range j.Seeds {
		if k > 0 {
			if one, err = j.open(k, splits, func(heddle.Event) {}); err != nil {
				return best, nil, err
			}
		}
		event := w.Event
		if j.Seeds > 1 {
			event = w.Part(fmt.Sprintf("run %d of %d", k+1, j.Seeds))
		}
		local := heddle.Local{Plan: one.plan, Shards: one.shards, State: j.stateOf(state, k), OnEvent: over(event), Ledger: j.ledger, Init: j.init, Embed: j.embed}
		if one.Result, err = local.Train(ctx); err != nil {
			return best, nil, errors.Join(err, one.closer.Close())
		}
		sum := one.Total()
		all = append(all, oneRun{one.plan.Seed, one.source.Split, number(one.Test), number(one.Val), sum.Total(), one.Seconds, false})
		if best == nil || one.Metric.Gain(one.Val, best.Val) > 0 || math.IsNaN(best.Val) && !math.IsNaN(one.Val) {
			best, one = one, best
			chosen = k
		}
		if one != nil {
			if err := one.closer.Close(); err != nil {
				return best, nil, err
			}
		}
	}
	all[chosen].Chosen = true
	return best, all, nil
}

// joined are the runs of a plan with several; nil for one.
func joined(o *heddle.Result) (all []oneRun) {
	for _, r := range o.Runs {
		sum := r.Total()
		sent := sum.Total()
		if of := allBytesOf(r); of != nil {
			sent = of.Halo + of.Reduce + of.Control
		}
		all = append(all, oneRun{r.Plan.Seed, 0, number(r.Test), number(r.Val), sent, r.Seconds, r == o})
	}
	return all
}

// runsTable is the runs of --seeds; nil for one.
func runsTable(m eval.Metric, all []oneRun) *report.Table {
	if len(all) < 2 {
		return nil
	}
	metric := string(m)
	measure := func(x *float64) string {
		if x == nil {
			return "none"
		}
		return report.Measure(m, *x)
	}
	t := &report.Table{Name: "Runs", Head: []string{"seed", "split", "validation " + metric, "test " + metric, "sent by all", ""}}
	for _, r := range all {
		row := []string{fmt.Sprint(r.Seed), fmt.Sprint(r.Split), measure(r.Val), measure(r.Test), report.Bytes(r.Bytes), ""}
		if r.Chosen {
			row[5] = "the model"
		}
		t.Rows = append(t.Rows, row)
	}
	val, test := over(all, func(r oneRun) *float64 { return r.Val }), over(all, func(r oneRun) *float64 { return r.Test })
	t.Rows = append(t.Rows, []string{"mean ± deviation", "", val.text(m), test.text(m), "", ""})
	return t
}

// printRuns prints the runs of --seeds as a table; nothing for one.
func printRuns(w io.Writer, metric eval.Metric, all []oneRun) error {
	t := runsTable(metric, all)
	if t == nil {
		return nil
	}
	if err := t.Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "the model and what follows are of the run that validates best")
	return err
}
