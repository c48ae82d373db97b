package recovery

import (
	"strings"
	"testing"
	"time"
)

func TestSurvivalValidate(t *testing.T) {
	for _, test := range []struct {
		s     Survival
		peers int
		want  string // empty: no fault
	}{
		{Survival{}, 4, ""},
		{Survival{MinPeers: 3}, 4, ""},
		{Survival{MinPeers: 4}, 4, ""},
		{Survival{MinPeers: 3, FailedRows: "drop", Straggler: "drop", RoundLimit: time.Second}, 5, ""},
		{Survival{MinPeers: 2}, 4, "more than half"},
		{Survival{MinPeers: 5}, 4, "number of peers, 4 (got 5)"},
		{Survival{MinPeers: 1}, 0, "at least 2"},
		{Survival{MinPeers: -1}, 0, "got -1"},
		{Survival{MinPeers: 3, FailedRows: "guess"}, 0, "guess"},
		{Survival{Straggler: "adapt"}, 5, ""},
		{Survival{MinPeers: 3, Straggler: "adapt"}, 5, ""},
		{Survival{Straggler: "adapt", RoundLimit: time.Second}, 0, "no peer is left out"},
		{Survival{Straggler: "later"}, 0, "must be wait, drop or adapt"},
		{Survival{MinPeers: 3, Straggler: "drop"}, 0, "at least 100ms with straggler drop (got 0s)"},
		{Survival{MinPeers: 3, RoundLimit: time.Second}, 0, "0 without straggler drop"},
		{Survival{FailedRows: "drop"}, 0, "without min_peers"},
		{Survival{Straggler: "drop", RoundLimit: time.Second}, 0, "without min_peers"},
	} {
		if err := test.s.Validate(test.peers); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v of %d peers: %v, must contain %q", test.s, test.peers, err, test.want)
		}
	}
}
