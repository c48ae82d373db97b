package retexo

import (
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
)

// A checkpoint holds what was measured as rows of numbers, so that the report of a run that was stopped is that of one
// that was not; only the bytes count from the last start.
const (
	roundColumns = 8 // stage, round, loss, val, val loss, bytes by door
	stageColumns = 9 // stage, best round, val, val loss, test, test loss, bytes by door
)

func (r Result) rounds() (rows []float64) {
	for _, i := range r.Rounds {
		b := i.Bytes
		rows = append(rows, float64(i.Stage), float64(i.Round), i.Loss, i.Val, i.ValLoss, float64(b.Halo), float64(b.Reduce), float64(b.Control))
	}
	return rows
}

func (r Result) stages() (rows []float64) {
	for _, i := range r.Stages {
		b := i.Bytes
		rows = append(rows, float64(i.Stage), float64(i.BestRound), i.Val, i.ValLoss, i.Test, i.TestLoss, float64(b.Halo), float64(b.Reduce), float64(b.Control))
	}
	return rows
}

// restore takes what was measured before position at: what follows will be measured again.
func (r *Result) restore(rounds, stages []float64, at Position) error {
	if len(rounds)%roundColumns != 0 || len(stages)%stageColumns != 0 {
		return fmt.Errorf("results of %d and %d numbers, want rows of %d and %d", len(rounds), len(stages), roundColumns, stageColumns)
	}
	counts := func(x []float64) comm.Counts {
		return comm.Counts{Halo: int64(x[0]), Reduce: int64(x[1]), Control: int64(x[2])}
	}
	for ; len(rounds) > 0; rounds = rounds[roundColumns:] {
		i := RoundInfo{Stage: int(rounds[0]), Round: int(rounds[1]), Loss: rounds[2], Val: rounds[3], ValLoss: rounds[4], Bytes: counts(rounds[5:])}
		if i.Stage < at.Stage || i.Stage == at.Stage && i.Round < at.Round {
			r.Rounds = append(r.Rounds, i)
		}
	}
	for ; len(stages) > 0; stages = stages[stageColumns:] {
		i := StageInfo{Stage: int(stages[0]), BestRound: int(stages[1]), Val: stages[2], ValLoss: stages[3], Test: stages[4], TestLoss: stages[5], Bytes: counts(stages[6:])}
		if i.Stage < at.Stage {
			r.Stages = append(r.Stages, i)
		}
	}
	return nil
}
