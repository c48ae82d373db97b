package train

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// EventKind is what an Event reports.
type EventKind string

// The kinds, with the fields that each of them sets besides Kind, Stage, StageName and Round.
const (
	RoundEnd EventKind = "round" // Done, Total, Metric, Loss, Val, ValLoss, Sent
	StageEnd EventKind = "stage" // Metric, BestRound, Val, ValLoss, Test, TestLoss, Sent
	// Peer, Other, Differed, Distance: two peers rounded apart, and all take the parameters of one
	Resync EventKind = "resync"
	// Layer, Rows, Width, Refetched, Kept, Text: how a layer's halo rows reach this peer
	HaloPlan EventKind = "halo_plan"
	Saved    EventKind = "saved"    // Peer: this peer has written a checkpoint
	Restored EventKind = "restored" // Peer: this peer continues from a checkpoint
	// Members, Peer, Text: to whom this peer is connected; with a Text it waits for Peer, and does not train
	Connection EventKind = "connection"
	// Members: connected peers that have exchanged no message with this one for WaitNoted or longer; empty if that is
	// over
	Waiting EventKind = "waiting"
	// Text: a step that helps only to find a fault; Sent, if it sent a notable amount
	Trace   EventKind = "trace"
	Note    EventKind = "note"    // Text: what goes on between the sites
	Warning EventKind = "warning" // Text
)

// WaitNoted is how long one message is waited for before subscribers hear of it.
const WaitNoted = 2 * time.Second

// Event is something that happened in a run, as one peer saw it. Measures are over all peers; NaN means
// that a value was not measured.
type Event struct {
	Kind      EventKind
	Stage     int    // 0 is the encoder, or all layers if they are trained at once; k is graph layer k
	StageName string // see StageName
	Round     int    // of the stage, from 0

	Done, Total    int // rounds of the whole run: completed, and at most
	Metric         string
	Positive       string  // of two classes, the one that Metric is of (empty = there are not two)
	Loss           float64 // mean over the training labels, before the round's step; NaN of a round that is solved
	Val, ValLoss   float64 // metric and mean loss over the validation labels
	Test, TestLoss float64

	ValBound, TestBound float64     // largest errors of Val and Test if they are AUC or AP (0 = not known)
	BestRound           int         // whose parameters the stage ended with
	Sent                comm.Counts // bytes sent by this peer so far

	Peer     int     // rank of the peer that the event is about
	Other    int     // a peer whose parameters Peer's replaced; this peer if it was one
	Differed bool    // this peer's parameters were among those that were replaced
	Distance float64 // between this peer's parameters and Peer's, relative to their norm
	Members  []int   // ranks

	Layer     string
	Rows      int   // of the halo
	Width     int   // values of a row that are sent
	Refetched int   // rows that are fetched a second time for the gradient, at every step
	Kept      int64 // bytes kept until the gradient is computed or, for the first layer, for the whole run
	Text      string
}

// StageName returns what stage k of layer-wise training is called.
func StageName(k int) string {
	if k == 0 {
		return "encoder"
	}
	return fmt.Sprintf("layer %d", k)
}

// MarshalJSON writes the fields that the kind sets, in snake_case; a number that was not measured is null.
func (e Event) MarshalJSON() ([]byte, error) {
	b := []byte(`{"kind":`)
	b = appendJSON(b, e.Kind)
	for _, f := range e.fields() {
		b = appendJSON(append(b, ','), f.name)
		b = appendJSON(append(b, ':'), f.value)
	}
	return append(b, '}'), nil
}

type field struct {
	name  string
	value any
}

func (e Event) fields() []field {
	all := []field{{"stage", e.Stage}, {"stage_name", e.StageName}, {"round", e.Round}}
	switch e.Kind {
	case RoundEnd:
		all = e.ofClass(all)
		return append(all, field{"done", e.Done}, field{"total", e.Total}, field{"metric", e.Metric},
			field{"loss", finiteOrNil(e.Loss)}, field{"val", finiteOrNil(e.Val)},
			field{"val_loss", finiteOrNil(e.ValLoss)}, field{"sent", e.Sent})
	case StageEnd:
		all = e.ofClass(all)
		return append(all, field{"metric", e.Metric}, field{"best_round", e.BestRound},
			field{"val", finiteOrNil(e.Val)}, field{"val_loss", finiteOrNil(e.ValLoss)},
			field{"test", finiteOrNil(e.Test)}, field{"test_loss", finiteOrNil(e.TestLoss)}, field{"sent", e.Sent})
	case Resync:
		return append(all, field{"peer", e.Peer}, field{"other", e.Other}, field{"differed", e.Differed},
			field{"distance", finiteOrNil(e.Distance)})
	case HaloPlan:
		return append(all, field{"layer", e.Layer}, field{"rows", e.Rows}, field{"width", e.Width},
			field{"refetched", e.Refetched}, field{"kept", e.Kept}, field{"text", e.Text})
	case Connection:
		return append(all, field{"members", e.Members}, field{"peer", e.Peer}, field{"text", e.Text})
	case Waiting:
		return append(all, field{"members", e.Members})
	case Saved, Restored:
		return append(all, field{"peer", e.Peer})
	}
	return append(all, field{"text", e.Text})
}

// ofClass adds the positive class of two.
func (e Event) ofClass(all []field) []field {
	if e.Positive == "" {
		return all
	}
	return append(all, field{"positive", e.Positive})
}

// finiteOrNil returns x for JSON, which has neither NaN nor infinities.
func finiteOrNil(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("train: " + err.Error()) // fields are numbers, strings and lists of numbers
	}
	return append(b, text...)
}
