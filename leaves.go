package heddle

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/leaf"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/p2p/leaves"
	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/heddle-gnn/heddle/train"
)

// leafTimeout is how long a leaf or its site may be silent. A phone that waits for a sum is woken by its keep-alives, which
// come every half of it.
const leafTimeout = 2 * time.Minute

// agreement is what sites and leaves of a run by p agree on. All of it follows from the plan, which both have.
func agreement(p Plan) leaf.Agreement {
	text := p.Agreed()
	for _, m := range p.Members {
		text += "member: " + m.ID + "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return leaf.Agreement{Run: [8]byte(sum[:]), Sites: p.Collecting(), Least: p.LeastLeaves, Most: p.Leaves, Edges: p.LeafEdges}
}

// collection is a site's part in the sums with leaves of one session.
type collection struct {
	leaves.Service
	plan    Plan
	rank    int
	key     identity.Identity
	ids     []string                                                 // of own nodes
	journal *leaf.Journal                                            // nil: a run in which a site fails begins again
	secure  func(context.Context, *comm.Group) (comm.Reducer, error) // of the sites; nil: their sums are in the clear
	note    func(Event)

	all    *leaf.Collector
	server *leaves.Server // nil at a site that collects no shares
}

// collects returns this site's part in the sums with leaves of a run by p; nil where there are none.
func (s Site) collects(p Plan, rank int, secure func(context.Context, *comm.Group) (comm.Reducer, error), note func(Event)) (*collection, error) {
	switch {
	case p.Leaves == 0:
		if s.Phones != nil {
			return nil, input(errors.New("rules for leaves apply only to plans with leaves above 0"))
		}
		return nil, nil
	case rank < p.Collecting() && s.Phones == nil:
		return nil, input(fmt.Errorf("%s collects shares of leaves by the plan (leaf_addresses), and needs rules for whom it admits", p.Members[rank].Name))
	case rank >= p.Collecting() && s.Phones != nil:
		return nil, input(fmt.Errorf("rules for leaves are for members with leaf_addresses (%s has none)", p.Members[rank].Name))
	}
	c := &collection{plan: p, rank: rank, key: s.Identity, ids: s.Shard.IDs, secure: secure, note: note}
	if s.State != "" {
		kept := &checkpoint.Store{Dir: s.State}
		c.journal = &leaf.Journal{Keep: kept.KeepNote, Kept: kept.Note}
	}
	if s.Phones != nil {
		c.Service = *s.Phones
		return c, input(errors.Join(c.Rules.Validate(), c.network().Validate()))
	}
	return c, nil
}

// network says how leaves reach this site.
func (c *collection) network() node.Config {
	at := c.Listen
	if at == nil {
		at = c.plan.Members[c.rank].LeafAddresses
	}
	return node.Config{Identity: c.key, Listen: at, Transport: c.plan.Carrier, MaxPeers: min(c.plan.Leaves, node.MostPeers), PeerTimeout: leafTimeout}
}

// leafSums are the sums of sites and leaves; inner are those of the sites alone.
type leafSums struct {
	*leaf.Collector
	inner comm.Reducer
	of    *collection
}

// Reduce implements comm.Reducer. Leaves are told at once of a session that has failed.
func (l *leafSums) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	r, err := l.Collector.Reduce(ctx, c)
	if err != nil {
		err = errors.Join(err, l.of.halt())
	}
	return r, err
}

// Gather implements classmeans.Neighbours likewise.
func (l *leafSums) Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	sums, err := l.Collector.Gather(ctx, id, x)
	if err != nil {
		err = errors.Join(err, l.of.halt())
	}
	return sums, err
}

// halt ends what is left of the session before: leaves that wait in it come back.
func (c *collection) halt() error {
	if c.server == nil {
		return nil
	}
	c.all.Stop(errors.New("a site has failed"))
	err := c.server.Close()
	c.server = nil
	return err
}

// reducer begins to collect shares, and returns the sums of the sites of g and of the leaves.
func (c *collection) reducer(ctx context.Context, g *comm.Group) (comm.Reducer, error) {
	if err := c.halt(); err != nil {
		return nil, err
	}
	inner, err := sumsOver(ctx, g, c.secure)
	if err != nil {
		return nil, err
	}
	var intake *leaf.Intake
	until := func(context.Context, int) error { return nil }
	agreed := agreement(c.plan)
	if c.rank < agreed.Sites {
		if intake, err = leaf.NewIntake(agreed, c.rank, c.Rules); err != nil {
			return nil, input(err)
		}
		until = c.report(intake, intake.Quorum(cmp.Or(c.plan.LeafQuorum, c.plan.Leaves), c.plan.LeafWait))
	}
	if c.all, err = leaf.NewCollector(agreed, g, inner, intake, until); err != nil {
		return nil, err
	}
	if agreed.Edges {
		if err := c.all.Bind(ctx, c.ids); err != nil {
			return nil, err
		}
	}
	if c.journal != nil {
		if err := c.all.Resume(ctx, c.journal); err != nil {
			return nil, err
		}
	}
	if intake != nil {
		if c.server, err = leaves.Serve(c.network(), c.all); err != nil {
			return nil, err
		}
	}
	return &leafSums{c.all, inner, c}, nil
}

// report returns until, which also notes how many leaves were in time.
func (c *collection) report(in *leaf.Intake, until func(context.Context, int) error) func(context.Context, int) error {
	return func(ctx context.Context, exchange int) error {
		err := until(ctx, exchange)
		c.note(Event{Kind: train.Trace, Text: fmt.Sprintf("sum %d: shares of %d leaves", exchange+1, in.Shares())})
		return err
	}
}

// end stays for leaves that have not fetched all sums, if the run went well, and stops to serve them.
func (c *collection) end(ctx context.Context, run error) error {
	if c.server == nil {
		return nil
	}
	if run == nil && c.Stay > 0 {
		staying, cancel := context.WithTimeout(ctx, c.Stay)
		if missing := c.all.Behind(); missing > 0 {
			c.note(Event{Kind: train.Note, Text: fmt.Sprintf("the model is done and written; staying for %d leaves, for at most %s", missing, c.Stay)})
		}
		c.all.Finish(staying)
		cancel()
	}
	c.all.Stop(errors.New("the run has ended"))
	return c.server.Close()
}

// joinLeaf is JoinGraph of a leaf. dir keeps the name by which the sites know it in this run, and nothing else.
func (s Site) joinLeaf(ctx context.Context, p Plan, g *graph.Graph, dir string) (*Result, error) {
	if s.OnEvent == nil {
		s.OnEvent = func(Event) {}
	}
	if g == nil {
		return nil, input(errors.New("a leaf needs a graph"))
	}
	if err := errors.Join(CheckMembers(p), p.Only("join"), g.Valid()); err != nil {
		return nil, input(err)
	}
	own := shard.Whole(g)
	token, err := tokenIn(dir)
	if err != nil {
		return nil, err
	}
	c, err := p.ClosedForm(own)
	if err != nil {
		return nil, input(err)
	}
	for pause, until := time.Second, time.Now().Add(s.Wait); ; pause = min(2*pause, mostPause) {
		one := attempt{Site: s, plan: p, config: c, own: own, token: token}
		r, err := one.run(ctx)
		var lost *comm.PeerError
		if err == nil && s.OnModel != nil {
			err = s.OnModel(r)
		}
		if err == nil || ctx.Err() != nil || !errors.As(err, &lost) || errors.Is(err, leaf.ErrNotAdmitted) {
			return r, named(p, err)
		}
		if one.met {
			pause, until = time.Second, time.Now().Add(s.Wait)
		}
		if time.Now().Add(pause).After(until) {
			return nil, named(p, err)
		}
		s.OnEvent(Event{Kind: train.Connection, Peer: lost.Rank, Text: fmt.Sprintf("no site to send to, trying again in %s: %v", pause, named(p, err))})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// mostPause is how long a leaf sleeps between two attempts to reach the sites.
const mostPause = 30 * time.Second

// tokenNote is the name under which a leaf keeps its token.
const tokenNote = "token"

// tokenIn returns the token that is kept in dir, and makes it at the first time.
func tokenIn(dir string) (t leaf.Token, err error) {
	kept := &checkpoint.Store{Dir: dir}
	b, err := kept.Note(tokenNote)
	if len(b) == len(t) || err != nil {
		copy(t[:], b)
		return t, err
	}
	rand.Read(t[:])
	return t, kept.KeepNote(tokenNote, t[:])
}

// attempt is a leaf's part in a run, over one connection to the sites. Each begins with the first sum: whether the sites
// are still in the same session it cannot know.
type attempt struct {
	Site
	plan   Plan
	config classmeans.Config
	own    *shard.Shard
	token  leaf.Token

	sent atomic.Int64 // bytes of shares
	met  bool         // a sum came
}

func (a *attempt) run(ctx context.Context) (*Result, error) {
	id, err := identity.New() // another one each time: a key that stays would tie the runs of a phone together
	if err != nil {
		return nil, err
	}
	agreed := agreement(a.plan)
	roster := Roster(a.plan)
	roster.Members = roster.Members[:agreed.Sites]
	for r := range roster.Members {
		roster.Members[r].Addrs = a.plan.Members[r].LeafAddresses
	}
	sites, err := leaves.Dial(ctx, node.Config{Identity: id, Transport: a.plan.Carrier, MaxPeers: agreed.Sites, PeerTimeout: leafTimeout, Interfaces: a.Interfaces}, roster)
	if err != nil {
		return nil, err
	}
	defer sites.Close()
	ids := a.own.IDs
	if ids == nil {
		ids = make([]string, a.own.Owned)
	}
	up, known, err := leaf.Dial(ctx, sites, agreed, a.token, a.Evidence, ids)
	if err != nil {
		return nil, err
	}
	a.OnEvent(Event{Kind: train.Connection, Peer: -1, Members: slices.Collect(func(yield func(int) bool) {
		for q := 0; q < agreed.Sites && yield(q); q++ {
		}
	})})
	t, err := classmeans.New(a.config, a.own)
	if err != nil {
		return nil, input(err)
	}
	t.Leaves = true
	t.OnEvent = func(e Event) {
		e.Sent.Reduce = a.sent.Load()
		a.OnEvent(e)
	}
	one := &leaf.Contributor{Agreement: agreed, Token: a.token, Uplink: meter{up, a}, Known: known}
	if agreed.Edges {
		t.Beyond = one
	}
	alone := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer alone.Close()
	if err := t.Run(ctx, alone, one); err != nil {
		return nil, err
	}
	measured := t.Result()
	measured.Sent.Reduce = a.sent.Load()
	r, err := resultOf(a.plan, a.own, t.Model(), a.config, a.config.Metric, measured)
	if err != nil {
		return nil, err
	}
	r.Own = []Predictions{predictionsOf(r.Model, t.Logits()).By(r.Card)}
	r.Members, r.Sums = a.plan.Names(), a.plan.SumTerms(len(a.plan.Members))
	// What differs between leaves stays out of the card: all of them write the same file.
	r.Card.Dataset, r.Card.Nodes, r.Card.Peers, r.Card.Sums = "leaves", 0, len(a.plan.Members), r.Sums.Trust
	return r, nil
}

// meter counts what a leaf sends through its uplink.
type meter struct {
	*leaf.Link
	of *attempt
}

// Send implements leaf.Uplink.
func (m meter) Send(ctx context.Context, site int, share []byte) error {
	err := m.Link.Send(ctx, site, share)
	if err == nil {
		m.of.sent.Add(int64(len(share)))
	}
	return err
}

// Sums implements leaf.Uplink.
func (m meter) Sums(ctx context.Context, site, exchange int) ([]byte, error) {
	m.waits(exchange)
	b, err := m.Link.Sums(ctx, site, exchange)
	m.of.met = m.of.met || err == nil
	return b, err
}

// Parts implements leaf.Uplink.
func (m meter) Parts(ctx context.Context, exchange int) ([][]byte, error) {
	m.waits(exchange)
	return m.Link.Parts(ctx, exchange)
}

func (m meter) waits(exchange int) {
	m.of.OnEvent(Event{Kind: train.Trace, Text: fmt.Sprintf("waiting for sum %d", exchange+1), Sent: comm.Counts{Reduce: m.of.sent.Load()}})
}
