package results

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/plan/contest"
	"github.com/heddle-gnn/heddle/tune"
)

// rule chooses among candidates of class-means by what one run of each gave; −1: there is none to choose.
type rule struct {
	name   string
	choose func(entrants []tune.Entrant, ran []record, labels int64) int
}

// rules are those of class-means, and others it could have.
var rules = []rule{
	{"class-means", contested},
	{"fewest bytes of those near the best", func(entrants []tune.Entrant, ran []record, labels int64) int {
		alike := append([]tune.Entrant{}, entrants...)
		for i := range alike {
			alike[i].Usual = false
		}
		return contested(alike, ran, labels)
	}},
	{"the best by validation", func(_ []tune.Entrant, ran []record, _ int64) (at int) {
		for i, r := range ran {
			if r.Val > ran[at].Val {
				at = i
			}
		}
		return at
	}},
	{"the usual plan, always", func(entrants []tune.Entrant, _ []record, _ int64) int {
		for i, e := range entrants {
			if e.Usual {
				return i
			}
		}
		return -1
	}},
}

// contested is the choice of a contest without a limit of bytes.
func contested(entrants []tune.Entrant, ran []record, labels int64) int {
	c, err := tune.New("accuracy", math.MaxInt64, labels, entrants)
	if err != nil {
		return -1
	}
	for {
		i, ok := c.Next()
		if !ok {
			break
		}
		c.End(i, tune.Verdict{Val: float64(ran[i].Val), Sent: ran[i].Halo + ran[i].Reduce + ran[i].Control})
	}
	at, err := c.Choice()
	if err != nil {
		return -1
	}
	return at
}

// lost returns how far the plans that a rule chooses validate below the plan that is best on average, in points, and the MB
// that they send. Each choice is judged by the other runs, which have other seeds and, where there are several, other splits.
// all are the closed forms of class-means with as many runs each, entrants what a contest knows of them.
func (r rule) lost(all []*candidate, entrants []tune.Entrant, data string, labels int64) (points, megabytes float64) {
	best, runs := math.Inf(-1), len(all[0].of[data].runs)
	for _, c := range all {
		best = max(best, c.of[data].val())
	}
	for s := range runs {
		var ran []record
		for _, c := range all {
			ran = append(ran, c.of[data].runs[s])
		}
		at := r.choose(entrants, ran, labels)
		if at < 0 {
			return math.NaN(), math.NaN()
		}
		of := all[at].of[data]
		others := (float64(runs)*of.val() - 100*float64(of.runs[s].Val)) / float64(runs-1)
		points += (best - others) / float64(runs)
		megabytes += of.runs[s].megabytes() / float64(runs)
	}
	return points, megabytes
}

// printRules prints what each rule loses on each data set, and on average.
func printRules(p *page.Page, b *book, rows []*candidate, sets []string) error {
	p.Table("rule %s", "data set %s", "points below the best on average %.2f", "MB of the chosen %.2f")
	for _, r := range rules {
		var mean, sent float64
		n := 0
		for _, data := range sets {
			splits, err := b.read(data)
			if err != nil {
				return err
			}
			fit, err := heddle.Defaults(heddle.Plan{Method: plan.ClassMeans}).CandidatesFor(shard.Whole(splits[0]))
			if err != nil {
				return err
			}
			var all []*candidate
			var entrants []tune.Entrant
			for _, c := range rows {
				at := slices.IndexFunc(fit, func(f plan.Candidate) bool { return f.Name == c.Name && f.Fault == nil })
				if s, ok := c.of[data]; ok && at >= 0 && c.tried && c.closed && len(s.runs) > 1 {
					all, entrants = append(all, c), append(entrants, contest.Entrant(fit[at], shard.Whole(splits[0])))
				}
			}
			if len(all) < 2 {
				continue
			}
			points, megabytes := r.lost(all, entrants, data, int64(len(splits[0].InSplit(graph.Val))))
			p.Row(r.name, data, points, megabytes)
			mean, sent, n = mean+points, sent+megabytes, n+1
		}
		if n > 1 {
			p.Row(r.name, "mean", mean/float64(n), sent/float64(n))
		}
	}
	return nil
}
