package admission

import (
	"cmp"
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// Templates are the names of policies to begin with.
var Templates = []string{"hospital", "bank", "research"}

//go:embed templates
var templates embed.FS

// Template returns the text of the policy of that name, for this federation; it is empty if there is none. A line is a
// field of Policy with a comment.
func Template(name, federation string) string {
	text, _ := templates.ReadFile("templates/" + name + ".yaml")
	return strings.Replace(string(text), "FEDERATION", federation, 1)
}

// Explain lists in plain words what the policy allows, what it refuses and what it leaves open, so that a person
// sees a limit that is missing.
func (p Policy) Explain() (allows, refuses, open []string) {
	add := func(to *[]string, format string, args ...any) { *to = append(*to, fmt.Sprintf(format, args...)) }
	add(&allows, "plans of federation %s that train by %s", cmp.Or(p.Federation, "(any)"), list(p.Methods))
	if len(p.Encoders) > 0 {
		add(&allows, "rows of a node that encoders %s make, with other methods than class-means; layers send %s",
			list(p.Encoders), list(p.LayerOutputs))
	}
	add(&allows, "rows of a node as %s", list(p.rows()))
	texts := fmt.Sprintf("texts that %d nodes of this site have", p.TextCount())
	switch {
	case p.Categories == nil:
		add(&allows, "heddle match sends %s, of every column with texts", texts)
	case len(p.Categories) > 0:
		add(&allows, "heddle match sends %s, of column %s", texts, list(p.Categories))
	default:
		add(&refuses, "heddle match sends a text of a column")
	}
	if p.SiteFigures > 0 {
		add(&allows, "this site publishes its own test metric, in whole percent, if %d test nodes or more have labels",
			p.SiteFigures)
	} else {
		add(&refuses, "this site publishes its own test metric; totals over all sites are computed")
	}
	if len(p.FiguresBy) > 0 {
		add(&allows, "counts of right and wrong test nodes over all sites by %s", list(p.FiguresBy))
	} else {
		add(&refuses, "counts of right and wrong test nodes by a column")
	}
	if len(p.Hours) > 0 {
		add(&refuses, "training outside %s, by this machine's clock", strings.Join(p.Hours, ", "))
	} else {
		add(&open, "it trains at any hour")
	}
	who := "this site's own key"
	if len(p.Approvers) > 0 {
		who = fmt.Sprintf("%d of %d approvers", max(1, p.Approvals), len(p.Approvers))
	}
	add(&refuses, "a plan that %s has not signed", who)
	add(&refuses, "fewer than %d members, this one included", p.MinMembers)
	switch n := cmp.Or(p.MinInSum, usualInSum); n {
	case 1:
		add(&open, "sums may be in the clear: members see this site's part")
	case 2:
		add(&refuses, "sums in the clear")
		add(&open, "with two members the other one sees this site's part of a sum")
	default:
		add(&refuses, "sums that show the parts of fewer than %d members", n)
	}
	if p.LeaveOneOut {
		add(&refuses, "rows of class means that contain the node's own label")
	} else {
		add(&open, "rows of class means may contain the node's own label")
	}
	if p.MaxEpsilon > 0 {
		add(&refuses, "plans without differential privacy of edges, or with an ε above %g", p.MaxEpsilon)
	} else {
		add(&open, "edges need no differential privacy")
	}
	var unlimited []string
	for _, l := range []struct {
		most float64
		what string
	}{{p.MaxDelta, "δ"}, {float64(p.MaxLayers), "layers"}, {float64(p.MaxHops), "hops in a layer"},
		{float64(p.MaxRounds), "rounds of a layer"}, {float64(p.MaxPasses), "passes over the features"},
		{p.MaxNumbers, "numbers about a node for each value that its row stores"},
		{float64(p.MaxBytes), "bytes sent in one run"}, {float64(p.MaxRate), "bytes sent in a second"},
		{float64(p.ReceiveLimit), "bytes received in a second from another member"}} {
		if l.most > 0 {
			add(&refuses, "more %s than %s", l.what, strconv.FormatFloat(l.most, 'f', -1, 64))
		} else {
			unlimited = append(unlimited, l.what)
		}
	}
	if len(unlimited) > 0 {
		add(&open, "no limit of %s", strings.Join(unlimited, "; "))
	}
	return allows, refuses, open
}
