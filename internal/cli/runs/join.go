package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/compare"
	"github.com/heddle-gnn/heddle/internal/cli/launch"
	"github.com/heddle-gnn/heddle/internal/cli/live"
	"github.com/heddle-gnn/heddle/internal/cli/phones"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// member is one peer of a run on several machines.
type member struct {
	cli.Seat
	shard  string // path, or several with commas between
	init   string // model file that training starts from; empty: none
	leaves string // file of rules for phones; empty: none
	out    output
	launch launch.Flags
	http   live.Flags
	alone  bool // peer compare: also train at this site alone, and compare

	warnings []string // of the import of this site's tables
}

// newJoin returns peer join. alone: it also trains at this site alone and compares, as peer compare --plan.
func newJoin(alone bool) *cobra.Command {
	s := member{alone: alone}
	var view cli.WatchFlags
	c := &cobra.Command{
		Use:   "join --plan plan.yaml --shard DIR/part-N",
		Short: "Take part in a run on several machines",
		Long: `Run one peer of a plan. The key decides which peer this is: the plan lists the ID that peer init prints. The run begins when
all peers of the plan are connected. With --state, if a peer disconnects, the others wait; training resumes from the last
common checkpoint when it reconnects.

Besides the model, the results have predictions for this peer's own nodes, computed during the run with the rows of its
neighbours at other peers. peer predict --shard does not use those rows.

With phones in the plan, phones that it does not list take part with graphs of their own (docs/how-to/phones.md): peers with
leaf_addresses collect shares of their numbers, and --leaves says which phones this one admits.

With --secret, for peers that Kubernetes, Slurm or Open MPI starts, all keys follow from the secret, the plan names no
peers, and --shard may be the whole partition.`,
		Example: "  peer join --plan plan.yaml --shard parts/part-0 --state state --json out.json",
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.Start(c)
			if err != nil {
				return err
			}
			defer w.End()
			s.out.stdout, s.Given = c.OutOrStdout(), cli.GivenSettings(c.Flags())
			return s.run(c.Context(), w, view.Text(c, s.out.json))
		},
	}
	f := c.Flags()
	s.Bind(f, "plan of the run", "wait for the other peers")
	s.BindGate(f)
	cli.BindLedger(f, &s.Site.Ledger)
	f.StringVar(&s.shard, "shard", "", "this peer's part, or parts with commas")
	f.StringVar(&s.init, "init", "", "model file that the plan starts from")
	f.StringVar(&s.leaves, "leaves", "", "rules for the phones whose shares this peer collects")
	cli.Reads(f, "shard", "init", "leaves")
	f.StringVar(&s.Site.State, "state", "", "directory of checkpoints; empty: none")
	f.BoolVar(&s.Site.LAN, "lan", false, "search of the local network by mDNS")
	f.Int64Var(&s.Site.ReceiveLimit, "receive-limit", 0, "bytes a second received from each peer; 0: no limit")
	f.StringVar(&s.Link, "link", "", linkHelp)
	cli.BindSettings(f, "join", func(one plan.Setting) bool { return one.Local && one.Name != "relays" })
	f.DurationVar(&s.Site.Rejoin, "rejoin", 10*time.Minute, "wait for failed peers, with --state; 0: none")
	f.StringVarP(&s.out.dir, "out", "o", "", "directory (default runs/DATA-peer-N)")
	f.StringVar(&s.out.rows, "embeddings", "", embeddingsHelp)
	f.StringVar(&s.out.json, "json", "", "JSON file for the results; - for standard output")
	view.Bind(f)
	s.launch.Bind(f)
	s.http.Bind(f)
	cli.Required(c, "plan", "shard")
	return c
}

func (s member) run(ctx context.Context, w *cli.Watch, text io.Writer) (err error) {
	p, closer, err := s.prepare(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	own := s.Site.Shard
	rank, err := p.Rank(s.Site.Identity.PeerID())
	if err != nil {
		return cli.Invalid(err)
	}
	page, err := s.http.Start(live.About{Dataset: own.Name, Method: p.Method, Model: p.Model, Sites: p.Names(), Rank: rank, Audit: s.Site.Gate.Audit}, w.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.End(err)) }()
	s.Site.OnEvent = page.Over(s.Site.OnEvent)
	early := s.out // while peers are still connected
	if cli.IsStdout(early.json) || cli.Special(early.json) {
		early.json = "" // what is written there stays, and is written once
	}
	write := func(out output, o *heddle.Result) error {
		out.runs = joined(o)
		one := *p
		one.Seed, one.Runs = o.Plan.Seed, 1 // the settings are of the run that is written
		return out.write(o, one, []*shard.Shard{own}, report.Run{Data: s.warnings, Command: s.again(),
			Runs: runsTable(o.Metric, out.runs)})
	}
	record, err := s.record(p)
	if err != nil {
		return err
	}
	s.Site.OnModel = func(o *heddle.Result) error { return write(early, o) }
	s.Site.Embed = s.out.rows != ""
	o, err := heddle.Join(ctx, *p, s.Site)
	w.End()
	if log := s.Site.Gate.Audit; log != "" { // people keep the head elsewhere
		if head, err := admission.VerifyLog(log, nil); err == nil {
			fmt.Fprintf(text, "audit:  %s, ends with %s\n", log, head)
		}
	}
	if err != nil {
		if ctx.Err() != nil && s.Site.State != "" {
			return fmt.Errorf("interrupted; to continue from the checkpoints in %s, repeat the command at all peers",
				s.Site.State)
		}
		return cli.Explain(err, s.Site.State, record)
	}
	if err := write(s.out, o); err != nil { // again, with the figures of the whole run
		return err
	}
	if err := printRuns(text, o.Metric, joined(o)); err != nil {
		return err
	}
	if err := s.out.print(text, o, []*shard.Shard{own}); err != nil {
		return err
	}
	if err := cli.PrintLedger(text, s.Site.Ledger, own); err != nil {
		return err
	}
	if s.alone {
		if err := s.compare(ctx, *p, o, w, text); err != nil {
			return err
		}
	}
	if s.Site.State != "" {
		fmt.Fprintf(text, "state:  checkpoints stay in %s until you remove them; a peer without a model needs those of all peers\n", s.Site.State)
	}
	return nil
}

// compare says whether joining paid for this site.
func (s member) compare(ctx context.Context, p heddle.Plan, o *heddle.Result, w *cli.Watch, text io.Writer) error {
	at, err := compare.At(ctx, p, s.Site.Shard, o, w)
	if err != nil {
		return err
	}
	again := strings.Replace(s.again(), "peer join", "peer compare", 1)
	return errors.Join(at.Show(text), at.Write(text, s.out.dir, again))
}

// record keeps beside new checkpoints by which settings the run began, and returns those of this one.
func (s member) record(p *heddle.Plan) ([]byte, error) {
	settings, err := p.MarshalYAML()
	if err != nil {
		return nil, err
	}
	place, err := yaml.Marshal(map[string]string{"shard": s.shard})
	if err != nil {
		return nil, err
	}
	settings = append(settings, place...)
	if s.Site.State == "" {
		return settings, nil
	}
	release, err := checkpoint.Lock(s.Site.State) // another peer's record stays
	if err != nil {
		return nil, cli.Invalid(err)
	}
	defer release()
	if held, err := checkpoint.Find(s.Site.State); err != nil || len(held) > 0 {
		return settings, err
	}
	again := fmt.Sprintf("peer join --plan %s --shard %s --state %s and its other flags, at all peers", s.Plan, s.shard, s.Site.State)
	return settings, cli.Record{Path: cli.RecordOf(s.Site.State), Settings: settings, Again: again}.Keep()
}

// again is the command that repeats the run, at all peers.
func (s member) again() string {
	command := "peer join --plan " + s.out.settings()
	if s.launch.Secret != "" { // from which the keys follow
		command = "peer join --plan " + s.Plan + " --secret " + s.launch.Secret
	}
	if s.init != "" {
		command += " --init " + s.init
	}
	if s.leaves != "" {
		command += " --leaves " + s.leaves
	}
	return command + " --shard " + s.shard + "  # at each site, with its own shard"
}

// prepare reads plan, key and shard, and makes the directories. The shard's arrays are valid until
// closer is closed.
func (s *member) prepare(ctx context.Context, w *cli.Watch) (p *heddle.Plan, closer io.Closer, err error) {
	whole := s.shard
	p, rank, err := s.SitAs(w, s.identify)
	if err != nil {
		return nil, nil, err
	}
	site := p
	defer func() {
		if err != nil {
			heddle.Decline(ctx, *site, s.Site)
		}
	}()
	if s.Site.Shard, closer, err = cli.ReadParts(s.shard, len(p.Members)); err != nil {
		return nil, nil, err
	}
	if s.Site.Shard.Import != nil { // what peer meet found in this site's tables
		f, err := table.ParseFacts(s.Site.Shard.Import)
		if err != nil {
			return nil, nil, errors.Join(cli.Invalid(err), closer.Close())
		}
		for _, text := range f.Warnings {
			w.Event(heddle.Event{Kind: train.Warning, Text: text})
		}
		s.warnings = f.Warnings
	}
	name := cli.FileName(s.Site.Shard.Name)
	if err = heddle.Seat(*p, s.Site.Shard, rank); err != nil {
		err = fmt.Errorf("%s: %w", s.shard, err)
	}
	if s.out.dir == "" {
		s.out.dir = filepath.Join("runs", fmt.Sprintf("%s-peer-%d", name, rank))
	}
	if m, fault := shard.ReadManifest(whole); err == nil && fault == nil && !p.Federated() {
		w.Log.Info(partition.Slowest(m, len(p.Members)).String()) // of the partition that a scheduler's ranks share
	}
	if err == nil {
		s.Site.Init, err = cli.ReadInitial(s.init)
	}
	if err == nil && s.leaves != "" {
		s.Site.Phones, err = phones.Read(s.leaves)
	}
	if err == nil {
		err = s.out.check()
	}
	if s.Site.State != "" && err == nil {
		err = cli.WritableDir(s.Site.State)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closer.Close())
	}
	return p, closer, nil
}

// identify returns this peer's key. What differs between the ranks of a scheduler, which all have the same flags, it sets:
// parts and directories.
func (s *member) identify(p *heddle.Plan) (own identity.Identity, err error) {
	own, rank, err := s.launch.Identify(&s.Seat, p)
	if err != nil {
		return own, err
	}
	if rank >= 0 {
		name := fmt.Sprintf("rank-%d", rank)
		if s.Site.State != "" {
			s.Site.State = filepath.Join(s.Site.State, name)
		}
		if s.out.dir != "" {
			s.out.dir = filepath.Join(s.out.dir, name)
		}
		if rank > 0 {
			s.out.json = "" // rank 0 writes the figures
		}
	}
	s.shard, err = launch.Parts(s.shard, rank, len(p.Members))
	return own, err
}
