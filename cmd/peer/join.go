package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/p2p"
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
		Short:   "Print this peer's ID, making its key on first use",
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

// seat is what one peer brings to a run.
type seat struct {
	plan, shard, state, identity, out, json, link string
	listen                                        []string
	wait                                          time.Duration // for all peers at first, and for one that was lost
	rejoin                                        time.Duration
	waiting                                       *atomic.Int64 // nanoseconds that others are waited for at the moment; nil: wait
	lan                                           bool
	intake                                        int64 // bytes a second taken of each other peer; 0: as they come
	gate                                          gate
	launch                                        launch
}

func newJoin() *cobra.Command {
	var s seat
	var quiet bool
	c := &cobra.Command{
		Use:   "join --plan plan.yaml --shard DIR/part-N",
		Short: "Take part in a run on several machines",
		Long: `Take part, as one peer, in a run on several machines. Which peer this is follows from its key: the plan
lists the ID that peer id prints. The run begins when all peers of the plan are there. With --state it
survives: a peer that was lost is waited for, and when it has joined again the run goes on from the last
checkpoint that all have, to the same model. Where the plan says min_peers, the others go on without a lost
peer, and it may come back at any time before the end.`,
		Example: "  peer join --plan plan.yaml --shard parts/part-0 --state state --json out.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.join(c.Context(), newWatch(c.ErrOrStderr(), quiet), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.plan, "plan", "", "the plan that all peers have")
	f.StringVar(&s.shard, "shard", "", "this peer's part of the graph; its parts, with commas between, where there are fewer peers than parts")
	f.StringVar(&s.identity, "identity", defaultIdentity(), "this peer's key, made on first use")
	f.StringVar(&s.state, "state", "", "directory for checkpoints; empty: none are kept")
	f.StringSliceVar(&s.listen, "listen", nil, "multiaddresses to listen on (default: this peer's in the plan)")
	f.BoolVar(&s.lan, "lan", false, "find peers on the local network by mDNS, which tells everybody there this peer's ID and addresses")
	f.DurationVar(&s.wait, "wait", 10*time.Minute, "how long to wait for the other peers")
	f.Int64Var(&s.intake, "max-intake", 0, "bytes a second to take of each other peer; 0: as they come (a policy's max_intake holds, too)")
	f.StringVar(&s.link, "link", "", linkHelp)
	f.DurationVar(&s.rejoin, "rejoin", 10*time.Minute, "with --state or min_peers: how long to wait for lost peers without whom it does not go on; 0: a loss ends the run")
	f.StringVarP(&s.out, "out", "o", "", "directory to write model and report to (default runs/DATA-peer-N)")
	f.StringVar(&s.json, "json", "", "write the figures to this file, too")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	s.gate.bind(f)
	s.launch.bind(f)
	required(c, "plan", "shard")
	return c
}

func (s seat) join(ctx context.Context, w *watch, stdout io.Writer) (err error) {
	p, err := readPlan(s.plan)
	if err != nil {
		return err
	}
	if p.Mode == "standalone" {
		return badInput{fmt.Errorf("%s: mode: standalone has no peers to join, want retexo or fullbatch", s.plan)}
	}
	way, err := slower(s.link, len(p.Peers))
	if err != nil {
		return err
	}
	var id p2p.Identity
	switch {
	case s.launch.secret != "":
		id, err = s.launch.join(&s, p, os.Getenv)
	case s.launch.given():
		err = badInput{errors.New("rank, ranks, hosts: they only mean something with --secret; without it the plan and this peer's key say who is who")}
	default:
		id, err = loadOrMakeKey(s.identity)
	}
	if err != nil {
		return err
	}
	rank, err := p.rank(id.PeerID(), s.plan)
	if err != nil {
		return err
	}
	shard, closer, err := readParts(s.shard, len(p.Peers))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if shard.Rank != rank || shard.Parts != len(p.Peers) {
		return badInput{fmt.Errorf("%s is part %d of %d, but this peer (%s) is number %d of the %d in %s", s.shard, shard.Rank, shard.Parts, p.Peers[rank].Name, rank, len(p.Peers), s.plan)}
	}
	shards := []*partition.Shard{shard}
	if err := p.check(shards); err != nil {
		return err
	}
	p.warn(shard, w)
	if s.out == "" {
		s.out = filepath.Join("runs", fmt.Sprintf("%s-peer-%d", fileName(shard.Name), rank))
	}
	if err := errors.Join(writableDir(s.out), writable(s.json)); err != nil {
		return err
	}
	here, err := s.gate.admit(p, id.PeerID(), time.Now())
	if err != nil {
		return err
	}
	defer func() {
		head, fault := here.end(err)
		if err = errors.Join(err, fault); head != "" {
			fmt.Fprintf(stdout, "audit:  %s, ends with %s\n", s.gate.audit, head)
		}
	}()
	training, stop := context.WithCancel(ctx)
	defer stop()
	here.stop = stop
	one := work{settings: p.Settings, shard: shard, watch: w, site: here}
	if s.state != "" {
		if err := writableDir(s.state); err != nil {
			return err
		}
		one.store = &checkpoint.Store{Dir: s.state}
	}
	var files written
	write := func(o *outcome) error {
		o.Link = way
		setting, err := yaml.Marshal(p)
		if err != nil {
			return err
		}
		if files, err = o.write(s.out, shards, p.Settings, report.Page{Setting: string(setting), Command: "peer join --plan plan.yaml --shard " + s.shard}); err != nil || s.json == "" {
			return err
		}
		return writeJSON(s.json, o.result(p.Settings, shard.Name, len(p.Peers), kernels.Name()))
	}
	a := &attendance{seat: s, plan: p, rank: rank, site: here, way: way, work: one, write: write}
	o, err := a.stay(training, id)
	w.end()
	if err != nil {
		if ctx.Err() != nil && s.state != "" {
			return fmt.Errorf("interrupted; when all peers run the same command again they go on from the checkpoints in %s", s.state)
		}
		return p.naming(err)
	}
	if err := write(o); err != nil {
		return err
	}
	sum := o.bytes()
	fmt.Fprintf(stdout, "%s: %s %s test, %s validation, %.1f s; this peer sent halo %s, reduce %s, control %s; on the wire %s\nmodel:  %s\nreport: %s\n",
		shard.Name, o.Metric, percent(o.Test), percent(o.Val), o.Seconds,
		report.Bytes(sum.Halo), report.Bytes(sum.Reduce), report.Bytes(sum.Control), report.Bytes(sum.Wire), files.model, files.report)
	if s.state != "" {
		fmt.Fprintf(stdout, "state:  checkpoints stay in %s until you remove them; a peer that has no model yet needs all of them to go on\n", s.state)
	}
	return nil
}
