package runs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/session"
)

// commBench measures the connections of the peers of a plan, each on its machine, or of some in
// this process.
type commBench struct {
	cli.SiteFlags
	peers              int
	transport, carrier string
	megabytes, turns   int
}

func newBenchComm() *cobra.Command {
	b := commBench{}
	c := &cobra.Command{
		Use:   "comm (--peers K | --plan plan.yaml)",
		Short: "Measure round trips, throughput and sums between peers",
		Long: `Print for each pair of peers the round trip of a small message and the throughput of a large one, and the time of a
sum over all peers by its length, which layer-wise training needs in every round.

With --plan every peer of the plan runs the same command on its own machine, and all print the same table.
Without --plan the peers run in this process and connect over loopback or memory.`,
		Example: `  heddle bench comm --peers 4 --carrier tcp
  heddle bench comm --peers 2 --transport memory --link latency=15ms,rate=10Mbit --megabytes 1
  heddle bench comm --plan plan.yaml --identity site-a.key`,
		RunE: func(c *cobra.Command, _ []string) error {
			return b.run(c.Context(), cli.NewWatch(c.ErrOrStderr(), false), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.IntVar(&b.peers, "peers", 4, "peers in this process")
	f.StringVar(&b.transport, "transport", "libp2p", "connections of peers in this process: libp2p or memory")
	f.StringVar(&b.carrier, "carrier", "quic", "protocol between peers here: quic, tcp, noise, ws or auto")
	f.StringVar(&b.Link, "link", "", cli.LinkHelp)
	f.IntVar(&b.megabytes, "megabytes", 16, "length of the large message and of the longest sum")
	f.IntVar(&b.turns, "turns", 7, "turns; the median is printed")
	b.Bind(f, "plan whose peers are measured", "wait for the other peers, with --plan")
	return c
}

func (b commBench) run(ctx context.Context, w *cli.Watch, stdout io.Writer) error {
	if b.megabytes < 1 || b.megabytes > 1024 || b.turns < 1 {
		return cli.Invalidf("megabytes must be 1 to 1024 and turns at least 1 (got %d and %d)", b.megabytes, b.turns)
	}
	if b.Plan != "" {
		return b.member(ctx, w, stdout)
	}
	if b.peers < 2 || b.peers > 64 {
		return cli.Invalidf("peers must be 2 to 64 (got %d)", b.peers)
	}
	p := heddle.Defaults(heddle.Plan{})
	p.Transport, p.Carrier, p.Link = b.transport, b.carrier, b.Link
	if err := p.Validate(); err != nil {
		return cli.Invalid(err)
	}
	what := b.transport
	if what == "libp2p" {
		what += " over " + b.carrier
	}
	fmt.Fprintf(stdout, "%d peers in one process, %s\n", b.peers, what)
	names := make([]string, b.peers)
	for r := range names {
		names[r] = fmt.Sprintf("peer %d", r)
	}
	return heddle.Groups(ctx, p, b.peers, func(ctx context.Context, g *comm.Group) error {
		out := io.Discard
		if g.Rank() == 0 {
			out = stdout
		}
		return b.measure(ctx, g, names, out)
	})
}

// member measures as one peer of a plan.
func (b commBench) member(ctx context.Context, w *cli.Watch, stdout io.Writer) error {
	p, _, err := b.Sit(w)
	if err != nil {
		return err
	}
	return heddle.Meet(ctx, *p, b.Site, "bench comm", func(ctx context.Context, m *session.Session) error {
		fmt.Fprintf(stdout, "%d peers of %s, carrier %s\n", len(p.Members), b.Plan, p.Carrier)
		return b.measure(ctx, m.Group, p.Names(), stdout)
	})
}

// measure measures pair by pair and then all peers together, and prints the results.
func (b commBench) measure(ctx context.Context, g *comm.Group, names []string, w io.Writer) error {
	large := b.megabytes << 20 / 4
	fmt.Fprintf(w, "\n%-16s %-16s %14s %14s\n", "from", "to", "round trip", fmt.Sprintf("%d MiB", b.megabytes))
	for from := range g.Size() {
		for to := range g.Size() {
			if from == to {
				continue
			}
			small, err := b.pair(ctx, g, from, to, 1)
			if err != nil {
				return err
			}
			long, err := b.pair(ctx, g, from, to, large)
			if err != nil {
				return err
			}
			// Without the way back. A small message that was delayed may have taken longer than the
			// large one.
			rate := float64(4*large) / max(long-min(small, long)/2, 1e-9)
			fmt.Fprintf(w, "%-16s %-16s %14s %12s/s\n", names[from], names[to], seconds(small), cli.Bytes(int64(rate)))
		}
	}
	fmt.Fprintf(w, "\n%-16s %14s %14s\n", "sum over all of", "takes", "each sends")
	for n := 256; ; n *= 16 {
		n = min(n, large)
		took, err := b.sum(ctx, g, n)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-16s %14s %12s/s\n", cli.Bytes(int64(4*n)), seconds(took),
			cli.Bytes(int64(float64(2*4*n*(g.Size()-1))/float64(g.Size())/took)))
		if n == large {
			return nil
		}
	}
}

// pair sends n floats one way and one back, and returns the median time, which is the same at all
// peers.
func (b commBench) pair(ctx context.Context, g *comm.Group, from, to, n int) (float64, error) {
	there, back := make([]float32, n), make([]float32, 1)
	return b.median(ctx, g, from, func() error {
		for _, way := range []struct {
			from, to int
			x        []float32
		}{{from, to, there}, {to, from, back}} {
			out, in := make([][]float32, g.Size()), make([][]float32, g.Size())
			switch g.Rank() {
			case way.from:
				out[way.to] = way.x
			case way.to:
				in[way.from] = way.x
			}
			if err := g.Exchange(ctx, comm.Control, "bench", out, in); err != nil {
				return err
			}
		}
		return nil
	})
}

// sum adds n floats over all peers.
func (b commBench) sum(ctx context.Context, g *comm.Group, n int) (float64, error) {
	x := make([]float32, n)
	return b.median(ctx, g, everyone, func() error { return g.AllReduce(ctx, comm.Control, x) })
}

// median returns the median time of a turn in seconds, the same at all peers: that of peer who, or
// with everyone the longest. The first turn does not count.
func (b commBench) median(ctx context.Context, g *comm.Group, who int, turn func() error) (float64, error) {
	var all []float64
	for k := range b.turns + 1 {
		if err := g.Barrier(ctx); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := turn(); err != nil {
			return 0, err
		}
		if k > 0 {
			all = append(all, time.Since(start).Seconds())
		}
	}
	slices.Sort(all)
	took := make([]float32, g.Size())
	took[g.Rank()] = float32(all[len(all)/2])
	err := g.AllReduce(ctx, comm.Control, took)
	if who == everyone {
		return float64(slices.Max(took)), err
	}
	return float64(took[who]), err
}

const everyone = -1

func seconds(x float64) string {
	return time.Duration(x * float64(time.Second)).Round(time.Microsecond).String()
}
