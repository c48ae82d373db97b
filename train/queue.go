package train

import "sync"

// mostEvents is how many events wait for a reader at most.
const mostEvents = 4096

// EventQueue has the last 4,096 events that no reader has taken, so that a reader does not delay the run.
type EventQueue struct {
	changed chan struct{} // capacity 1: there are events, or it is the end

	mu   sync.Mutex
	all  []Event
	over bool
}

// NewEventQueue returns an empty queue.
func NewEventQueue() *EventQueue { return &EventQueue{changed: make(chan struct{}, 1)} }

// Add adds an event. It does not block.
func (q *EventQueue) Add(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.all) == mostEvents {
		q.all = q.all[1:]
	}
	q.all = append(q.all, e)
	q.wake()
}

// End ends the iterations when their events are read.
func (q *EventQueue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.wake()
}

func (q *EventQueue) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// All yields the events as they come, up to End. Several may read at once: each event goes to one of them.
func (q *EventQueue) All(yield func(Event) bool) {
	for {
		q.mu.Lock()
		if len(q.all) > 0 {
			e := q.all[0]
			q.all = q.all[1:]
			q.mu.Unlock()
			if !yield(e) {
				return
			}
			continue
		}
		over := q.over
		if over {
			q.wake() // other readers
		}
		q.mu.Unlock()
		if over {
			return
		}
		<-q.changed
	}
}
