package train

import (
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Result is what a run measured, as one peer saw it. The Test of stage Ends is the model's.
type Result struct {
	Ends   int           // the stage that the model ends with; before the run is over, the last one of all
	Stages []StageResult // in the order of training; the last one may not have ended
	Sent   comm.Counts   // by this peer in the whole run

	// Fetched is how features came to this process in sampled training: batches that they were fetched for at once, in
	// the end, rows of other peers' nodes that groups of batches read, each once a group, and those that this peer
	// still had.
	Fetched struct {
		Group        int
		Rows, Cached int64
	}
}

// StageResult is what was measured of one stage.
type StageResult struct {
	Stage          int
	Name           string // see StageName
	Curve          []Point
	Ended          bool // the fields below are set
	BestRound      int  // whose parameters the stage ended with
	Val, ValLoss   float64
	Test, TestLoss float64

	ValBound, TestBound float64 // largest error of AUC or AP (0 = not known, since a checkpoint has no bounds)

	Sent comm.Counts // by this peer up to the end of the stage
}

// Point is one round of a curve; NaN means that a value was not measured.
type Point struct {
	Stage, Round int
	Loss         float64 // mean over the training labels, before the round's step; NaN of a round that is solved
	Val, ValLoss float64
	Sent         comm.Counts // by this peer up to the end of the round
}

// Position is a point of a run between two rounds: with the parameters it is all that is needed to continue.
type Position struct {
	Stage     int     `json:"stage"`
	Round     int     `json:"round"`      // of the stage, from 0
	Best      float64 `json:"best"`       // validation metric of the best state of this stage
	BestLoss  float64 `json:"best_loss"`  // validation loss of that state
	BestRound int     `json:"best_round"` // −1: no state has been validated yet
}

// Seq numbers positions in their order, from 1: stage first, then round.
func (p Position) Seq() uint64 { return uint64(p.Stage)<<32 | uint64(p.Round) + 1 }

// Improve reports whether the state at the beginning of round is the best of its stage, and then notes it: a better
// metric m, or the same with a lower loss. Without validation labels (val NaN) the last state is the best.
func (p *Position) Improve(m eval.Metric, round int, val, loss float64) bool {
	if gain := m.Gain(val, p.Best); val == val && p.BestRound >= 0 && (gain < 0 || gain == 0 && loss >= p.BestLoss) {
		return false
	}
	p.BestRound = round
	if val == val { // JSON has no NaN
		p.Best, p.BestLoss = val, loss
	}
	return true
}

// Record adds an event to the result.
func (r *Result) Record(e Event) {
	switch e.Kind {
	case RoundEnd:
		s := r.stage(e.Stage, e.StageName)
		s.Curve = append(s.Curve, Point{Stage: e.Stage, Round: e.Round, Loss: e.Loss, Val: e.Val, ValLoss: e.ValLoss,
			Sent: e.Sent})
	case StageEnd:
		s := r.stage(e.Stage, e.StageName)
		s.Ended, s.BestRound, s.Sent = true, e.BestRound, e.Sent
		s.Val, s.ValLoss, s.Test, s.TestLoss, s.ValBound, s.TestBound = e.Val, e.ValLoss, e.Test, e.TestLoss,
			e.ValBound, e.TestBound
	}
}

func (r *Result) stage(k int, name string) *StageResult {
	if n := len(r.Stages); n == 0 || r.Stages[n-1].Stage != k {
		r.Stages = append(r.Stages, StageResult{Stage: k, Name: name})
	}
	return &r.Stages[len(r.Stages)-1]
}

// Curve returns the rounds of all stages.
func (r Result) Curve() (all []Point) {
	for _, s := range r.Stages {
		all = append(all, s.Curve...)
	}
	return all
}

// Final returns the stage that the model ends with, or the last one so far if that has not been reached.
func (r Result) Final() (last StageResult) {
	for _, last = range r.Stages {
		if last.Stage == r.Ends {
			break
		}
	}
	return last
}

// EndWithBest sets Ends to the stage that validates best, the first of equals; text explains it unless it is the last.
func (r *Result) EndWithBest(metric eval.Metric) (text string) {
	if len(r.Stages) == 0 {
		return ""
	}
	last := r.Stages[len(r.Stages)-1]
	best := last
	for _, s := range r.Stages {
		if gain := metric.Gain(s.Val, best.Val); gain > 0 || gain == 0 && s.Stage < best.Stage {
			best = s
		}
	}
	if r.Ends = best.Stage; best.Stage == last.Stage {
		return ""
	}
	return fmt.Sprintf("%s validates no better than %s (%s %.4f and %.4f): the model ends with %s", last.Name,
		best.Name, metric, last.Val, best.Val, best.Name)
}

// Remeasure takes the final model's metrics from e, because its logits differ from the logits at the end of stage k.
func (r *Result) Remeasure(k int, e Event) {
	for i := range r.Stages {
		if s := &r.Stages[i]; s.Stage == k {
			s.Val, s.ValLoss, s.Test, s.TestLoss, s.ValBound, s.TestBound = e.Val, e.ValLoss, e.Test, e.TestLoss,
				e.ValBound, e.TestBound
		}
	}
}

// Until returns what was measured before position at: the run will measure again what follows.
func (r Result) Until(at Position) Result {
	cut := r
	cut.Stages = nil
	for _, s := range r.Stages {
		if s.Stage > at.Stage {
			break
		}
		if s.Stage == at.Stage {
			n := 0
			for n < len(s.Curve) && s.Curve[n].Round < at.Round {
				n++
			}
			if n == 0 {
				break
			}
			s = StageResult{Stage: s.Stage, Name: s.Name, Curve: s.Curve[:n:n]}
		}
		cut.Stages = append(cut.Stages, s)
	}
	return cut
}

// A checkpoint stores measurements as rows of numbers, so that a resumed run reports the same as an uninterrupted one.
// Columns of bytes come last: each peer has its own, and a peer that fetches a state does not get them.
const (
	roundColumns = 8 // stage, round, loss, val, val loss, bytes sent by class of traffic
	stageColumns = 9 // stage, best round, val, val loss, test, test loss, bytes sent by class of traffic
	sentColumns  = 3 // of both
)

// Encode returns the rounds, in rows of roundColumns numbers, and the stages that have ended, in rows of stageColumns.
func (r Result) Encode() (rounds, stages []float64) {
	for _, s := range r.Stages {
		for _, p := range s.Curve {
			rounds = append(rounds, float64(p.Stage), float64(p.Round), p.Loss, p.Val, p.ValLoss, float64(p.Sent.Halo),
				float64(p.Sent.Reduce), float64(p.Sent.Control))
		}
		if s.Ended {
			stages = append(stages, float64(s.Stage), float64(s.BestRound), s.Val, s.ValLoss, s.Test, s.TestLoss,
				float64(s.Sent.Halo), float64(s.Sent.Reduce), float64(s.Sent.Control))
		}
	}
	return rounds, stages
}

// Restore takes what Encode wrote of what was measured before position at. name returns the name of a stage.
func (r *Result) Restore(rounds, stages []float64, at Position, name func(stage int) string) error {
	if len(rounds)%roundColumns != 0 || len(stages)%stageColumns != 0 {
		return fmt.Errorf("results must be rows of %d and %d numbers (got %d and %d numbers)", roundColumns,
			stageColumns, len(rounds), len(stages))
	}
	sent := func(x []float64) comm.Counts {
		return comm.Counts{Halo: int64(x[0]), Reduce: int64(x[1]), Control: int64(x[2])}
	}
	var all Result
	for len(rounds) > 0 || len(stages) > 0 {
		if len(stages) == 0 || len(rounds) > 0 && rounds[0] <= stages[0] {
			x := rounds[:roundColumns]
			rounds = rounds[roundColumns:]
			all.Record(Event{Kind: RoundEnd, Stage: int(x[0]), StageName: name(int(x[0])), Round: int(x[1]), Loss: x[2],
				Val: x[3], ValLoss: x[4], Sent: sent(x[5:])})
			continue
		}
		x := stages[:stageColumns]
		stages = stages[stageColumns:]
		all.Record(Event{Kind: StageEnd, Stage: int(x[0]), StageName: name(int(x[0])), BestRound: int(x[1]), Val: x[2],
			ValLoss: x[3], Test: x[4], TestLoss: x[5], Sent: sent(x[6:])})
	}
	r.Stages = all.Until(at).Stages
	return nil
}
