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
	for _, of := range []struct {
		name  string
		ranks *eval.Ranks
	}{{"validation", o.Links.Val}, {"test", o.Links.Test}} {
		if r := of.ranks; r != nil && r.Links > 0 {
			fmt.Fprintf(w, "%s links: MRR %.4f, hits@1 %.4f, hits@10 %.4f, AUC %.4f (%d ends, each among 100 drawn nodes or fewer)\n",
				of.name, r.MRR, r.Hits[1], r.Hits[10], r.AUC, r.Links)
		}
	}
	_, err := fmt.Fprintf(w, "new links: peer recommend --model %s --data … --node …\n", model)
	return err
}
