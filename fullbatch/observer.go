package fullbatch

import (
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
)

// Observer is told what happens, synchronously; its callbacks must not block. Any may be nil.
type Observer struct {
	Planned  func(Plan) // before the first epoch, of each layer that sees edges
	EpochEnd func(EpochInfo)
	Saved    func(epoch int) // a checkpoint is on disk
	Restored func(epoch int)
}

// Plan is how the halo rows of one layer come to this worker.
type Plan struct {
	Layer string
	Rows  int    // of the halo that a step reads
	Width int    // values of a row that travel
	Again int    // rows that are fetched again for the gradient, at every step
	Kept  int64  // bytes kept: until the gradient has been computed or, of the first layer, for the run
	Why   string // what decided it
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
	Memory         Memory      // held by this worker for a step
}

// Memory is how many bytes a worker holds for a step, besides parameters, the shard and what the transport buffers.
type Memory struct {
	Tape  nn.Memory // of its own nodes: all of it falls as one over the number of workers
	Halo  int64     // most that was held at a time of halo rows and of their gradients
	First int64     // of the features of the halo, or of their aggregate, kept for the run
	Edges int64     // of the step's edges
}
