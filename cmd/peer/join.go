package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/kernels"
)

// defaultIdentity is where a user's key lies unless told otherwise.
func defaultIdentity() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "identity.key"
	}
	return filepath.Join(dir, "heddle", "identity.key")
}

func newID() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:     "id",
		Short:   "Print this peer's ID; make its key on first use",
		Example: "  peer id\n  peer id --identity site-a.key",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			id, err := loadOrMakeKey(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), id.PeerID())
			return nil
		},
	}
	c.Flags().StringVar(&path, "identity", defaultIdentity(), "key file of this peer")
	return c
}

// seat is what one peer brings to a run, as its flags say.
type seat struct {
	plan, shard, identity, out, json, link string
	site                                   heddle.Site
	launch                                 launch
}

func newJoin() *cobra.Command {
	var s seat
	var view watchFlags
	c := &cobra.Command{
		Use:   "join --plan plan.yaml --shard DIR/part-N",
		Short: "Take part in a run on several machines",
		Long: `Run one peer of a plan. The key decides which peer this is: the plan lists the ID that peer id prints. The run begins when
all peers of the plan are connected. With --state, if a peer disconnects, the others wait; training resumes from the last
common checkpoint when it reconnects and yields the same model. With min_peers in the plan, the others continue without
a failed peer, which may return at any time before the end.

With --secret, for peers that Kubernetes, Slurm or Open MPI starts, all keys follow from the secret, the plan names no
peers, and --shard may be the whole partition.`,
		Example: "  peer join --plan plan.yaml --shard parts/part-0 --state state --json out.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.start(c.ErrOrStderr())
			if err != nil {
				return err
			}
			defer w.end()
			return s.join(c.Context(), w, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.plan, "plan", "", "plan of the run")
	f.StringVar(&s.shard, "shard", "", "this peer's part of the graph, or parts with commas")
	f.StringVar(&s.identity, "identity", defaultIdentity(), "key file of this peer, made on first use")
	f.StringVar(&s.site.State, "state", "", "directory for checkpoints; empty: none")
	f.StringSliceVar(&s.site.Listen, "listen", nil, "multiaddresses to listen on; default: those of the plan")
	f.BoolVar(&s.site.LAN, "lan", false, "search of the local network by mDNS")
	f.DurationVar(&s.site.Wait, "wait", 10*time.Minute, "wait for the other peers")
	f.Int64Var(&s.site.ReceiveLimit, "receive-limit", 0, "bytes a second received from each peer; 0: no limit")
	f.Int64Var(&s.site.ReceiveLimit, "max-intake", 0, "")
	f.MarkDeprecated("max-intake", "it is now called --receive-limit")
	f.StringVar(&s.link, "link", "", linkHelp)
	f.DurationVar(&s.site.Rejoin, "rejoin", 10*time.Minute, "wait for failed peers, with --state or min_peers; 0: none")
	f.StringVarP(&s.out, "out", "o", "", "directory for results (default runs/DATA-peer-N)")
	f.StringVar(&s.json, "json", "", "JSON file for the results")
	view.bind(f)
	bindGate(f, &s.site.Gate)
	s.launch.bind(f)
	required(c, "plan", "shard")
	return c
}

func (s seat) join(ctx context.Context, w *watch, stdout io.Writer) (err error) {
	p, closer, err := s.prepare(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	own := s.site.Shard
	var files written
	write := func(o *heddle.Result) error {
		setting, err := p.MarshalYAML()
		if err != nil {
			return err
		}
		page := report.Page{Setting: string(setting), Command: "peer join --plan plan.yaml --shard " + s.shard}
		if files, err = writeRun(o, s.out, own, *p.Plan, page); err != nil || s.json == "" {
			return err
		}
		return writeJSON(s.json, resultOf(o, *p.Plan, own.Name, len(p.Members), kernels.Name()))
	}
	s.site.OnModel = write
	o, err := heddle.Join(ctx, *p.Plan, s.site)
	w.end()
	auditHead(stdout, s.site.Gate.Audit)
	if err != nil {
		if ctx.Err() != nil && s.site.State != "" {
			return fmt.Errorf("interrupted; when all peers run the same command again they go on from the checkpoints in %s", s.site.State)
		}
		return err
	}
	if err := write(o); err != nil {
		return err
	}
	sum := o.Total()
	fmt.Fprintf(stdout, "%s: %s %s test, %s validation, %.1f s; this peer sent halo %s, reduce %s, control %s; on the wire %s\nmodel:  %s\nreport: %s\n",
		own.Name, o.Metric, percent(o.Test), percent(o.Val), o.Seconds,
		report.Bytes(sum.Halo), report.Bytes(sum.Reduce), report.Bytes(sum.Control), report.Bytes(sum.Wire), files.model, files.report)
	if s.site.State != "" {
		fmt.Fprintf(stdout, "state:  checkpoints stay in %s until you remove them; a peer that has no model yet needs all of them to go on\n", s.site.State)
	}
	return nil
}

// prepare reads plan, key and shard, and makes the directories. The shard's arrays are there until closer is closed.
func (s *seat) prepare(w *watch) (p *agreement, closer io.Closer, err error) {
	if p, err = readPlan(s.plan, w.warn); err != nil {
		return nil, nil, err
	}
	switch {
	case s.launch.secret != "":
		s.site.Identity, err = s.launch.join(s, p, os.Getenv)
	case s.launch.given():
		err = badInput{errors.New("rank, ranks, hosts: they only mean something with --secret; without it the plan and this peer's key say who is who")}
	default:
		s.site.Identity, err = loadOrMakeKey(s.identity)
	}
	if err != nil {
		return nil, nil, err
	}
	if s.site.Link, err = heddle.ParseLink(s.link, len(p.Members)); err != nil {
		return nil, nil, err
	}
	rank, err := p.Rank(s.site.Identity.PeerID())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.plan, err)
	}
	own, closer, err := readParts(s.shard, len(p.Members))
	if err != nil {
		return nil, nil, err
	}
	if err := p.Seat(own, rank); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", s.shard, err), closer.Close())
	}
	s.site.Shard, s.site.OnEvent, s.site.Gate.PlanText = own, w.event, p.text
	if s.out == "" {
		s.out = filepath.Join("runs", fmt.Sprintf("%s-peer-%d", fileName(own.Name), rank))
	}
	err = errors.Join(writableDir(s.out), writable(s.json))
	if s.site.State != "" && err == nil {
		err = writableDir(s.site.State)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closer.Close())
	}
	return p, closer, nil
}
