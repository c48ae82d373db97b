package federation

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// page is what a person should read of a plan before a site takes part in it.
type page struct {
	*disclosure.Disclosure
	own         *shard.Shard
	fingerprint string
	model       string      // fingerprint of the model with which the members predict (empty = they train)
	verdicts    [][2]string // a file of the site, and its verdict on the plan
	figures     int         // this site publishes its own metric if it has this many test nodes (0 = never)
	attacked    string
	before      dp.LedgerSum // runs that sent rows of this table
}

// addsUp is what a site found that only collected the rounded rows of several runs, each with other columns of labels.
const addsUp = "10 % of words on Cora after 1 run, 41 % after 10, 60 % after 20, 80 % after 60"

// attackTime is how long our attacks on a plan run.
const attackTime = 10 * time.Second

// print prints the page.
func (p page) print(w io.Writer) {
	site := p.Plan.Members[p.own.Rank].Name
	fmt.Fprintf(w, "plan         %s\n", p.fingerprint)
	if p.model != "" {
		fmt.Fprintf(w, "model        %s: the members predict by it, and train nothing\n", p.model)
	}
	fmt.Fprintf(w, "site         %s: part %d of %d of %s, %d of %d nodes\n", site, p.own.Rank, p.own.Parts, p.own.Name,
		p.own.Owned, p.own.Nodes)
	if text := seeds(p.Plan); text != "" {
		fmt.Fprintf(w, "runs         %s; what follows is all of them together\n", text)
	}
	for _, v := range p.verdicts {
		fmt.Fprintf(w, "%-12s %s\n", v[0], v[1])
	}
	for r, m := range p.Plan.Members {
		text := "this site"
		if r != p.own.Rank {
			text = fmt.Sprintf("reads rows of %d of this site's nodes", p.Reads[r])
		}
		fmt.Fprintf(w, "member       %s  %s  %v  %s\n", m.Name, m.ID, m.Addresses, text)
	}
	p.printSends(w)
	p.printNode(w)
	if p.model == "" {
		p.printSettings(w)
	}
}

// seeds names the seeds of a plan with several runs (empty = there is one).
func seeds(p plan.Plan) string {
	if p.Runs < 2 {
		return ""
	}
	return fmt.Sprintf("%d, one after the other, by seeds %d to %d", p.Runs, p.Seed, p.Seed+uint64(p.Runs)-1)
}

// printSends prints what leaves.
func (p page) printSends(w io.Writer) {
	p.printKinds(w)
	more := ""
	if p.Plan.ClassMeans.LeafEdges {
		more = ", nor what goes along the table edges"
	}
	fmt.Fprintf(w, "  %s in all, what is sent again after a failure not counted%s\n", cli.Bytes(p.Bytes), more)
}

// printKinds prints what leaves, without amounts.
func (p page) printKinds(w io.Writer) {
	site, terms := p.Plan.Members[p.own.Rank].Name, p.Plan.SumTerms(len(p.Plan.Members))
	fmt.Fprintf(w, "\nWhat leaves %s, at most:\n", site)
	kind := train.Content("")
	for _, l := range p.Sends {
		if l.Kind != kind {
			kind = l.Kind
			fmt.Fprintf(w, "  %s\n", map[train.Content]string{
				train.Rows:   "rows, one for each node that another site reads, to that site",
				train.Errors: "gradients, one for each node of another site that this one reads, to that site",
				train.Sums:   "this site's part of sums, whose total all members get:\n    " + terms.Trust,
			}[kind])
		}
		times := "once"
		if l.Times > 1 {
			times = fmt.Sprintf("%d times", l.Times)
		}
		fmt.Fprintf(w, "    %-10s %-8s %-23s %s\n", times, l.Format, numbers(l.Least, l.Most), l.What)
	}
	if p.figures > 0 {
		fmt.Fprintf(w, "  this site's own test metric, in whole percent, to all members, if %d test nodes or more "+
			"have labels (policy.site_figures)\n", p.figures)
	}
	if terms.Secure {
		fmt.Fprintf(w, "  secure sums: %s; keys by %s\n", terms.Form, terms.Keys)
	}
	if p.Plan.ClassMeans.Leaves > 0 {
		fmt.Fprintf(w, "  all totals of sums also go to the phones, in the clear\n")
	}
	if p.Plan.ClassMeans.LeafEdges {
		fmt.Fprintf(w, "  in each hop, of each phone's or other site's node that this site's table edges joins to "+
			"its nodes, the sum of the\n    rows of its neighbours, to the owner: of a node with one neighbour "+
			"that is the row. Only the table bounds it\n")
	}
}

// numbers writes how many numbers there are.
func numbers(least, most int64) string {
	switch {
	case least != most:
		return fmt.Sprintf("%d to %d numbers", least, most)
	case most == 1:
		return "1 number"
	}
	return fmt.Sprintf("%d numbers", most)
}

// printNode prints what leaves of one node, and judges it by the values that its row stores.
func (p page) printNode(w io.Writer) {
	fmt.Fprintf(w, "\nOf each node\n")
	if p.Nodes == 0 && p.Plan.ClassMeans.LeafEdges {
		fmt.Fprintf(w, "  by the parts no other site reads a node of this one; along the table edges sums of their "+
			"rows leave, as above\n")
		return
	}
	if p.Nodes == 0 {
		fmt.Fprintf(w, "  no other site reads a node of this one: no row leaves\n")
		return
	}
	known, few := 0, 0
	for _, n := range p.Stored {
		if float64(n) <= p.Fresh {
			known++
		}
		if n <= attack.Few {
			few++
		}
	}
	fmt.Fprintf(w, "  %d of this site's nodes are read elsewhere. %.4g numbers leave of each, %.4g of them not merely "+
		"sums of such numbers\n  over neighbours. Its row stores %d values (median; %d to %d): %.3g numbers for each "+
		"value (policy.max_numbers).\n",
		p.Nodes, p.Node, p.Fresh, p.Median(), p.Stored[0], p.Stored[len(p.Stored)-1], p.PerStored(p.Fresh))
	fmt.Fprintf(w,
		"  For %d nodes at least as many numbers are sent as their rows store values: such a row could be found.\n",
		known)
	if few > 0 && p.Node > 0 {
		how := "as they are, and could be found by trying all values"
		if p.Plan.Method == plan.ClassMeans && p.Plan.ClassMeans.CoarseRows && p.own.X.Sparse != nil {
			how = "coarsely: all numbers of a node reveal at most half of its values"
		}
		fmt.Fprintf(w, "  %d of %d boundary rows are of nodes with %d stored values or fewer; they are sent %s.\n", few,
			p.Nodes, attack.Few, how)
	}
	if e := p.Plan.ClassMeans.Epsilon; e > 0 {
		fmt.Fprintf(w, "  Edges are private, by ε %g at δ %g in a run; labels and features are not.\n", e,
			p.Plan.ClassMeans.Delta)
	} else {
		fmt.Fprintf(w, "  Nothing is noised: there is no ε.\n")
	}
	if p.model != "" {
		fmt.Fprintf(w, "  The rows repeat the training of this model, or are of new data: heddle check without "+
			"--model attacks them.\n")
	}
	if p.attacked != "" {
		fmt.Fprintf(w, "  Our attacks on these rows: %s\n", p.attacked)
	}
	if p.before.Runs > 0 {
		fmt.Fprintf(w, "  Earlier runs that sent rows of this table: %d. With this one %.4g numbers of each node, of "+
			"%d columns.\n  Rows add up over runs: from as many numbers as columns a row can be computed, and of "+
			"rounded ones a site\n  found %s.\n", p.before.Runs, p.before.Numbers+p.Fresh, p.own.X.Cols(), addsUp)
	}
}

// printSettings prints all settings that the run reads: first those that policy and roster judge.
func (p page) printSettings(w io.Writer) {
	usual := p.Plan.Usual()
	given := func(s plan.Setting) string {
		text := s.Name + ": " + cmp.Or(p.Plan.Get(s), "none")
		if p.Plan.Get(s) != usual.Get(s) {
			text += " *"
		}
		return text
	}
	fmt.Fprintf(w, "\nSettings of the plan that policy and roster judge (* not the default)\n")
	all := p.Plan.Shown()
	for _, s := range all {
		if len(s.Rules) > 0 {
			fmt.Fprintf(w, "  %-34s %s\n", given(s), strings.Join(s.Rules, ", "))
		}
	}
	var others []string
	for _, s := range all {
		if len(s.Rules) == 0 {
			others = append(others, given(s)+";")
		}
	}
	fmt.Fprintf(w, "Other settings of the plan\n  %s\n", cli.WrapWords(others, "\n  ", 98))
}
