package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/plan"
)

// command has the flags of heddle simulate.
type command struct {
	data          string
	phones, sites int
	rounds, hops  int
	target        string
	labelled      float64
	participation []float64
	edges, single bool
	settings
	json bool
}

// newSimulate returns heddle simulate.
func newSimulate() *cobra.Command {
	var c command
	one := &cobra.Command{
		Use:   "simulate [--data D] [--phones N]",
		Short: "Simulate sites and thousands of phones",
		Long: `Simulate a federation in which phones send shares of their numbers to sites
(docs/explanation/phones.md). Print time, bytes, wake-ups and accuracy, next to the accuracy with pooled data.

Network time is simulated; the code is the real one. Without --data each phone has a generated graph of 20 to 40 nodes
with labels. A data set is cut into communities of at least 20 nodes, one for each member. Only the last pooled run
uses edges between them; with --edges all runs do, and the sites know these edges. With
--single each phone is one node of the data set, and the sites know all its edges.

Trace always: phones are present all the time. Trace day: one in ten is always on a LAN; six in ten charge at
night on DSL, for 10 minutes in 15; three in ten are in use on 4G, for 4 minutes in 20. The run begins at one in the
morning.`,
		Example: `  heddle simulate --phones 10000
  heddle simulate --phones 1000 --trace day --quorum 0.3 --participation 1,0.3,0.1
  heddle simulate --data data/facebook-pages --labelled 0.3
  heddle simulate --data data/cora --single`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.simulateAll(cmd) },
	}
	f := one.Flags()
	f.StringVar(&c.data, "data", "", "data set instead of generated graphs")
	cli.Reads(f, "data")
	f.IntVar(&c.phones, "phones", 0, "phones (default: 1000, or one for 20 nodes of --data)")
	f.IntVar(&c.sites, "sites", 3, "sites, of them the first 64 collect shares")
	f.BoolVar(&c.edges, "edges", false, "use edges between members, which the sites know")
	f.BoolVar(&c.single, "single", false, "each phone is one node of the data set, with its edges")
	f.IntVar(&c.rounds, "rounds", 0, "most rounds of class means (default: as heddle train)")
	f.BoolVar(&c.allRounds, "all-rounds", false, "run all rounds, even if they validate no better")
	f.IntVar(&c.hops, "hops", 2, "aggregations of the columns")
	f.StringVar(&c.target, "class-target", "labels", "what a round after the first learns from (labels, residual)")
	f.Float64Var(&c.labelled, "labelled", 0, "fraction to train on (default: the data's split, else 0.3)")
	f.Float64SliceVar(&c.participation, "participation", []float64{1}, "fractions of phones that take part, "+
		"each a run (default: 1)")
	f.StringVar(&c.trace, "trace", "always", "when phones are present (always, day)")
	f.DurationVar(&c.deadline, "deadline", time.Minute, "time after which a sum closes")
	f.Float64Var(&c.quorum, "quorum", 1, "fraction of the phones with which a sum closes")
	f.IntVar(&c.least, "least-leaves", 20, "fewest phones of a sum")
	f.Uint64Var(&c.seed, "seed", 1, "random seed")
	f.BoolVar(&c.json, "json", false, "print JSON")
	cli.ShortHelp(one, "data", "phones", "sites", "single", "edges", "labelled", "trace", "participation", "quorum",
		"deadline", "seed", "json")
	return one
}

// check returns the first fault of the flags.
func (c *command) check() error {
	switch {
	case c.sites < 2 || c.sites > secagg.MostMembers:
		return cli.Invalidf("--sites must be 2 to %d (got %d)", secagg.MostMembers, c.sites)
	case c.phones < 0 || c.phones == 1 || c.phones > 1<<20:
		return cli.Invalidf("--phones must be 2 to %d (got %d)", 1<<20, c.phones)
	case (c.edges || c.single) && c.data == "" || c.single && c.phones > 0:
		return cli.Invalidf("--edges and --single must be with --data, and --single without --phones")
	case c.trace != "always" && c.trace != "day":
		return cli.Invalidf("--trace must be always or day (got %q)", c.trace)
	case c.deadline <= 0 || c.deadline > day:
		return cli.Invalidf("--deadline must be above 0 and at most 24h (got %v)", c.deadline)
	case !(c.quorum > 0 && c.quorum <= 1):
		return cli.Invalidf("--quorum must be above 0 and at most 1 (got %g)", c.quorum)
	case !(c.labelled >= 0 && c.labelled <= 0.5):
		return cli.Invalidf("--labelled must be 0 to 0.5 (got %g)", c.labelled)
	case len(c.participation) == 0:
		return cli.Invalidf("--participation must have at least one fraction")
	}
	for _, x := range c.participation {
		if !(x > 0 && x <= 1) {
			return cli.Invalidf("--participation must be above 0 and at most 1 (got %g)", x)
		}
	}
	return nil
}

// Result is what heddle simulate --json prints.
type Result struct {
	Data    string     `json:"data"`
	Sites   int        `json:"sites"`
	Phones  int        `json:"phones"`
	Nodes   int        `json:"nodes"`                     // of all sites and phones
	Pooled  float64    `json:"pooled_accuracy"`           // of one peer with all data
	Joined  float64    `json:"joined_accuracy,omitempty"` // of pooled data with the edges between members
	Runs    []*Outcome `json:"runs"`                      // one for each participation
	Seconds float64    `json:"seconds"`                   // on this machine
	Memory  int64      `json:"peak_memory"`               // bytes, of this process
}

func (c *command) simulateAll(cmd *cobra.Command) error {
	if err := c.check(); err != nil {
		return err
	}
	began := time.Now()
	m, name, err := c.members()
	if err != nil {
		return err
	}
	config, err := c.config(m)
	if err != nil {
		return err
	}
	r := Result{Data: name, Sites: len(m.sites), Phones: len(m.phones), Nodes: m.pooled.N()}
	for _, x := range c.participation {
		s := c.settings
		s.participation = x
		o, err := simulate(cmd.Context(), config, m, s)
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, o)
	}
	if r.Pooled, err = pool(cmd.Context(), config, m.pooled, c.allRounds); err != nil {
		return err
	}
	if m.joined != nil {
		if r.Joined, err = pool(cmd.Context(), config, m.joined, c.allRounds); err != nil {
			return err
		}
	}
	r.Seconds, r.Memory = time.Since(began).Seconds(), cli.PeakMemory()
	out := cmd.OutOrStdout()
	if c.json {
		return cli.WriteJSON(out, cli.Stdout, r)
	}
	fmt.Fprintf(out, "%d sites and %d phones, %s: %d nodes, trace %s\n\n", r.Sites, r.Phones, r.Data, r.Nodes, c.trace)
	if err := printOutcomes(out, r); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthis machine: %.0f s, %.2f GiB at most\n", r.Seconds, float64(r.Memory)/(1<<30))
	return nil
}

// members returns the federation's data and what it is called.
func (c *command) members() (m members, name string, err error) {
	if c.data != "" {
		m, err = c.dealt()
		if err == nil {
			name = m.pooled.Name
		}
		return m, name, err
	}
	if c.phones == 0 {
		c.phones = 1000
	}
	if c.labelled == 0 {
		c.labelled = 0.3
	}
	return generated(c.sites, c.phones, c.labelled, c.seed), "generated", nil
}

// config returns the configuration of all members: one closed form, without what leaves cannot have.
func (c *command) config(of members) (classmeans.Config, error) {
	p := heddle.Defaults(plan.ClassMeans, "")
	p.Seed = c.seed
	m := &p.ClassMeans
	m.ClassRounds, m.Hops, m.ClassTarget, m.RandomFeatures = c.rounds, c.hops, c.target, 0
	config, err := p.ClosedForm(of.sites[0])
	if err != nil {
		return config, cli.Invalid(err)
	}
	config.LastHop, config.Few = true, false
	return config, nil
}

// pool returns the test accuracy of one peer that has all data.
func pool(ctx context.Context, c classmeans.Config, g *graph.Graph, allRounds bool) (float64, error) {
	whole := shard.Whole(g)
	t, err := classmeans.New(c, whole)
	if err != nil {
		return 0, err
	}
	t.AllRounds = allRounds
	group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	if err := t.Run(ctx, group, group); err != nil {
		return 0, err
	}
	right, tested := score(t, whole)
	return float64(right) / float64(max(tested, 1)), nil
}
