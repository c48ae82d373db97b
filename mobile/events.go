package mobile

import "sync"

// events waits to be delivered to a listener. A slow listener delays nothing: it misses older rounds and counts of
// bytes.
type events struct {
	to Listener // (nil = no listener)

	mu      sync.Mutex
	changed sync.Cond // of list and over
	list    []listenerEvent
	over    bool  // nothing is added any more
	wrong   error // returned by the listener, which is not called again
}

// mostEvents bounds the events that wait. Beyond it the oldest round or count of bytes is dropped.
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

func newEvents(to Listener) *events {
	q := &events{to: to}
	q.changed.L = &q.mu
	return q
}

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
	q.changed.Signal()
}

// close lets deliver end once it has delivered everything.
func (q *events) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.changed.Signal()
}

// fault returns the listener's error.
func (q *events) fault() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wrong
}

// deliver calls the listener with one event after the other. After the listener's first error it calls stop and not
// the listener.
func (q *events) deliver(stop func()) {
	for {
		q.mu.Lock()
		for len(q.list) == 0 && !q.over {
			q.changed.Wait()
		}
		if len(q.list) == 0 {
			q.mu.Unlock()
			return
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
