package runs

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// Bytes are what all members of a simulation sent.
type Bytes struct {
	Shares int64 `json:"shares"` // by phones whose shares all left
	Lost   int64 `json:"lost"`   // shares and sums of phones that left in between
	Sums   int64 `json:"sums"`   // to phones
	Frames int64 `json:"frames"` // headers, hellos and requests of phones, both ways
	Sites  int64 `json:"sites"`  // between sites, everything
}

// Outcome is what came of a simulation.
type Outcome struct {
	Participation float64 `json:"participation"`
	Counted       float64 `json:"counted"` // phones in a sum, on average, over all phones
	Exchanges     int     `json:"exchanges"`
	Rounds        int     `json:"rounds"`
	Seconds       float64 `json:"simulated_seconds"`
	Accuracy      float64 `json:"accuracy"` // over the test nodes of all members, also of phones that took no part
	Late          int     `json:"late_shares"`

	Bytes   Bytes `json:"bytes"`
	Formula Bytes `json:"bytes_by_formula"` // shares and sums

	Sent      float64 `json:"phone_bytes_sent"`     // per phone that takes part
	Received  float64 `json:"phone_bytes_received"` //
	WakeUps   float64 `json:"phone_wake_ups"`       //
	Processor float64 `json:"phone_cpu_seconds"`    // on this machine
}

// outcome lets the phones that are behind catch up, which takes no simulated time, and measures.
func (w *world) outcome(ctx context.Context) (*Outcome, error) {
	o := &Outcome{Participation: w.participation, Exchanges: len(w.whole), Seconds: w.now.Seconds(), Late: w.late}
	w.known = len(w.whole)
	o.Rounds = len(w.sites[0].trainer.Result().Stages[0].Curve)
	right, tested, taking, rows := 0, 0, 0, 0
	sums := int64(0)
	for _, p := range w.phones {
		if p.takes {
			taking++
			rows += len(p.known.Rows)
			o.WakeUps += float64(p.wakeUps)
		}
		began := cli.ProcessorTime()
		for !p.done {
			var b [][]byte
			if p.waits >= 0 { // one that takes part fetches them some time
				var err error
				if b, _, err = w.fetch(ctx, p); err != nil {
					return nil, err
				}
			}
			if err := p.step(ctx, w, b); err != nil {
				return nil, fmt.Errorf("a phone: %w", err)
			}
			p.outbox = nil
		}
		if p.takes {
			w.processor += cli.ProcessorTime() - began
			o.Sent, o.Received = o.Sent+float64(p.sent), o.Received+float64(p.received)
		}
		right, tested = right+p.right, tested+p.tested
	}
	for _, s := range w.sites {
		r, t := score(s.trainer, s.shard)
		right, tested = right+r, tested+t
		w.all.Sites += s.group.Bytes().Total()
	}
	for k, n := range w.sites[0].numbers {
		if w.sites[0].widths[k] == 0 {
			o.Formula.Shares += int64(w.whole[k]) * w.agreed.SentBytes(n)
			sums += int64(taking) * w.agreed.FetchedBytes(n)
			continue
		}
		o.Formula.Shares += int64(w.whole[k])*w.agreed.SentBytes(0) + 8*int64(w.rows[k]*n)
		sums += int64(taking)*w.agreed.GatheredBytes(0) + 8*int64(w.agreed.Sites*rows*n)
	}
	o.Formula.Sums = sums
	w.all.Frames = int64(o.Sent+o.Received) - w.all.Shares - w.all.Lost - w.all.Sums
	o.Bytes = w.all
	o.Accuracy = float64(right) / float64(max(tested, 1))
	o.Counted = float64(w.counted) / float64(len(w.phones)*max(o.Exchanges, 1))
	for _, x := range []*float64{&o.Sent, &o.Received, &o.WakeUps} {
		*x /= float64(max(taking, 1))
	}
	o.Processor = w.processor.Seconds() / float64(max(taking, 1))
	return o, nil
}

// printOutcomes writes the outcomes side by side.
func printOutcomes(out io.Writer, r Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, format string, value func(o *Outcome) any) {
		fmt.Fprintf(t, "%s\t", name)
		for _, o := range r.Runs {
			fmt.Fprintf(t, format+"\t", value(o))
		}
		fmt.Fprintln(t)
	}
	row("phones that take part, %", "%.1f", func(o *Outcome) any { return 100 * o.Participation })
	row("in a sum, on average, %", "%.1f", func(o *Outcome) any { return 100 * o.Counted })
	row("exchanges", "%d", func(o *Outcome) any { return o.Exchanges })
	row("rounds of class means", "%d", func(o *Outcome) any { return o.Rounds })
	row("test accuracy, %", "%.2f", func(o *Outcome) any { return 100 * o.Accuracy })
	row("the same, pooled data, %", "%.2f", func(*Outcome) any { return 100 * r.Pooled })
	if r.Joined > 0 {
		row("and edges between phones, %", "%.2f", func(*Outcome) any { return 100 * r.Joined })
	}
	row("simulated time, s", "%.1f", func(o *Outcome) any { return o.Seconds })
	row("a phone: sent, kB", "%.1f", func(o *Outcome) any { return o.Sent / 1e3 })
	row("received, kB", "%.1f", func(o *Outcome) any { return o.Received / 1e3 })
	row("wake-ups", "%.2f", func(o *Outcome) any { return o.WakeUps })
	row("processor on this machine, ms", "%.1f", func(o *Outcome) any { return 1e3 * o.Processor })
	row("all: shares, MB", "%.3f", func(o *Outcome) any { return float64(o.Bytes.Shares) / 1e6 })
	row("by formula", "%.3f", func(o *Outcome) any { return float64(o.Formula.Shares) / 1e6 })
	row("sums to phones, MB", "%.3f", func(o *Outcome) any { return float64(o.Bytes.Sums) / 1e6 })
	row("by formula", "%.3f", func(o *Outcome) any { return float64(o.Formula.Sums) / 1e6 })
	row("lost half way, MB", "%.3f", func(o *Outcome) any { return float64(o.Bytes.Lost) / 1e6 })
	row("frames, MB", "%.3f", func(o *Outcome) any { return float64(o.Bytes.Frames) / 1e6 })
	row("between sites, MB", "%.3f", func(o *Outcome) any { return float64(o.Bytes.Sites) / 1e6 })
	return t.Flush()
}
