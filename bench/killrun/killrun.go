// Package killrun kills peers of real runs, as kill -9 does, in named phases, starts them again and
// checks that every run ends with the model of an undisturbed one.
package killrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/rng"
)

const peers = 3

var carriers = []string{"quic", "tcp"}

// experiment is a number of runs.
type experiment struct {
	dir   string // of everything
	peer  string // program under test
	seed  uint64
	limit time.Duration // for the whole of one run
	log   io.Writer     // gets each run's record as one line of JSON

	undisturbed map[string]string        // digest of the model's tensors, by method
	took        map[string]time.Duration // by an undisturbed run, from the start of its processes, by method
	session     map[string]time.Duration // of one of them from the begin of its session, by method and carrier
}

// record is what one run came to.
type record struct {
	Run     int     `json:"run"`
	Method  string  `json:"method"`
	Carrier string  `json:"carrier"`
	Phase   string  `json:"phase"`
	Victim  int     `json:"victim"`
	Proof   string  `json:"proof"`   // last line of the victim's log that shows where it was when it was killed
	Counted bool    `json:"counted"` // the victim was alive and in the phase
	Outcome string  `json:"outcome"` // same model, other model, failed or hung
	Restart float64 `json:"restart_s"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"` // of what went wrong: the ends of all logs
}

// The outcomes.
const (
	same   = "same model"
	other  = "other model"
	failed = "failed"
	hung   = "hung"
)

// prepare makes the graph, its parts and a plan for each method and carrier, and trains once without a kill by each.
func (x *experiment) prepare(ctx context.Context, chosen []method) error {
	if err := x.fixture(ctx, chosen); err != nil {
		return err
	}
	x.undisturbed, x.took, x.session = make(map[string]string), make(map[string]time.Duration),
		make(map[string]time.Duration)
	for _, m := range chosen {
		if err := x.undisturb(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// undisturb trains by a method over each carrier.
func (x *experiment) undisturb(ctx context.Context, m method) error {
	for _, carrier := range carriers {
		c := x.crew("undisturbed-"+m.name+"-"+carrier, m, carrier)
		start := time.Now()
		for r := range peers {
			if err := c.start(r); err != nil {
				return err
			}
		}
		outcome, detail := c.wait(ctx, x.limit)
		if outcome != same {
			return fmt.Errorf("the undisturbed run by %s over %s %s: %s", m.name, carrier, outcome, detail)
		}
		x.took[m.name], x.session[m.name+carrier] = time.Since(start), c.processes[0].took
		digest, err := c.digest()
		if err != nil {
			return err
		}
		if was, ok := x.undisturbed[m.name]; ok && digest != was {
			return fmt.Errorf("undisturbed runs by %s over QUIC and TCP must give the same model", m.name)
		}
		x.undisturbed[m.name] = digest
	}
	return nil
}

// run makes run number n: it kills one peer in a phase and starts it again.
func (x *experiment) run(ctx context.Context, n int, m method, carrier string, ph phase) (record, error) {
	key := rng.New(x.seed).FoldString("kill run").Fold(uint64(n))
	draw := func(i uint64, most time.Duration) time.Duration { return time.Duration(key.Float64(i) * float64(most)) }
	victim := int(key.Uint64(0) % peers)
	rec := record{Run: n, Method: m.name, Carrier: carrier, Phase: ph.name, Victim: victim}
	c := x.crew(fmt.Sprintf("run-%d", n), m, carrier)
	defer c.remove()
	begun := time.Now()
	for i, r := range key.Fold(1).Perm(peers) {
		if err := c.start(int(r)); err != nil {
			c.stop()
			return rec, err
		}
		if i < peers-1 {
			time.Sleep(draw(uint64(1+i), startSpread))
		}
	}
	first := c.processes[victim]
	reached := first.await(ctx, ph.marker(m, key.Fold(2)), x.limit/2)
	switch {
	case ph.name == "random":
		time.Sleep(draw(4, x.took[m.name]*9/10))
	case ph.name == lastMoments && reached:
		time.Sleep(x.session[m.name+carrier] - draw(4, lastSpread))
	case reached:
		time.Sleep(draw(4, ph.spread))
	}
	alive := first.kill()
	if !alive && first.err == nil { // another undisturbed run
		x.session[m.name+carrier] = first.took
	}
	last := first.last()
	rec.Proof, rec.Counted = last.String(), alive && ph.in(m, last)
	if alive { // or else it has ended by itself, and the run is one without a kill
		pause := draw(5, restartSpread)
		rec.Restart = pause.Seconds()
		time.Sleep(pause)
		if err := c.start(victim); err != nil {
			c.stop()
			return rec, err
		}
	}
	rec.Outcome, rec.Detail = c.wait(ctx, x.limit)
	rec.Seconds = time.Since(begun).Seconds()
	if rec.Outcome == same {
		digest, err := c.digest()
		switch {
		case errors.Is(err, errDiffer):
			rec.Outcome, rec.Detail = other, err.Error()
		case err != nil:
			rec.Outcome, rec.Detail = failed, err.Error()
		case digest != x.undisturbed[m.name]:
			rec.Outcome = other
		}
	}
	if rec.Outcome != same {
		rec.Detail = strings.TrimSpace(
			fmt.Sprintf("first process of peer %d:\n%s\n%s", victim, first.tail(), rec.Detail))
	}
	return rec, ctx.Err()
}

const (
	startSpread   = 300 * time.Millisecond  // between the starts of two processes
	restartSpread = 1500 * time.Millisecond // from the kill to the new process
)

// note keeps a run's record.
func (x *experiment) note(rec record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	_, err = x.log.Write(append(b, '\n'))
	return err
}

func (x *experiment) path(names ...string) string {
	return filepath.Join(append([]string{x.dir}, names...)...)
}
