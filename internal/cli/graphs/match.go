package graphs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/align"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/session"
)

// Matching is a site that makes its part of a graph with others.
type Matching struct {
	cli.SiteFlags
	Like   string // model file
	Out    string // directory of the part
	tables align.SiteConfig
	listing
	maxUnknown int  // names that another site may request although they do not exist
	dry        bool // print what is sent, and stop
}

func newMatch() *cobra.Command { return new(Matching).command() }

func (s *Matching) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "match --plan plan.yaml (--nodes FILE [--edges FILE] | --nodes TYPE=FILE …) --out DIR",
		Short: "Make this site's part of a graph over several sites",
		Long: `Make this site's part of a graph that several sites have and cannot pool. Every site of the plan runs
this command with tables of its nodes and of the edges that it knows. If an edge ends at a node of another site, a
column of the edge table names that site as the plan does.

The command prints what it sends before it connects. The sites agree on columns, categories, classes and relations,
inform each other which nodes their edges join, and each writes its own part for heddle join.
docs/reference/what-leaves.md describes what the others learn: no text that fewer than 10 nodes here have. A site that
requests more than --max-unknown names that do not exist gets no answer.

With several types each site gives its tables as for heddle import. It may lack types and relations that others have.`,
		Example: `  heddle match --plan plan.yaml --nodes patients.csv --edges contacts.csv --label-column readmitted \
    --target-site-column at --out part
  heddle match --plan plan.yaml --nodes patient=patients.csv --edges patient-takes-drug=takes.csv \
    --target-site-column pharmacy --label-column patient.outcome --out part`,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.matchTables(c.Context(), cli.NewWatch(c.ErrOrStderr(), false), c.OutOrStdout())
		},
	}
	f := c.Flags()
	s.Bind(f, "plan of all sites, whose seed splits the nodes", "wait for the other peers")
	s.BindGate(f)
	s.listing.bind(f)
	bindTables(f, &s.tables.ImportConfig)
	bindRows(f, &s.tables.ImportConfig)
	f.StringVar(&s.tables.Site, "site-column", "", "column of the node table with this site's name")
	f.StringVar(&s.tables.SourceSite, "source-site-column", "", "column of the source's site (empty cell = this site)")
	f.StringVar(&s.tables.TargetSite, "target-site-column", "", "column of the target's site (empty cell = this site)")
	f.IntVar(&s.maxUnknown, "max-unknown", 10, "unknown names that another site may request")
	f.BoolVar(&s.Site.Network.LAN, "lan", false, "search the local network by mDNS")
	f.StringVarP(&s.Out, "out", "o", "", "new or empty directory to write to")
	f.BoolVar(&s.dry, "dry-run", false, "print what this site would send, and stop")
	bindLike(c, &s.Like)
	cli.Required(c, "plan", "nodes", "out")
	cli.ShortHelp(c, "plan", "nodes", "edges", "id-column", "label-column", "source-column", "target-column",
		"target-site-column", "text", "ignore", "identity", "listen", "roster", "policy", "approval", "audit",
		"dry-run", "out")
	return c
}

func (s *Matching) matchTables(ctx context.Context, w *cli.Watch, stdout io.Writer) error {
	p, rank, err := s.Sit(w)
	if err != nil {
		return err
	}
	own, err := s.Open(ctx, w, stdout, p, rank)
	if err != nil && !s.dry {
		disclosure.Decline(ctx, *p, cli.SessionOf(s.Site))
	}
	if err != nil || s.dry {
		return err
	}
	return disclosure.Meet(ctx, *p, cli.SessionOf(s.Site), "meet", func(ctx context.Context, m *session.Session) error {
		return s.Build(ctx, p, m, own, w, stdout)
	})
}

// Splits reports whether a column of the tables has the split of each node.
func (s *Matching) Splits() bool { return s.tables.Split+s.tables.SplitTime != "" }

// Open reads this site's tables, prints what leaves it, and checks that its part can be written.
func (s *Matching) Open(ctx context.Context, w *cli.Watch, stdout io.Writer, p *heddle.Plan,
	rank int) (*align.Tables, error) {
	tables := s.tables
	if err := readLike(s.Like, &tables.ImportConfig); err != nil {
		return nil, err
	}
	several, err := s.several()
	if err != nil {
		return nil, err
	}
	if err := checkLike(s.Like, tables.Like, several); err != nil {
		return nil, err
	}
	if several {
		tables.NodeTables, tables.EdgeTables = s.nodes, s.edges
	} else {
		tables.Nodes, tables.Edges = strings.Join(s.nodes, ""), strings.Join(s.edges, "")
	}
	if tables.Name == "" {
		tables.Name = "sites"
	}
	tables.Here, tables.Sites, tables.Seed = p.Members[rank].Name, p.Names(), p.Seed
	tables.Format.Watch = readProgress(ctx, w, s.files()...)
	var policy admission.Policy
	if path := s.Site.Gate.Policy; path != "" {
		if policy, err = admission.ReadPolicy(path); err != nil {
			return nil, cli.Invalid(err)
		}
	}
	tables.MinTexts = policy.TextCount()
	own, err := align.OpenSite(tables)
	w.End()
	if err != nil {
		return nil, ended(ctx, err)
	}
	sends := own.Sends()
	s.showSends(stdout, p, rank, sends, tables.MinTexts)
	for _, m := range p.Members {
		if n := sends.Names[m.Name]; n > 0 {
			w.Log.Info("names at edges here", "site", m.Name, "nodes", n)
		}
	}
	if err := policy.CheckTold(sends.Told()); err != nil {
		return nil, cli.Invalidf("%s: %w", s.Site.Gate.Policy, err)
	}
	if s.dry {
		return own, nil
	}
	if err := shard.Vacant(s.Out); err != nil {
		return nil, cli.Invalid(err)
	}
	return own, cli.WritableDir(filepath.Dir(filepath.Clean(s.Out)))
}

// showSends prints what leaves this site.
func (s *Matching) showSends(w io.Writer, p *heddle.Plan, rank int, sent align.Sent, least int) {
	fmt.Fprintf(w, "What leaves %s (docs/reference/what-leaves.md):\n", p.Members[rank].Name)
	if s.Like != "" {
		fmt.Fprintf(w, "  to all sites: the digest of %s, no name of a column, no text and no sum\n", s.Like)
	} else {
		fmt.Fprintf(w, "  to all sites: columns %q\n", sent.Columns)
	}
	few := 0
	for _, t := range sent.Texts {
		what := "texts"
		if t.Name {
			what = "names"
		}
		fmt.Fprintf(w, "    %s of %s: %q", what, t.Column, t.Sent)
		if t.Few > 0 {
			fmt.Fprintf(w, "; not sent: %d that fewer than %d nodes have", t.Few, least)
		}
		if t.Few > 0 && t.Name {
			fmt.Fprintf(w, " (an error, unless another site sends them)")
		} else {
			few += t.Few
		}
		fmt.Fprintln(w)
	}
	if few > 0 {
		fmt.Fprintf(w, "    texts that are not sent become \"other\" here, unless another site sends them; numbers, "+
			"dates and\n      words (--text) need no text that others get\n")
	}
	if s.Like == "" {
		fmt.Fprintf(w, "    sums: number, sum and squares of each column of numbers or dates, and the nodes of each "+
			"text;\n      %s\n", p.SumTerms(len(p.Members)).Trust)
	}
	fmt.Fprintf(w, "    counts of nodes, edges and splits\n")
	for q, m := range p.Members {
		if q != rank {
			fmt.Fprintf(w, "  to %s: the names of its nodes at edges here, and the edges; whether each name that it "+
				"asks for is a\n    node here\n", m.Name)
		}
	}
}

// Build makes this site's part with the others.
func (s *Matching) Build(
	ctx context.Context, p *heddle.Plan, with *session.Session, tables *align.Tables, w *cli.Watch, stdout io.Writer,
) error {
	g, rank, names := with.Group, with.Rank, p.Names()
	shard, facts, err := align.Shard(ctx, g, align.Config{Sites: names, Tables: tables, Sums: with.Sums,
		Phase: func(name string) { w.Log.Info("meeting", "phase", name) },
		Asked: func(site string, names, unknown int) error {
			with.Record(admission.Record{Event: admission.Connected, Peer: p.IDOf(site), Name: site,
				Rows: int64(names - unknown),
				Text: fmt.Sprintf("it requested %d nodes of this site by name; %d of them do not exist", names,
					unknown)})
			if unknown > s.maxUnknown {
				return fmt.Errorf("%s requested %d nodes of this site by name; at most %d of them may be unknown "+
					"(got %d): its table is wrong, or it guesses names (--max-unknown)", site, names, s.maxUnknown,
					unknown)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	if shard.Import, err = facts.Encode(); err != nil {
		return err
	}
	m, err := align.Write(ctx, g, s.Out, shard, names)
	if err != nil {
		return err
	}
	if err := facts.Write(s.Out); err != nil {
		return err
	}
	if err := WriteSkipped(s.Out, s.tables.ImportConfig.Format.Faults); err != nil {
		return err
	}
	sent := g.Bytes()
	with.Left("meet")
	own := m.Parts[rank]
	fmt.Fprintf(stdout, "%s: %s of %d sites, %d of %d nodes, %d edges into them, %d of these from other sites, %d "+
		"features, %d classes\n",
		filepath.Join(s.Out, fmt.Sprintf("part-%d", rank)), names[rank], len(names), own.Owned, m.Nodes, own.Edges,
		own.Cut, shard.X.Cols(), shard.Labels.Classes)
	relations(stdout, &shard.Typed)
	printFacts(stdout, facts)
	for q, of := range names {
		if q != rank {
			fmt.Fprintf(stdout, "  %s: %d of its nodes are neighbours here, %d nodes here are neighbours there\n", of,
				own.Halo[q], len(shard.Boundary[q]))
		}
	}
	fmt.Fprintf(stdout, "  sent: names and numbers of neighbours %s, sums %s, columns and the like %s\n",
		cli.Bytes(sent.Halo), cli.Bytes(sent.Reduce), cli.Bytes(sent.Control))
	return nil
}
