package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// joining is one peer of a run on several machines.
type joining struct {
	cli.SiteFlags
	shard  string // path, or several with commas between
	init   string // model file that training starts from (empty = none)
	warm   bool   // from init, though the plan does not name it
	leaves string // file of rules for phones (empty = none)
	out    cli.Output
	launch *cli.LaunchFlags // (nil = no scheduler starts it)
	http   HTTP
	page   *Live // that several steps share (nil = of http)
	pages  Pages
	after  After  // (nil = nothing)
	name   string // of the command, as heddle join

	file     *cli.SiteFile     // instead of flags (nil = flags)
	rules    *admission.Policy // of file (nil = none)
	warnings []string          // of the import of this site's tables
}

// After is what is done at a site with a run that it has joined.
type After interface {
	// Joined gets the site's part, the run's result, where messages go, the run's directory and the command that
	// repeats it.
	Joined(ctx context.Context, p heddle.Plan, own *shard.Shard, o *heddle.Result, w *cli.Watch, text io.Writer, dir,
		again string) error
}

// NewJoin returns the command join, after which that is done (nil = nothing).
func NewJoin(pages Pages, after After) *cobra.Command {
	s := joining{pages: pages, after: after, out: cli.Output{Pages: pages}, launch: new(cli.LaunchFlags)}
	var view cli.WatchFlags
	c := &cobra.Command{
		Use:   "join [--plan plan.yaml --shard DIR/part-N]",
		Short: "Take part in a run on several machines",
		Long: `Run one peer of a plan. The key decides which peer this is: the plan lists the ID that heddle init
prints. The run begins when all peers of the plan are connected. Without --plan it reads federation.yaml and site.yaml
in this folder: site.yaml replaces the flags, and its key part is the folder with this site's part (default: part).

With --state, if a peer disconnects, the others wait; training resumes from the last common checkpoint when it
reconnects. The results have the model and predictions for this peer's own nodes, computed during the run with the
rows of its neighbors at other peers. heddle predict --shard does not use those rows.

With phones in the plan, phones that it does not list take part with graphs of their own (docs/how-to/phones.md):
peers with leaf_addresses collect shares of their numbers, and --leaves lists which phones this one admits.

With --secret, for peers that Kubernetes, Slurm or Open MPI starts, all keys follow from the secret, the plan names no
peers, and --shard may be the whole partition.`,
		Example: "  heddle join --plan plan.yaml --shard parts/part-0 --state state --json out.json",
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.Start(c)
			if err != nil {
				return err
			}
			defer w.End()
			s.out.Stdout, s.Given, s.name = c.OutOrStdout(), cli.GivenSettings(c.Flags()), c.CommandPath()
			if s.Plan == "" {
				if err := s.read(c.Flags()); err != nil {
					return err
				}
			}
			if s.shard == "" {
				return cli.Invalidf("--shard must be given with --plan (got none)")
			}
			return s.joinRun(c.Context(), w, view.Text(c, s.out.JSON))
		},
	}
	f := c.Flags()
	s.Bind(f, "plan of the run", "wait for the other peers")
	s.BindGate(f)
	cli.BindLedger(f, &s.Site.Gate.Ledger)
	f.StringVar(&s.shard, "shard", "", "this peer's part, or several with commas between")
	f.StringVar(&s.init, "init", "", "model file from which the plan starts")
	f.StringVar(&s.leaves, "leaves", "", "rules for the phones whose shares this peer collects")
	cli.Reads(f, "shard", "init", "leaves")
	f.StringVar(&s.Site.State, "state", "", "directory of checkpoints")
	f.BoolVar(&s.Site.Network.LAN, "lan", false, "search the local network by mDNS")
	f.Int64Var(&s.Site.Network.ReceiveLimit, "receive-limit", 0, "bytes a second from each peer (0 = no limit)")
	f.StringVar(&s.Site.Network.Link, "link", "", cli.LinkHelp)
	cli.BindSettings(f, "join", func(one plan.Setting) bool { return one.Local && one.Name != "relays" })
	f.DurationVar(&s.Site.Rejoin, "rejoin", 10*time.Minute, "how long to wait for failed peers, with --state")
	f.StringVarP(&s.out.Dir, "out", "o", "", "directory to write to (default: runs/DATA-peer-N)")
	s.out.Bind(f)
	view.Bind(f)
	s.launch.Bind(f)
	s.http.Bind(f)
	cli.ShortHelp(c, "plan", "shard", "state", "identity", "listen", "wait", "roster", "policy", "approval", "audit",
		"leaves", "secret", "json", "http", "quiet", "out")
	return c
}

// read takes plan, part and what the site allows from the two files of a site that takes part, for flags that are not
// given.
func (s *joining) read(flags *pflag.FlagSet) error {
	var err error
	if s.file, err = cli.ReadSite(); errors.Is(err, fs.ErrNotExist) {
		return cli.Invalidf("--plan and --shard must be given, or %s and %s be in this folder (got neither)",
			cli.SitePath, cli.FederationPath)
	}
	if err != nil {
		return err
	}
	s.Plan = cli.FederationPath
	s.rules, err = s.file.SetFlags(flags, &s.Site.Gate)
	return err
}

func (s joining) joinRun(ctx context.Context, w *cli.Watch, text io.Writer) (err error) {
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
	page := s.page
	if page != nil {
		page.Step("Step 2 of 2, training")
	} else if page, err = s.http.Start(About{Dataset: own.Name, Method: p.Method, Model: p.Gradient().Model,
		Sites: p.Names(), Rank: rank,
		Audit: s.Site.Gate.Audit}, s.pages, w.Log); err != nil {
		return err
	} else {
		defer func() { err = errors.Join(err, page.End(err)) }()
	}
	s.Site.OnEvent = page.Over(s.Site.OnEvent)
	early := s.out // while peers are still connected
	if cli.IsStdout(early.JSON) || cli.Special(early.JSON) {
		early.JSON = "" // what is written there stays, and is written once
	}
	write := func(out cli.Output, o *heddle.Result) error {
		out.Runs = cli.Joined(o)
		one := *p
		one.Seed, one.Runs = o.Plan.Seed, 1 // the settings are of the run that is written
		return out.Write(o, one, []*shard.Shard{own}, cli.RunPage{Data: s.warnings, Command: s.again(),
			Runs: cli.RunsTable(o.Metric, out.Runs)})
	}
	record, err := s.record(p)
	if err != nil {
		return err
	}
	s.Site.OnModel = func(o *heddle.Result) error { return write(early, o) }
	s.Site.Embed = s.out.Rows != ""
	defer cli.LittleGarbage(p.Method)()
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
	s.out.Again = true // now with the figures of the whole run; OnModel has written the same predictions
	if err := write(s.out, o); err != nil {
		return err
	}
	s.out.Runs = cli.Joined(o)
	if err := s.out.PrintAll(text, o, []*shard.Shard{own}, s.Site.Gate.Ledger); err != nil {
		return err
	}
	if s.after != nil {
		if err := s.after.Joined(ctx, *p, own, o, w, text, s.out.Dir, s.again()); err != nil {
			return err
		}
	}
	if s.Site.State != "" {
		fmt.Fprintf(text, "state:  checkpoints stay in %s until you remove them; a peer without a model needs those "+
			"of all peers\n", s.Site.State)
	}
	return nil
}

// record keeps next to new checkpoints the settings with which the run began, and returns the settings of this run.
func (s joining) record(p *heddle.Plan) ([]byte, error) {
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
	again := fmt.Sprintf("%s --plan %s --shard %s --state %s and its other flags, at all peers", s.name, s.Plan,
		s.shard, s.Site.State)
	return settings, cli.Record{Path: cli.RecordOf(s.Site.State), Settings: settings, Again: again}.Keep()
}

// again is the command that repeats the run, at all peers.
func (s joining) again() string {
	command := s.name + " --plan " + s.out.Settings()
	if s.launch != nil && s.launch.Secret != "" { // from which the keys follow
		command = s.name + " --plan " + s.Plan + " --secret " + s.launch.Secret
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
func (s *joining) prepare(ctx context.Context, w *cli.Watch) (p *heddle.Plan, closer io.Closer, err error) {
	whole := s.shard
	p, rank, err := s.SitAs(w, s.identify)
	if err != nil {
		return nil, nil, err
	}
	site := p
	defer func() {
		if err != nil {
			disclosure.Decline(ctx, *site, cli.SessionOf(s.Site))
		}
	}()
	if s.file != nil {
		if err = s.file.Check(p, rank); err != nil {
			return nil, nil, err
		}
	}
	if s.Site.Shard, closer, err = cli.ReadParts(s.shard, len(p.Members)); err != nil {
		return nil, nil, err
	}
	if s.Site.Shard.Import != nil { // what heddle match found in this site's tables
		var facts struct{ Warnings []string }
		if err := json.Unmarshal(s.Site.Shard.Import, &facts); err != nil {
			return nil, nil, errors.Join(cli.Invalidf("facts of an import: %w", err), closer.Close())
		}
		for k, text := range facts.Warnings {
			facts.Warnings[k] = cli.Flags(text)
			w.Event(heddle.Event{Kind: train.Warning, Text: facts.Warnings[k]})
		}
		s.warnings = facts.Warnings
	}
	name := cli.FileName(s.Site.Shard.Name)
	if err = disclosure.CheckSite(*p, s.Site.Shard, rank); err != nil {
		err = fmt.Errorf("%s: %w", s.shard, err)
	}
	if s.out.Dir == "" {
		s.out.Dir = filepath.Join("runs", fmt.Sprintf("%s-peer-%d", name, rank))
	}
	if m, fault := shard.ReadManifest(whole); err == nil && fault == nil && !p.Federated() {
		w.Log.Info(partition.Slowest(m, len(p.Members)).String()) // of the partition that a scheduler's ranks share
	}
	if g := &s.Site.Gate; err == nil && s.rules != nil && g.Roster == "" {
		_, err = (&Consent{Plan: *p, Gate: *g, Rules: s.rules}).Page(s.Site.Shard)
		g.Policy = "" // the session takes it with a roster only
	}
	if err == nil {
		s.Site.Init, err = cli.ReadInitial(s.init)
	}
	if err == nil && s.warm {
		p.Gradient().Init, err = s.Site.Init.Fingerprint()
	}
	if err == nil && s.leaves != "" {
		s.Site.Phones, err = readPhones(s.leaves)
	}
	if err == nil {
		err = s.out.Check()
	}
	if s.Site.State != "" && err == nil {
		err = cli.WritableDir(s.Site.State)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closer.Close())
	}
	return p, closer, nil
}

// identify returns this peer's key. It sets what differs between the ranks of a scheduler, which all have the same
// flags: parts and directories.
func (s *joining) identify(p *heddle.Plan) (own identity.Identity, err error) {
	own, rank, err := s.launch.Identify(&s.SiteFlags, p)
	if err != nil {
		return own, err
	}
	if rank >= 0 {
		name := fmt.Sprintf("rank-%d", rank)
		if s.Site.State != "" {
			s.Site.State = filepath.Join(s.Site.State, name)
		}
		if s.out.Dir != "" {
			s.out.Dir = filepath.Join(s.out.Dir, name)
		}
		if rank > 0 {
			s.out.JSON = "" // rank 0 writes the figures
		}
	}
	s.shard, err = cli.LaunchedParts(s.shard, rank, len(p.Members))
	return own, err
}
