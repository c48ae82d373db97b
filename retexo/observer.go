package retexo

import "github.com/heddle-gnn/heddle/comm"

// Observer is told what happens, synchronously; its callbacks must not block. Any may be nil.
type Observer struct {
	RoundEnd func(RoundInfo)
	StageEnd func(StageInfo)
	Sync     func(stage, round, from int, differed bool) // parameters were fetched again; differed: this peer's were others
	Saved    func(Position)                              // a checkpoint is on disk
	Restored func(Position)

	Generation func(GenerationInfo) // a generation goes on from where it says
	LostRows   func(LostRowsInfo)   // an exchange went without some peer's rows
	Share      func(ShareInfo)      // straggler adapt: a peer is given less local work, or more again
}

// GenerationInfo is one set of members and where they went on. There are none where every lost peer is waited for.
type GenerationInfo struct {
	Number       uint64
	Members      []int // ranks
	Stage, Round int
}

// LostRowsInfo is what this peer did about the rows of a peer that was not there when they were exchanged.
type LostRowsInfo struct {
	Stage, Hop, Peer int
	Rows             int    // of the peer's nodes, that edges come from
	Did              string // "previous": the rows of the exchange before were used; "drop": those edges were left out
}

// ShareInfo is how much of its training nodes a peer's steps are computed from, from the round that it names on. The loss of
// such rounds is an estimate.
type ShareInfo struct {
	Stage, Round, Peer int
	Share              float64 // in (0, 1]
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

	Generations []GenerationInfo // of this process; what it did before it was started again is not in them
	LostRows    []LostRowsInfo
	Shares      []ShareInfo
}
