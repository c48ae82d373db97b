package heddle

import (
	"iter"

	"github.com/heddle-gnn/heddle/train"
)

// Event reports what happened in a run: the end of a round or a stage, a failure, a warning. Progress bars, logs,
// reports and audit logs subscribe to the same events.
type Event = train.Event

// Events starts run, which passes onEvent on to Train's Local, Join's Site or Compare's Trial, and returns its events
// as they come, and what waits for its result. A slow reader, one that stops early, or none, does not delay the run:
// events that have no reader are kept, the last 4,096. The events end with the run.
func Events(run func(onEvent func(Event)) (*Result, error)) (events iter.Seq[Event], wait func() (*Result, error)) {
	q := train.NewEventQueue()
	done := make(chan struct{})
	var r *Result
	var err error
	go func() {
		defer close(done)
		defer q.End()
		r, err = run(q.Add)
	}()
	return q.All, func() (*Result, error) {
		<-done
		return r, err
	}
}
