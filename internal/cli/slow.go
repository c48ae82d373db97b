package cli

import (
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// LinkHelp is the help of --link.
const LinkHelp = "simulated slower network, as latency=50ms,rate=5Mbit"

// prediction is the duration of a run over a connection.
type prediction struct {
	Name    string  `json:"name"`
	Link    string  `json:"link"`
	Seconds float64 `json:"seconds"`
}

// predictions are those for usual connections, and for the simulated one.
func predictions(o *heddle.Result) (all []prediction) {
	if o.Load.Trips == 0 {
		return nil
	}
	for _, p := range netsim.Presets {
		all = append(all, prediction{p.Name, p.Model.String(), p.Model.Predict(o.Load).Seconds()})
	}
	if ways, err := netsim.ParseTable(o.Link); o.Link != "" && err == nil {
		name := "simulated here"
		if len(ways.Pairs) > 0 {
			name = "simulated here, the slowest pair"
		}
		all = append(all, prediction{name, ways.String(), ways.Worst().Predict(o.Load).Seconds()})
	}
	return all
}

func predicted(all []prediction) *Table {
	if all == nil {
		return nil
	}
	t := &Table{Name: "Over other connections", Head: []string{"connection of each peer", "predicted seconds"}}
	for _, p := range all {
		t.Add(p.Name+": "+p.Link, fmt.Sprintf("%.1f", p.Seconds))
	}
	return t
}
