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
	waiting, done := make(chan Event, 4096), make(chan struct{})
	add := func(e Event) {
		for {
			select {
			case waiting <- e:
				return
			default:
			}
			select {
			case <-waiting: // the oldest one
			default:
			}
		}
	}
	var r *Result
	var err error
	go func() {
		defer close(done)
		r, err = run(add)
	}()
	events = func(yield func(Event) bool) {
		for {
			var e Event
			select {
			case e = <-waiting:
			case <-done:
				select {
				case e = <-waiting:
				default:
					return
				}
			}
			if !yield(e) {
				return
			}
		}
	}
	return events, func() (*Result, error) {
		<-done
		return r, err
	}
}
