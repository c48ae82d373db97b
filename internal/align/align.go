// Package align builds the shards of a graph that several sites hold together and may not pool.
// Each site has tables of its nodes and of the edges that it knows, also to nodes of other sites. The sites agree on
// how columns become features and which of their nodes an edge joins, and each ends up with its own shard of one
// partition: the one that partition.ByColumn makes of the pooled tables, up to the rounding of means.
//
// What the others learn of a site is in docs/reference/what-leaves.md: names of columns, categories
// and classes; sums over all sites of counts, values and squares; how many nodes and edges it has;
// and of its boundary nodes which node of theirs each joins, and its number. If edges
// have types, these too: their names, and the type of each edge between sites. Names of nodes go only
// to the site that the tables give as theirs.
package align

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
)

const (
	maxSchema = 1 << 26 // bytes
	maxEdges  = 1 << 31 // bytes of names or edges between two sites
)

// Config is what one site brings. Every site has the same Sites and Name.
type Config struct {
	Sites  []string          // names of the sites, in the order of their ranks
	Tables *Tables           // of the site of this rank
	Sums   comm.Reducer      // adds up counts and sums of columns (nil = the group does, in the clear)
	Phase  func(name string) // called as each phase begins, for people; may be nil
	// Asked is called for each other site, before it is answered, with how many names it requested as nodes of this one
	// and how many do not exist. Many of these are a mistake, or a site that tries names. May be nil. An error is a
	// refusal.
	Asked func(site string, names, unknown int) error
}

// Shard returns this site's shard, without a fingerprint yet (shard.WriteOwn gives it one), and what this site's tables
// became. If a site cannot go on, all return an error: this site's has the fault with file and line, the others' have
// its name.
func Shard(ctx context.Context, g *comm.Group, c Config) (*shard.Shard, *table.Facts, error) {
	m := &meeting{ctx: ctx, g: g, c: c}
	s, err := m.run()
	if err != nil {
		return nil, nil, err
	}
	f, err := m.facts(s)
	return s, f, err
}

// run makes the shard.
func (m *meeting) run() (*shard.Shard, error) {
	c, g := m.c, m.g
	if len(c.Sites) != g.Size() || c.Sites[g.Rank()] != c.Tables.cfg.Here {
		return nil, fmt.Errorf("there must be a site name for each of the %d peers, and number %d must be %q (got %q)",
			g.Size(), g.Rank(), c.Tables.cfg.Here, c.Sites)
	}
	if c.Phase == nil {
		c.Phase = func(string) {}
	}
	c.Phase("columns")
	err := m.encoding()
	if err != nil {
		return nil, err
	}
	m.edges = m.encoded.Relations()
	c.Phase("features and edges")
	if err = c.Tables.unsent(m.encoded); err == nil {
		m.reading, err = c.Tables.read(m.encoded)
	}
	err = cmp.Or(c.Tables.cfg.Format.Faults.Err(), err)
	if err == nil {
		m.own = m.reading.own
		err = m.known(m.reading.edges)
	}
	if err := m.settle(err); err != nil {
		return nil, err
	}
	if err := m.number(); err != nil {
		return nil, err
	}
	c.Phase("neighbours")
	ends, err := m.cross(m.reading.edges)
	if err != nil {
		return nil, err
	}
	rows, err := m.numberRows(m.reading.edges, ends)
	if err != nil {
		return nil, err
	}
	s, err := m.shard(m.reading.edges, ends, rows)
	if err := m.settle(err); err != nil {
		return nil, err
	}
	return s, s.Valid()
}

// meeting is one site's part in the meeting of all.
type meeting struct {
	ctx   context.Context
	g     *comm.Group
	c     Config
	own   *graph.Graph // this site's nodes, without edges
	first []int64      // [K+1] number in the whole graph of each site's first node

	encoded *typed.Encodings  // that the sites agreed on
	edges   *dataset.Encoding // of all edges
	reading *reading          // of this site's tables
}

// facts returns what this site's tables became, by what is known here.
func (m *meeting) facts(s *shard.Shard) (f *table.Facts, err error) {
	f = m.reading.facts
	for k := range m.encoded.Edges {
		e := &m.encoded.Edges[k]
		e.Of.EdgeFacts(f, m.encoded.Prefix(e.Name(), "."), m.c.Tables.found(e.Name()))
	}
	g := &graph.Graph{Adj: s.Adj, Typed: s.Typed, X: s.X, Labels: s.Labels, Split: s.Split}
	if err := m.encoded.Count(f, g, m.reading.source, m.reading.target); err != nil {
		return nil, err
	}
	for q, name := range m.c.Sites {
		f.Sites = append(f.Sites, table.NodeCount{Name: name, Nodes: m.nodes(q)})
	}
	return f, nil
}

// tell sends b to all and returns what each site sent, with b of this one.
func (m *meeting) tell(what string, b []byte, limit int) ([][]byte, error) {
	out := make([][]byte, m.g.Size())
	for q := range out {
		out[q] = b
	}
	in, err := m.g.SendRecv(m.ctx, comm.Control, what, out, limit)
	if err == nil {
		in[m.g.Rank()] = b
	}
	return in, err
}

// settle returns err or, if another site had one, an error that names that site. The fault itself may name files and
// nodes of that site, so only the people there read it.
func (m *meeting) settle(err error) error {
	mark := []byte{0}
	if err != nil {
		mark[0] = 1
	}
	in, lost := m.tell("settle", mark, 1)
	if err != nil || lost != nil {
		return errors.Join(err, lost)
	}
	for q, b := range in {
		if len(b) != 1 || b[0] != 0 {
			return &comm.PeerError{Rank: q, Name: m.c.Sites[q], Op: "meet", Err: errors.New("aborted; see its own log")}
		}
	}
	return nil
}

// Write writes this site's shard into dir as shard.WriteOwn does, while all the others write
// theirs.
func Write(ctx context.Context, g *comm.Group, dir string, s *shard.Shard, sites []string) (*shard.Manifest, error) {
	m := &meeting{ctx: ctx, g: g}
	return shard.WriteOwn(dir, s, shard.Meta{Policy: "by-column", Sites: sites}, func(b []byte) ([][]byte, error) {
		return m.tell("manifest", b, maxSchema)
	})
}

// encoding agrees on how columns become features, and on the relations of typed edges.
func (m *meeting) encoding() error {
	tables := m.c.Tables
	text, err := tables.schema().encode()
	if err != nil {
		return err
	}
	in, err := m.tell("schema", text, maxSchema)
	if err != nil {
		return err
	}
	schemas := make([]schema, len(in))
	for q, b := range in {
		if schemas[q], err = parseSchema(b); err != nil {
			return m.blame(q, err)
		}
	}
	like := schemas[m.g.Rank()].Like
	for q, s := range schemas {
		if s.Like != like {
			return fmt.Errorf("all sites must read their tables like the same model, or none: %s and %s do not",
				m.c.Sites[m.g.Rank()], m.c.Sites[q])
		}
	}
	if like != "" {
		m.encoded = tables.like
		return nil
	}
	if m.encoded, err = agreeAll(m.c.Sites, schemas); err != nil {
		return err // the same at every site
	}
	counts := tables.counts(m.encoded)
	if err := m.sum("counts of columns", counts); err != nil {
		return err
	}
	squares, err := tables.squares(m.encoded, counts)
	if err != nil {
		return err
	}
	if err := m.sum("squared deviations of columns", squares); err != nil {
		return err
	}
	return tables.fit(m.encoded, counts, squares)
}

// sum makes x, a number a column of the tables, the sum over all sites.
func (m *meeting) sum(what string, x []float32) error {
	var r comm.Reducer = m.g
	if m.c.Sums != nil {
		r = m.c.Sums
	}
	_, err := r.Reduce(m.ctx, &comm.Contribution{ID: comm.ReduceID{Kind: what}, Update: x, Columns: len(x)})
	return err
}

func (m *meeting) blame(q int, err error) error {
	return &comm.PeerError{Rank: q, Name: m.c.Sites[q], Op: "meet", Err: err}
}

// known refuses edges to a site that is not there.
func (m *meeting) known(edges *siteEdges) error {
	for site := range edges.cross {
		if !slices.Contains(m.c.Sites, site) {
			must := table.NewSpellings(m.c.Sites).Must(site)
			if must != "" {
				must = ", " + must
			}
			return edges.fault(site, 0, fmt.Sprintf("site must be one of %q%s (got %.40q)", m.c.Sites, must, site))
		}
	}
	return nil
}

// number gives the nodes their numbers in the whole graph: site after site, each in the order of
// its table.
func (m *meeting) number() error {
	in, err := m.tell("nodes", binary.LittleEndian.AppendUint64(nil, uint64(len(m.own.IDs))), 8)
	if err != nil {
		return err
	}
	m.first = []int64{0}
	for q, b := range in {
		if len(b) != 8 {
			return m.blame(q, fmt.Errorf("the count of nodes must have 8 bytes (got %d)", len(b)))
		}
		n := binary.LittleEndian.Uint64(b)
		if n > math.MaxInt32 {
			return m.blame(q, fmt.Errorf("number of nodes must be at most %d (got %d)", math.MaxInt32, n))
		}
		m.first = append(m.first, m.first[q]+int64(n))
	}
	if all := m.first[len(m.first)-1]; all > math.MaxInt32 {
		return fmt.Errorf("all sites together must have at most %d nodes (got %d)", math.MaxInt32, all)
	}
	return nil
}

func (m *meeting) nodes(q int) int { return int(m.first[q+1] - m.first[q]) }
