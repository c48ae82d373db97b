package retexo

import "github.com/heddle-gnn/heddle/comm"

// Observer is told what happens, synchronously; its callbacks must not block. Any may be nil.
type Observer struct {
	RoundEnd func(RoundInfo)
	StageEnd func(StageInfo)
	Sync     func(stage, round, from int, differed bool) // parameters were fetched again; differed: this peer's were others
	Saved    func(Position)                              // a checkpoint is on disk
	Restored func(Position)
}

// RoundInfo is one round, summed over all peers.
type RoundInfo struct {
	Stage, Round int
	Loss         float64     // mean over the training labels, before the round's step
	Val, ValLoss float64     // metric and mean loss of the validation labels; NaN: not looked at
	Bytes        comm.Counts // sent by this peer so far
}

// StageInfo is one finished stage, summed over all peers.
type StageInfo struct {
	Stage, BestRound int // the round whose parameters were taken
	Val, ValLoss     float64
	Test, TestLoss   float64
	Bytes            comm.Counts // sent by this peer so far
}

// Result is what a run measured. The last stage's Test is the model's.
type Result struct {
	Rounds []RoundInfo
	Stages []StageInfo
	Bytes  comm.Counts // sent by this peer
}
