package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/align"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph/shard"
)

func newMeet() *cobra.Command {
	var s seat
	var tables align.SiteConfig
	var maxUnknown int
	c := &cobra.Command{
		Use:   "meet --plan plan.yaml --nodes FILE --edges FILE --out DIR",
		Short: "Make this site's part of a graph that sites hold together, from its own tables",
		Long: `Make this site's part of a graph that several sites hold together and may not pool. Every site of the plan runs
this with its own tables: of its own nodes, and of the edges it knows of. Where an edge ends at a node of another site,
a column of the edges' table has that site's name, as the plan has it. The sites agree on columns, categories,
classes and relations, tell each other which of their nodes an edge joins, and each writes its own part for peer join. What the
others learn by it is in docs/explanation/privacy.md. A site that asks for more than --max-unknown names that do not exist
gets no answer.`,
		Example: `  peer meet --plan plan.yaml --nodes patients.csv --edges contacts.csv --label-column readmitted --target-site-column at --out part`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.meet(c.Context(), tables, maxUnknown, newWatch(c.ErrOrStderr(), false), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&s.plan, "plan", "", "plan of all sites; its seed splits the nodes")
	f.StringVar(&s.identity, "identity", defaultIdentity(), "key file of this peer, made on first use")
	bindTables(f, &tables.ImportConfig)
	f.StringVar(&tables.Site, "site-column", "", "column of the node table with this site's name")
	f.StringVar(&tables.SourceSite, "source-site-column", "", "column with the source's site; empty cell: this one")
	f.StringVar(&tables.TargetSite, "target-site-column", "", "column with the target's site; empty cell: this one")
	f.IntVar(&maxUnknown, "max-unknown", 10, "unknown names that another site may ask for")
	f.StringSliceVar(&s.site.Listen, "listen", nil, "multiaddresses to listen on; default: those of the plan")
	f.BoolVar(&s.site.LAN, "lan", false, "search of the local network by mDNS")
	f.DurationVar(&s.site.Wait, "wait", 10*time.Minute, "wait for the other peers")
	f.StringVarP(&s.out, "out", "o", "", "directory to write; must be new or empty")
	bindGate(f, &s.site.Gate)
	required(c, "plan", "nodes", "out")
	return c
}

func (s seat) meet(ctx context.Context, tables align.SiteConfig, maxUnknown int, w *watch, stdout io.Writer) error {
	p, rank, err := s.sit(w)
	if err != nil {
		return err
	}
	if tables.Name == "" {
		tables.Name = "sites"
	}
	tables.Here, tables.Seed = p.Members[rank].Name, p.Seed
	own, err := align.OpenSite(tables)
	if err != nil {
		return badInput{err}
	}
	if err := shard.Vacant(s.out); err != nil {
		return badInput{err}
	}
	if err := writableDir(filepath.Dir(filepath.Clean(s.out))); err != nil {
		return err
	}
	return heddle.Meet(ctx, *p.Plan, s.site, "meet", func(ctx context.Context, m *heddle.Session) error {
		return s.build(ctx, p, m, own, maxUnknown, w, stdout)
	})
}

// build makes this site's part with the others.
func (s seat) build(meeting context.Context, p *agreement, with *heddle.Session, tables *align.Tables, maxUnknown int, w *watch, stdout io.Writer) error {
	g, rank, names := with.Group, with.Rank, p.Names()
	shard, err := align.Shard(meeting, g, align.Config{Sites: names, Tables: tables,
		Phase: func(name string) { w.log.Info("meeting", "phase", name) },
		Asked: func(site string, names, unknown int) error {
			with.Record(admission.Record{Event: admission.Connected, Peer: p.IDOf(site), Name: site, Rows: int64(names - unknown),
				Text: fmt.Sprintf("it asked for %d names as nodes of this site; %d are none", names, unknown)})
			if unknown > maxUnknown {
				return fmt.Errorf("%s asked for %d names as nodes of this site, of which %d are none, more than %d: is its table right, or does it try names? (--max-unknown)", site, names, unknown, maxUnknown)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	m, err := align.Write(meeting, g, s.out, shard, names)
	if err != nil {
		return err
	}
	sent := g.Bytes()
	with.Left("meet")
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

// sit reads the plan and the key, and finds this peer's rank.
func (s *seat) sit(w *watch) (p *agreement, rank int, err error) {
	if p, err = readPlan(s.plan, w.warn); err != nil {
		return nil, 0, err
	}
	if s.site.Identity, err = loadOrMakeKey(s.identity); err != nil {
		return nil, 0, err
	}
	s.site.Gate.PlanText, s.site.OnEvent = p.text, w.event
	if s.site.Link, err = heddle.ParseLink(s.link, len(p.Members)); err != nil {
		return nil, 0, err
	}
	if rank, err = p.Rank(s.site.Identity.PeerID()); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", s.plan, err)
	}
	return p, rank, nil
}
