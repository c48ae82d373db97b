package links

import (
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// Ranked is where links that were held out rank, as a process measured it.
type Ranked struct {
	Name string      `json:"name,omitempty"` // of a relation or a site
	Val  *eval.Ranks `json:"val"`            // (nil = there are none)
	Test *eval.Ranks `json:"test"`
	// The own links of a site, ranked by what it knows of neighbours (Task.Known).
	Common     *eval.Ranks `json:"common_neighbours,omitempty"`
	AdamicAdar *eval.Ranks `json:"adamic_adar,omitempty"`
	Relations  []Ranked    `json:"relations,omitempty"` // of all sites, if there are several relations
	Sites      []Ranked    `json:"sites,omitempty"`     // of this process, by rank: of their nodes' links
}

// NewRanked returns the figures of a model for relations of these names, as one site measured them.
func NewRanked(val, test train.LinkRanks, relations []string, site string) *Ranked {
	some := func(r eval.Ranks) *eval.Ranks {
		if r.Links == 0 {
			return nil
		}
		return &r
	}
	l := &Ranked{Val: some(val.All), Test: some(test.All), Sites: []Ranked{{Name: site, Val: some(val.Own),
		Test: some(test.Own), Common: some(test.Common), AdamicAdar: some(test.AdamicAdar)}}}
	for k := range val.Relations {
		l.Relations = append(l.Relations,
			Ranked{Name: relations[k], Val: some(val.Relations[k]), Test: some(test.Relations[k])})
	}
	return l
}
