// Package links prints what a model of links is worth, and recommends new ones by it.
package links

import (
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Print prints the ranks of links that were held out, and how the model in that file is used.
func Print(w io.Writer, o *heddle.Result, model string) error {
	if o.Links == nil {
		_, err := fmt.Fprintln(w, "links: not ranked, since this peer received the model from another peer")
		return err
	}
	from := "drawn"
	if o.Plan.NegativesFrom == "near" && max(len(o.Links.Sites), len(o.Plan.Members)) > 1 {
		from = "drawn near"
	}
	line := func(name string, r *eval.Ranks) {
		if r != nil {
			fmt.Fprintf(w, "%s links: MRR %.4f, hits@1 %.4f, hits@10 %.4f, AUC %.4f (%d ends, each among 100 %s nodes or fewer)\n",
				name, r.MRR, r.Hits[1], r.Hits[10], r.AUC, r.Links, from)
		}
	}
	line("validation", o.Links.Val)
	line("test", o.Links.Test)
	for _, of := range o.Links.Relations {
		line(of.Name+": test", of.Test)
	}
	_, err := fmt.Fprintf(w, "new links: peer recommend --model %s --data … --node …\n", model)
	return err
}
