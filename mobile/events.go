package mobile

import "sync"

// events are what a listener has not been told yet. A slow listener holds nothing up: of rounds and
// bytes it is told the latest ones.
type events struct {
	to Listener // nil: nobody is told

	mu    sync.Mutex
	list  []listenerEvent
	over  bool  // nothing is added any more
	wrong error // of the listener, which is told nothing more
	woken chan struct{}
}

// mostEvents bounds the events that wait: then the oldest one of a round or of bytes makes room.
const mostEvents = 256

type eventKind int

const (
	isState eventKind = iota
	isRound
	isBytes
	isError
)

type listenerEvent struct {
	what         eventKind
	text, detail string
	done, total  int
	loss, metric float64
	sent         int64
}

func newEvents(to Listener) *events { return &events{to: to, woken: make(chan struct{}, 1)} }

func (q *events) add(e listenerEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || q.to == nil || q.wrong != nil {
		return
	}
	if len(q.list) >= mostEvents {
		for i, old := range q.list {
			if old.what == isRound || old.what == isBytes {
				q.list = append(q.list[:i], q.list[i+1:]...)
				break
			}
		}
	}
	q.list = append(q.list, e)
	q.wake()
}

// close lets deliver end when it has told all that was added.
func (q *events) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.wake()
}

func (q *events) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// fault returns what the listener failed with.
func (q *events) fault() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wrong
}

// deliver tells the listener one event after the other. Its first error is the last call: stop is
// told.
func (q *events) deliver(stop func()) {
	for range q.woken {
		for {
			q.mu.Lock()
			if len(q.list) == 0 {
				over := q.over
				q.mu.Unlock()
				if over {
					return
				}
				break
			}
			e := q.list[0]
			q.list = q.list[1:]
			q.mu.Unlock()
			if err := e.tell(q.to); err != nil {
				q.mu.Lock()
				q.wrong, q.list = err, nil
				q.mu.Unlock()
				stop()
			}
		}
	}
}

func (e listenerEvent) tell(l Listener) error {
	switch e.what {
	case isRound:
		return l.OnRound(e.done, e.total, e.loss, e.metric)
	case isBytes:
		return l.OnBytes(e.sent)
	case isError:
		return l.OnError(e.text, e.detail)
	}
	return l.OnState(e.text, e.detail)
}
