package cli

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// RunOfAll is in --json one of the runs of --seeds.
type RunOfAll struct {
	Seed    uint64   `json:"seed"`
	Split   int      `json:"split"`
	Test    *float64 `json:"test"`    // null: no test nodes
	Val     *float64 `json:"val"`     // null: no validation nodes
	Bytes   int64    `json:"bytes"`   // that all peers sent
	Seconds float64  `json:"seconds"` // of training, wall clock
	Chosen  bool     `json:"chosen"`  // the model and all other fields are of this run
}

// overRuns is a figure over the runs of --seeds.
type overRuns struct {
	Mean      *float64 `json:"mean"`
	Deviation *float64 `json:"deviation"` // between the runs
}

// over returns mean and sample deviation of what `of` returns; null if a run lacks it.
func over(runs []RunOfAll, of func(RunOfAll) *float64) (o overRuns) {
	var all []float64
	for _, r := range runs {
		x := of(r)
		if x == nil {
			return o
		}
		all = append(all, *x)
	}
	mean, deviation := Spread(all)
	return overRuns{Number(mean), Number(deviation)}
}

// Spread returns mean and sample deviation of x (NaN for one value). gonum/stat would add matrices to the program.
func Spread(x []float64) (mean, deviation float64) {
	n := float64(len(x))
	mean = floats.Sum(x) / n
	apart := slices.Clone(x)
	floats.AddConst(-mean, apart)
	return mean, floats.Norm(apart, 2) / math.Sqrt(n-1)
}

// runsOf adds the runs of --seeds to r; nothing for one.
func (r *ResultFile) runsOf(all []RunOfAll) {
	if len(all) < 2 {
		return
	}
	test, val := over(all, func(r RunOfAll) *float64 { return r.Test }), over(all,
		func(r RunOfAll) *float64 { return r.Val })
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

// Joined are the runs of a plan with several; nil for one.
func Joined(o *heddle.Result) (all []RunOfAll) {
	for _, r := range o.Runs {
		sum := r.Total()
		sent := sum.Total()
		if of := allBytesOf(r); of != nil {
			sent = of.Halo + of.Reduce + of.Control
		}
		all = append(all, RunOfAll{r.Plan.Seed, 0, Number(r.Test), Number(r.Val), sent, r.Seconds, r == o})
	}
	return all
}

// RunsTable is the runs of --seeds; nil for one.
func RunsTable(m eval.Metric, all []RunOfAll) *Table {
	if len(all) < 2 {
		return nil
	}
	metric := string(m)
	measure := func(x *float64) string {
		if x == nil {
			return "none"
		}
		return Measure(m, *x)
	}
	t := &Table{Name: "Runs", Head: []string{"seed", "split", "validation " + metric, "test " + metric, "sent by all",
		""}}
	for _, r := range all {
		remark := ""
		if r.Chosen {
			remark = "the model"
		}
		t.Add(r.Seed, r.Split, measure(r.Val), measure(r.Test), Bytes(r.Bytes), remark)
	}
	val, test := over(all, func(r RunOfAll) *float64 { return r.Val }), over(all,
		func(r RunOfAll) *float64 { return r.Test })
	t.Add("mean ± deviation", "", val.text(m), test.text(m), "", "")
	return t
}
