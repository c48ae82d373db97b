package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/meet"
	"github.com/heddle-gnn/heddle/p2p"
)

func newMeet() *cobra.Command {
	var s seat
	var tables dataset.SiteConfig
	var maxUnknown int
	c := &cobra.Command{
		Use:   "meet --plan plan.yaml --nodes FILE --edges FILE --out DIR",
		Short: "Make this site's part of a graph that sites hold together, from its own tables",
		Long: `Make this site's part of a graph that several sites hold together and may not pool. Every site of the plan runs
this with its own tables: of its own nodes, and of the edges it knows of. Where an edge ends at a node of another site,
a column of the edges' table has that site's name, as the plan has it. The sites agree on columns, categories,
classes and relations, tell each other which of their nodes an edge joins, and each writes its own part for peer join. What the
others learn by it is in docs/privacy.md.`,
		Example: `  peer meet --plan plan.yaml --nodes patients.csv --edges contacts.csv --label-column readmitted --target-site-column at --out part`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.meet(c.Context(), tables, maxUnknown, newWatch(c.ErrOrStderr(), false), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.plan, "plan", "", "the plan that all sites have; its seed splits the nodes")
	f.StringVar(&s.identity, "identity", defaultIdentity(), "this peer's key, made on first use")
	bindTables(f, &tables.ImportConfig)
	f.StringVar(&tables.Site, "site-column", "", "of the table of nodes, where it has one: this site's name in each row")
	f.StringVar(&tables.SourceSite, "source-site-column", "", "of the table of edges: the site of the source; an empty cell is this one")
	f.StringVar(&tables.TargetSite, "target-site-column", "", "of the table of edges: the site of the target; an empty cell is this one")
	f.IntVar(&maxUnknown, "max-unknown", 10, "names that another site may ask for in vain: more, and nothing is answered")
	f.StringSliceVar(&s.listen, "listen", nil, "multiaddresses to listen on (default: this peer's in the plan)")
	f.BoolVar(&s.lan, "lan", false, "find peers on the local network by mDNS, which tells everybody there this peer's ID and addresses")
	f.DurationVar(&s.wait, "wait", 10*time.Minute, "how long to wait for the other peers")
	f.StringVarP(&s.out, "out", "o", "", "directory to write, which must not exist or be empty")
	s.gate.bind(f)
	required(c, "plan", "nodes", "out")
	return c
}

func (s seat) meet(ctx context.Context, tables dataset.SiteConfig, maxUnknown int, w *watch, stdout io.Writer) error {
	at, err := s.sit()
	if err != nil {
		return err
	}
	if tables.Name == "" {
		tables.Name = "sites"
	}
	tables.Here, tables.Seed = at.plan.Peers[at.rank].Name, at.plan.Seed
	own, err := dataset.OpenSite(tables)
	if err != nil {
		return badInput{err}
	}
	if err := partition.Vacant(s.out); err != nil {
		return badInput{err}
	}
	if err := writableDir(filepath.Dir(filepath.Clean(s.out))); err != nil {
		return err
	}
	return s.meeting(ctx, at, "meet", w, func(ctx context.Context, g *comm.Group, here *site) error {
		return s.build(ctx, at, g, here, own, maxUnknown, w, stdout)
	})
}

// build makes this site's part with the others.
func (s seat) build(meeting context.Context, at place, g *comm.Group, here *site, tables *dataset.SiteTables, maxUnknown int, w *watch, stdout io.Writer) error {
	p, rank := at.plan, at.rank
	names := p.names()
	shard, err := meet.Shard(meeting, g, meet.Config{Sites: names, Tables: tables,
		Phase: func(name string) { w.log.Info("meeting", "phase", name) },
		Asked: func(site string, names, unknown int) error {
			here.record(admission.Record{Event: admission.Connected, Peer: p.idOf(site), Name: site, Rows: int64(names - unknown),
				Text: fmt.Sprintf("it asked for %d names as nodes of this site; %d are none", names, unknown)})
			if unknown > maxUnknown {
				return fmt.Errorf("%s asked for %d names as nodes of this site, of which %d are none, more than %d: is its table right, or does it try names? (--max-unknown)", site, names, unknown, maxUnknown)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	m, err := meet.Write(meeting, g, s.out, shard, names)
	if err != nil {
		return err
	}
	sent := g.Bytes()
	here.left(sent, "meet", 0)
	own := m.Parts[rank]
	fmt.Fprintf(stdout, "%s: %s of %d sites, %d of %d nodes, %d edges into them, %d of these from other sites, %d features, %d classes\n",
		filepath.Join(s.out, fmt.Sprintf("part-%d", rank)), names[rank], len(names), own.Owned, m.Nodes, own.Edges, own.Cut, shard.X.Cols(), shard.Labels.Classes)
	relations(stdout, &shard.Typed)
	for q, of := range names {
		if q != rank {
			fmt.Fprintf(stdout, "  %s: %d of its nodes are neighbours here, %d nodes here are neighbours there\n", of, own.Halo[q], len(shard.Boundary[q]))
		}
	}
	fmt.Fprintf(stdout, "  sent: names and numbers of neighbours %s, sums %s, columns and the like %s\n", report.Bytes(sent.Halo), report.Bytes(sent.Reduce), report.Bytes(sent.Control))
	return nil
}

// place is where a peer is in a plan.
type place struct {
	plan *agreement
	id   p2p.Identity
	rank int
}

// sit finds this peer's place in its plan.
func (s seat) sit() (at place, err error) {
	if at.plan, err = readPlan(s.plan); err != nil {
		return at, err
	}
	if at.id, err = loadOrMakeKey(s.identity); err != nil {
		return at, err
	}
	at.rank, err = at.plan.rank(at.id.PeerID(), s.plan)
	return at, err
}

// meeting does something else than training with the other peers of the plan, those that do the same by the same plan. What
// ends it but a lost peer or an interruption is a fault of what this one was given.
func (s seat) meeting(ctx context.Context, at place, what string, w *watch, do func(ctx context.Context, g *comm.Group, here *site) error) (err error) {
	here, err := s.gate.admit(at.plan, at.id.PeerID(), time.Now())
	if err != nil {
		return err
	}
	defer func() {
		_, fault := here.end(err)
		err = errors.Join(err, fault)
	}()
	meeting, stop := context.WithCancel(ctx)
	defer stop()
	here.stop = stop
	g, end, err := s.group(meeting, at, here, what, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var lost *comm.PeerError
	switch err := do(meeting, g, here); {
	case err == nil:
		return nil
	case meeting.Err() != nil || errors.As(err, &lost):
		return at.plan.naming(err)
	default:
		return badInput{err}
	}
}

// group meets the other peers of the plan for something else than training: those that do the same by the same plan.
func (s seat) group(ctx context.Context, at place, here *site, what string, w *watch) (g *comm.Group, end func() error, err error) {
	p, size := at.plan, len(at.plan.Peers)
	way, err := slower(s.link, size)
	if err != nil {
		return nil, nil, err
	}
	h, err := s.open(ctx, p, here, at.rank, at.id, w)
	if err != nil {
		return nil, nil, err
	}
	meeting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	session, err := h.Join(meeting, here.peers(p), p2p.Hello{Plan: sha256.Sum256(append([]byte(what+"\n"), p.text...))})
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	l := overNetwork(session, h.Close)
	if here.policy != nil {
		here.guard = here.policy.Guard(session)
		l.Transport = here.guard
	}
	g = comm.NewGroup(l.behind(way, at.rank, size, 1), at.rank, size)
	return g, func() error { return errors.Join(g.Close(), l.close()) }, nil
}

// names lists the peers of the plan in order.
func (p *agreement) names() (names []string) {
	for _, m := range p.Peers {
		names = append(names, m.Name)
	}
	return names
}
