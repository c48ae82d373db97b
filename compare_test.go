package heddle_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
)

// TestCompare checks each outcome against the run by itself.
func TestCompare(t *testing.T) {
	g, shards, plan, err := comparison()
	if err != nil {
		t.Fatal(err)
	}
	rounds := make(map[string]int)
	trial := func(name string, p heddle.Plan, alone bool) heddle.Trial {
		return heddle.Trial{Name: name, Plan: p, Alone: alone, OnEvent: func(heddle.Event) { rounds[name]++ }}
	}
	all, err := heddle.Compare(context.Background(), g, shards, trial("alone", plan, true),
		trial("together", plan, false))
	if err != nil {
		t.Fatal(err)
	}
	want, err := heddle.Train(context.Background(), g, plan)
	if err != nil {
		t.Fatal(err)
	}
	if got := all[1]; got.Test != want.Test || got.Sent != want.Total() || got.Seconds <= 0 {
		t.Errorf("together: accuracy %v, sent %+v in %v s; the run by itself: %v, %+v", got.Test, got.Sent, got.Seconds,
			want.Test, want.Total())
	}
	right, nodes := 0.0, 0
	for r, one := range all[0].Runs {
		site := shards[r].Alone()
		n := len(site.InSplit(graph.Test))
		right, nodes = right+one.Test*float64(n), nodes+n
	}
	mean := right / float64(nodes)
	if math.Abs(mean-all[0].Test) > 1e-9 || nodes != len(g.InSplit(graph.Test)) {
		t.Errorf("each site alone: accuracy %v over all test nodes, must be %v over %d", all[0].Test, mean, nodes)
	}
	if rounds["alone"] == 0 || rounds["together"] == 0 {
		t.Errorf("events by trial: %v", rounds)
	}
}

func TestCompareNamesTheTrial(t *testing.T) {
	g, shards, plan, err := comparison()
	if err != nil {
		t.Fatal(err)
	}
	plan.ClassMeans.Hops = -1
	_, err = heddle.Compare(context.Background(), g, shards, heddle.Trial{Name: "no hops", Plan: plan})
	var fault *heddle.InputError
	if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "no hops: ") {
		t.Errorf("got %v", err)
	}
}
