package cli

import (
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// printRanks prints the ranks of links that were held out, and how the model in that file is used.
func printRanks(w io.Writer, o *heddle.Result, model string) error {
	if o.Links == nil {
		_, err := fmt.Fprintln(w, "links: not ranked, since this peer received the model from another peer")
		return err
	}
	from := "random"
	if o.Plan.Gradient().NegativesFrom == "near" && max(len(o.Links.Sites), len(o.Plan.Members)) > 1 {
		from = "random near"
	}
	line := func(name string, r *eval.Ranks) {
		if r != nil {
			fmt.Fprintf(w, "%s links: MRR %.4f, hits@1 %.4f, hits@10 %.4f, AUC %.4f (%d ends, each among 100 %s "+
				"nodes or fewer)\n",
				name, r.MRR, r.Hits[1], r.Hits[10], r.AUC, r.Links, from)
		}
	}
	line("validation", o.Links.Val)
	line("test", o.Links.Test)
	by := func(of func(eval.RankedLinks) *eval.Ranks) string {
		var sum eval.Ranks
		hits := 0.0
		for _, s := range o.Links.Sites {
			if r := of(s); r != nil {
				sum.Links, sum.MRR, hits = sum.Links+r.Links, sum.MRR+float64(r.Links)*r.MRR,
					hits+float64(r.Links)*r.Hits[10]
			}
		}
		return fmt.Sprintf("MRR %.4f, hits@10 %.4f", sum.MRR/float64(sum.Links), hits/float64(sum.Links))
	}
	if o.Links.Test != nil && o.Links.Sites[0].Common != nil {
		fmt.Fprintf(w, "without learning: common neighbours %s; Adamic–Adar %s (edges that each site knows)\n",
			by(func(s eval.RankedLinks) *eval.Ranks { return s.Common }),
			by(func(s eval.RankedLinks) *eval.Ranks { return s.AdamicAdar }))
	}
	for _, of := range o.Links.Relations {
		line(of.Name+": test", of.Test)
	}
	_, err := fmt.Fprintf(w, "new links: heddle recommend --model %s --data … --node …\n", model)
	return err
}
