package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train/figures"
)

// fewCases is how many cases of a class there must be for figures of it to be more than chance.
const fewCases = 10

// inUse is for a person who acts on predictions, as a doctor: what they are good for, how many of 100 cases the model
// finds, how many of 100 alarms are right, and on which cases that was measured. nodes is what over is of.
func (r runPage) inUse(f *figures.Figures, over figures.Set, nodes string) Section {
	s := Section{Title: "Using the model", Foot: "Intervals of 95 % are for the choice of the measured cases, not " +
		"for other sites or later years."}
	note := func(format string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(format, args...)) }
	beats, whose, how := f.BeatsBaseline(), "at all sites", "which training did not use"
	if r.parts() == 1 {
		whose = "in the data"
	}
	if f.Test.Rows == 0 {
		how = "which chose the model: other cases have lower figures"
	}
	note("A case is a row of the table of nodes. What follows was measured on %d %s %s, %s.", over.Rows, nodes, whose,
		how)
	switch {
	case over.Targets != nil:
		for _, one := range over.Targets {
			note("Its prediction of %s is off by %s on average; always predicting the mean is off by %s.", one.Name,
				cli.Measure("mae", float64(one.MAE)), cli.Measure("mae", float64(one.BaselineMAE)))
		}
	case f.Positive >= 0:
		c, at := over.Classes[f.Positive], "if that is the more probable of the two classes"
		if h := f.Threshold; h != nil {
			at = fmt.Sprintf("if its probability is %.1f %% or more, a threshold that the validation nodes chose for "+
				"%s", 100*h.Probability, h.Goal)
			if !h.Reached {
				at += ", and that is only as near as they come"
			}
		}
		note("It raises an alarm for class %s %s. Of 100 cases %s get one.", c.Name, at,
			of100(c.Predicted, over.Rows, false))
		note("Of 100 cases of class %s it finds %s. Of 100 alarms %s are right; the others are false.", c.Name,
			of100(found(c), c.Labelled, true), of100(found(c), c.Predicted, true))
		if c.Labelled < fewCases {
			note("Only %d cases of class %s were measured, too few to rely on these figures.", c.Labelled, c.Name)
		}
	case f.Majority >= 0:
		right, least := int64(0), over.Classes[0]
		for _, c := range over.Classes {
			right += found(c)
			if c.Recall < least.Recall || least.Labelled == 0 {
				least = c
			}
		}
		note("Of 100 cases it names the right class of %s. It finds the fewest of class %s: %s of 100.",
			of100(right, over.Rows, true), least.Name, of100(found(least), least.Labelled, true))
	}
	if beats {
		note("Use it to choose the cases that a person looks at first, at these sites and for cases like theirs.")
	} else {
		note("Do not use it: its %s is not shown to be better than the %s of a guess that knows no case.", r.metric(),
			cli.Measure(f.Metric, float64(over.Baseline)))
	}
	never := "Do not use it to decide about a case without a person, to find the cause of an outcome, or at another " +
		"site before its cases are measured."
	if len(f.Untrained) > 0 {
		never += " It cannot find class " + strings.Join(f.Untrained, ", ") + ", which no training case has."
	}
	note("%s", never)
	if f.By != "" {
		s.add(f, "at all sites", f.Groups)
		for _, one := range f.Sites {
			if len(f.Sites) == 1 && r.parts() > 1 {
				s.add(f, "at "+r.site(r.Shards[0].Rank), one.Groups)
			}
		}
		note("The table by %s has values that %d test nodes of a site have, at three sites or more; all others are "+
			"counted together.", f.By, fewCases)
	}
	return s
}

// found is how many cases of a class are named so.
func found(c figures.Class) int64 {
	if c.Labelled == 0 {
		return 0
	}
	return int64(math.Round(float64(c.Recall) * float64(c.Labelled)))
}

// add adds the figures of groups, which are the test nodes by a column.
func (s *Section) add(f *figures.Figures, whose string, groups []figures.Group) {
	t := cli.Table{Name: fmt.Sprintf("By %s, %s", f.By, whose), Head: []string{f.By + ", " + whose, "test nodes",
		"right, of 100"}}
	name := "right"
	if f.Positive >= 0 {
		name = "found of class " + f.PositiveName()
		t.Head = append(t.Head, "of class "+f.PositiveName(), "found, of 100", "alarms", "right alarms, of 100")
	}
	var bars []Bar
	for _, g := range groups {
		right, of := g.Right, g.Rows
		cells := []any{g.Name, g.Rows, of100(g.Right, g.Rows, true)}
		if f.Positive >= 0 {
			right, of = g.Found, g.Positives
			cells = append(cells, g.Positives, of100(g.Found, g.Positives, true), g.Alarms,
				of100(g.Found, g.Alarms, true))
		}
		t.Add(cells...)
		if of > 0 {
			low, high := wilson(right, of)
			bars = append(bars, Bar{g.Name, float64(right) / float64(of), low, high})
		}
	}
	s.Tables = append(s.Tables, t)
	s.Charts = append(s.Charts, Bars(fmt.Sprintf("Test nodes by %s, %s", f.By, whose), name, bars)...)
}

// of100 writes how many of 100 a part of n is, with or without its interval.
func of100(part, n int64, within bool) string {
	if n == 0 {
		return "–"
	}
	text := fmt.Sprintf("%.0f", 100*float64(part)/float64(n))
	if low, high := wilson(part, n); within {
		text += fmt.Sprintf(" (%.0f to %.0f)", 100*low, 100*high)
	}
	return text
}

// wilson is the 95 % interval of a fraction of n cases (Wilson, JASA 1927), which is right for few cases, too.
func wilson(part, n int64) (low, high float64) {
	const z = 1.96
	p, m := float64(part)/float64(n), float64(n)
	middle, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (middle-half)/(1+z*z/m)), min(1, (middle+half)/(1+z*z/m))
}

// tries lists settings that may do better than the baseline, each with what it does; nil if the model beats it.
func (r runPage) tries() (all []Fact) {
	f, p := r.Result.Figures, r.Result.Plan
	if f == nil || f.Measured().Rows == 0 || f.BeatsBaseline() {
		return nil
	}
	add := func(may bool, name, value, why string) {
		setting := name + ": " + value
		if r.parts() == len(r.Shards) {
			setting = "--" + strings.ReplaceAll(name, "_", "-") + " " + value
		}
		if may {
			all = append(all, Fact{setting, why})
		}
	}
	classes, two, means := f.Majority >= 0 && !p.Ordered(), f.Positive >= 0 && !p.Ordered(), p.Method == plan.ClassMeans
	add(two && !f.Metric.Ranks(), "metric", "auc", "the ranking chooses the model, which a rare class does not hide")
	add(classes && !two && f.Metric == "accuracy", "metric", "macro-f1", "all classes count alike")
	add(two && f.Threshold == nil, "threshold", "f1", "the validation nodes choose the probability of an alarm")
	add(classes && len(p.ClassWeights) == 0, "class_weights", "balanced", "rare classes count as much as frequent ones")
	add(means && p.Hops() > 0, "hops", "0", "without edges: neighbours may be too different to help")
	add(means, "method", plan.LayerWise, "learns other functions than a closed form, and sends more")
	add(!means, "method", plan.ClassMeans, "a closed form, which needs fewer labels")
	return append(all, Fact{"more labels", "or other columns: heddle inspect lists what each column became"})
}
