package heddle

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestEventsDoNotBlock: a reader that is slow, stops after the first event or never reads delays no run, gets the
// events in their order, and leaves no goroutine.
func TestEventsDoNotBlock(t *testing.T) {
	before := runtime.NumGoroutine()
	p := read(t, "method: full-batch\nrounds: 5\npolicy: random\ntransport: memory")
	p.Peers = 2
	shards, err := Split(dataset.Sites(dataset.SitesConfig{Nodes: 300}, rng.New(1)), p)
	if err != nil {
		t.Fatal(err)
	}
	run := func(onEvent func(Event)) (*Result, error) {
		return Local{Plan: p, Shards: shards, OnEvent: onEvent}.Train(t.Context())
	}
	for _, reads := range []int{0, 1, 1000} {
		events, wait := Events(run)
		rounds, n := []int(nil), 0
		if reads > 0 {
			for e := range events {
				if e.Kind == train.RoundEnd {
					rounds = append(rounds, e.Round)
				}
				if n++; n == reads {
					break
				}
			}
		}
		r, err := wait()
		if err != nil || r.Rounds != 5 {
			t.Fatalf("%d events read: %v, %v", reads, r, err)
		}
		if reads == 1000 && (len(rounds) != 5 || rounds[4] != 4) {
			t.Errorf("rounds %v, want 0 to 4", rounds)
		}
	}
	fault := errors.New("no run")
	events, wait := Events(func(func(Event)) (*Result, error) { return nil, fault })
	for range events {
		t.Error("a run without events must have none")
	}
	if _, err := wait(); err != fault {
		t.Errorf("%v, want %v", err, fault)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestEventsAreBounded: without a reader, the last events are kept.
func TestEventsAreBounded(t *testing.T) {
	const sent = 10_000
	events, wait := Events(func(onEvent func(Event)) (*Result, error) {
		for k := range sent {
			onEvent(Event{Round: k})
		}
		return nil, context.Canceled
	})
	wait()
	first, last, n := -1, 0, 0
	for e := range events {
		if first < 0 {
			first = e.Round
		}
		last, n = e.Round, n+1
	}
	if n != 4096 || last != sent-1 || first != sent-4096 {
		t.Errorf("%d events, %d to %d, want the last 4096 of %d", n, first, last, sent)
	}
}
