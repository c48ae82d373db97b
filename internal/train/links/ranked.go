package links

import (
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// NewRanked returns the figures of a model for relations of these names, as one site measured them.
func NewRanked(val, test train.LinkRanks, relations []string, site string) *eval.RankedLinks {
	some := func(r eval.Ranks) *eval.Ranks {
		if r.Links == 0 {
			return nil
		}
		return &r
	}
	l := &eval.RankedLinks{Val: some(val.All), Test: some(test.All), Sites: []eval.RankedLinks{{Name: site,
		Val: some(val.Own), Test: some(test.Own), Common: some(test.Common), AdamicAdar: some(test.AdamicAdar)}}}
	for k := range val.Relations {
		l.Relations = append(l.Relations,
			eval.RankedLinks{Name: relations[k], Val: some(val.Relations[k]), Test: some(test.Relations[k])})
	}
	return l
}
