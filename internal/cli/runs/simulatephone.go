package runs

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// phone is one leaf. Its trainer runs in a separate goroutine, which works only while the simulation waits for it.
type phone struct {
	number int
	shard  *shard.Shard
	device *device
	there  *presence
	token  leaf.Token
	key    rng.Key // of what is lost
	takes  bool    // part in the run
	known  shard.BorderNodes
	told   int // bytes of a site's description of its nodes that have edges

	trainer *classmeans.Trainer
	asked   chan sumsRequest // what it waits for
	answer  chan [][]byte    // it, of one site or of all
	ended   chan error
	outbox  []message

	waits     int  // for the sums of this exchange (−1 = it has not begun)
	parts     bool // which are over neighbours: all sites have a part of them
	scheduled bool // an event will wake it
	done      bool

	idle   time.Duration // when its last frame has left
	active time.Duration // when it last sent or received
	frames uint64

	wakeUps        int
	sent, received int64 // bytes, frames included
	right, tested  int   // test nodes, by the final model
}

// message is a share on its way to a site.
type message struct {
	site  int
	share []byte
}

// Send implements leaf.Uplink: the simulation brings the share to the site in its own time.
func (p *phone) Send(_ context.Context, site int, share []byte) error {
	p.outbox = append(p.outbox, message{site, share})
	return nil
}

// Sums implements leaf.Uplink.
func (p *phone) Sums(ctx context.Context, _, exchange int) ([]byte, error) {
	all, err := p.ask(ctx, sumsRequest{exchange, false})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Parts implements leaf.Uplink.
func (p *phone) Parts(ctx context.Context, exchange int) ([][]byte, error) {
	return p.ask(ctx, sumsRequest{exchange, true})
}

// sumsRequest is for the sums of an exchange.
type sumsRequest struct {
	exchange int
	parts    bool
}

// ask waits until the simulation answers.
func (p *phone) ask(ctx context.Context, r sumsRequest) ([][]byte, error) {
	select {
	case p.asked <- r:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case b := <-p.answer:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// newPhone returns the phone of that number, with a random kind.
func newPhone(number int, s *shard.Shard, seed uint64, trace string) *phone {
	key := rng.New(seed).FoldString("phone").Fold(uint64(number))
	p := &phone{number: number, shard: s, key: key, waits: -1, device: &devices[0], active: -forever}
	u := key.Float64(0)
	for k := range devices {
		if p.device = &devices[k]; u < devices[k].share {
			break
		}
		u -= devices[k].share
	}
	binary.LittleEndian.PutUint64(p.token[:], key.Uint64(1))
	binary.LittleEndian.PutUint64(p.token[8:], uint64(number))
	var moves *device
	if trace == "day" {
		moves = p.device
	}
	p.there = newPresence(moves, key.Fold(1))
	return p
}

// step lets the phone work until it waits for sums, which b are if it did so before, or has ended.
func (p *phone) step(ctx context.Context, w *world, b [][]byte) error {
	if p.waits < 0 {
		trainer, err := classmeans.New(w.config, p.shard)
		if err != nil {
			return err
		}
		trainer.Leaves, trainer.AllRounds = true, w.allRounds
		p.trainer, p.asked, p.answer, p.ended = trainer, make(chan sumsRequest), make(chan [][]byte), make(chan error,
			1)
		one := &leaf.Contributor{Agreement: w.agreed, Token: p.token, Uplink: p, Known: p.known}
		if w.agreed.Edges {
			trainer.Beyond = one
		}
		go func() {
			g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			p.ended <- trainer.Run(ctx, g, one)
		}()
	} else {
		p.answer <- b
	}
	select {
	case r := <-p.asked:
		p.waits, p.parts = r.exchange, r.parts
		return nil
	case err := <-p.ended:
		if p.done = true; err == nil {
			p.right, p.tested = score(p.trainer, p.shard)
		}
		p.trainer = nil
		return err
	}
}

// score counts the test nodes of s that the model is right about, and all.
func score(t *classmeans.Trainer, s *shard.Shard) (right, tested int) {
	logits := t.Logits()
	for _, i := range s.NodesIn(graph.Test) {
		c := s.Labels.Class[i]
		if c < 0 {
			continue
		}
		if tested++; int32(eval.ArgMax(logits.Row(int(i)))) == c {
			right++
		}
	}
	return right, tested
}

// uses notes that the phone sends or receives n bytes at t. A radio that was silent for some seconds has to wake up.
func (p *phone) uses(t time.Duration) {
	if t > p.active+radioTail || p.active == -forever {
		p.wakeUps++
	}
	p.active = max(p.active, t)
}

// radioTail is how long a radio stays awake after it was used.
const radioTail = 5 * time.Second

// send returns when n bytes that the phone hands over at t have left it, and when they arrive.
func (p *phone) send(t time.Duration, n int) (left, arrived time.Duration) {
	p.frames++
	busy, flight := p.device.up.Delivery(n, p.key.Fold(2).Float64(p.frames))
	p.idle = max(p.idle, t) + busy
	return p.idle, p.idle + flight
}
