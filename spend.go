package heddle

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/privacy/dp"
)

// spending returns what records in l that a run by p over parts spends, nil if nothing does. A run that l
// cannot afford is refused now, unless it continues from checkpoints: then it may have spent already, and
// is refused where it has not.
func spending(l dp.Ledger, p Plan, parts []*shard.Shard, continues bool) (func(dp.Statement) error, error) {
	own := parts[0]
	if l.Path == "" {
		if l.Budget != (dp.Guarantee{}) {
			return nil, input(errors.New("a privacy budget must have a ledger"))
		}
		return nil, nil
	}
	if p.Epsilon == 0 {
		if l.Budget == (dp.Guarantee{}) {
			return nil, nil
		}
		return nil, input(fmt.Errorf("epsilon must be above 0 with a privacy budget (got 0): the run would spend all of %s", own.Name))
	}
	id, err := p.Identify(own)
	if err != nil {
		return nil, input(err)
	}
	if l.Data = shard.Edges(parts...); !continues {
		c, err := p.ClosedForm(own)
		if err != nil {
			return nil, input(err)
		}
		edges, err := c.Edges([32]byte{}) // for its statement
		if err == nil {
			err = l.Afford(edges.Statement())
		}
		if err != nil {
			return nil, input(err)
		}
	}
	return func(s dp.Statement) error { return l.Spend(s, fmt.Sprintf("%x", id)) }, nil
}
