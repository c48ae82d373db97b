package fullbatch

import "github.com/heddle-gnn/heddle/comm"

// Observer is told what happens, synchronously; its callbacks must not block. Any may be nil.
type Observer struct {
	EpochEnd func(EpochInfo)
	Saved    func(epoch int) // a checkpoint is on disk
	Restored func(epoch int)
}

// EpochInfo is one epoch.
type EpochInfo struct {
	Epoch        int
	Loss         float64     // mean over the training labels, before the epoch's step
	Val, ValLoss float64     // metric and mean loss of the validation labels; NaN: not looked at
	Bytes        comm.Counts // sent by this worker so far
}

// Result is what a run measured.
type Result struct {
	Epochs         []EpochInfo
	BestEpoch      int
	Val, ValLoss   float64
	Test, TestLoss float64
	Bytes          comm.Counts // sent by this worker
}
