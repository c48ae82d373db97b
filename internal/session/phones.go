package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Phones are what the members of a run agree on about phones, which send shares of their part of each sum.
type Phones struct {
	leaf.Agreement
	Addresses [][]string    // at which members collect shares, by rank (none = that member collects none)
	Quorum    int           // phones whose shares close a sum
	Wait      time.Duration // for them at most
}

// leafTimeout is how long a phone or its site may be silent. A phone that waits for a sum is woken by its keep-alives,
// which come every half of it.
const leafTimeout = 2 * time.Minute

// phoneSums are the sums of sites and phones, at one site.
type phoneSums struct {
	gate.Phones
	*leaf.Collector // of the present connection
	rules           leaf.Rules
	terms           Terms
	network         node.Config   // how phones reach this site
	ids             []string      // of own nodes
	journal         *leaf.Journal // (nil = a run in which a site fails begins again)

	// Makes the sums of the sites (nil = they are in the clear).
	secure func(context.Context, *comm.Group) (comm.Reducer, error)
	note   func(train.Event)

	sites  comm.Reducer     // the sums of the sites only
	server *node.LeafServer // nil at a site that collects no shares
}

// OfSites returns the reducer that sums only the sites' own parts, without phones'.
func OfSites(r comm.Reducer) comm.Reducer {
	if all, ok := r.(*phoneSums); ok {
		return all.sites
	}
	return r
}

// collects makes the reducer of at sum over sites and phones, if the run has any.
func (s Site) collects(t Terms, at *Session) (*phoneSums, error) {
	switch {
	case t.Phones == nil && s.Phones != nil:
		return nil, train.Input(errors.New("rules for phones apply only to plans with leaves above 0"))
	case t.Phones == nil:
		return nil, nil
	case t.Rank < t.Phones.Sites && s.Phones == nil:
		return nil, train.Input(fmt.Errorf("%s collects shares of phones by the plan (leaf_addresses), "+
			"and needs rules for whom it admits", at.Names[t.Rank]))
	case t.Rank >= t.Phones.Sites && s.Phones != nil:
		return nil, train.Input(fmt.Errorf("rules for phones are for members with leaf_addresses (%s has none)",
			at.Names[t.Rank]))
	}
	c := &phoneSums{terms: t, ids: s.Shard.IDs, secure: at.Reducer, note: at.Event}
	if s.State != "" {
		kept := &checkpoint.Store{Dir: s.State}
		c.journal = &leaf.Journal{Keep: kept.KeepNote, Kept: kept.Note}
	}
	at.Reducer = c.beginSums
	if s.Phones == nil {
		return c, nil
	}
	c.Phones = *s.Phones
	if c.Listen == nil {
		c.Listen = t.Phones.Addresses[t.Rank]
	}
	c.network = node.Config{Identity: s.Identity, Listen: c.Listen, Transport: t.Carrier,
		MaxPeers: min(t.Phones.Most, node.MostPeers), PeerTimeout: leafTimeout}
	var err error
	c.rules, err = leaf.RulesOf(c.Phones)
	return c, train.Input(errors.Join(err, c.network.Validate()))
}

// Reduce implements comm.Reducer. It informs phones at once of a connection that has failed.
func (c *phoneSums) Reduce(ctx context.Context, part *comm.Contribution) (comm.Reduced, error) {
	r, err := c.Collector.Reduce(ctx, part)
	if err != nil {
		err = errors.Join(err, c.halt())
	}
	return r, err
}

// Gather adds up rows over neighbours, and informs phones in the same way.
func (c *phoneSums) Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	sums, err := c.Collector.Gather(ctx, id, x)
	if err != nil {
		err = errors.Join(err, c.halt())
	}
	return sums, err
}

// halt ends what is left of the connection before: phones that wait come back.
func (c *phoneSums) halt() error {
	if c.server == nil {
		return nil
	}
	c.Stop(errors.New("a site has failed"))
	err := c.server.Close()
	c.server = nil
	return err
}

// beginSums begins to collect shares, and returns the sums of the sites of g and of the phones.
func (c *phoneSums) beginSums(ctx context.Context, g *comm.Group) (comm.Reducer, error) {
	err := c.halt()
	if err != nil {
		return nil, err
	}
	c.sites = g
	if c.secure != nil {
		if c.sites, err = c.secure(ctx, g); err != nil {
			return nil, err
		}
	}
	var intake *leaf.Intake
	until := func(context.Context, int) error { return nil }
	agreed := c.terms.Phones.Agreement
	if c.terms.Rank < agreed.Sites {
		if intake, err = leaf.NewIntake(agreed, c.terms.Rank, c.rules); err != nil {
			return nil, train.Input(err)
		}
		closes := intake.Quorum(c.terms.Phones.Quorum, c.terms.Phones.Wait)
		until = func(ctx context.Context, exchange int) error {
			err := closes(ctx, exchange)
			text := fmt.Sprintf("sum %d: shares of %d phones", exchange+1, intake.Shares())
			c.note(train.Event{Kind: train.Trace, Text: text})
			return err
		}
	}
	if c.Collector, err = leaf.NewCollector(agreed, g, c.sites, intake, until); err != nil {
		return nil, err
	}
	if agreed.Edges {
		if err := c.Bind(ctx, c.ids); err != nil {
			return nil, err
		}
	}
	if c.journal != nil {
		if err := c.Resume(ctx, c.journal); err != nil {
			return nil, err
		}
	}
	if intake != nil {
		if c.server, err = node.ServeLeaves(c.network, c.Collector); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// end stays for phones that have not fetched all sums, if the run went well, and stops to serve them.
func (c *phoneSums) end(ctx context.Context, run error) error {
	if c.server == nil {
		return nil
	}
	if run == nil && c.Stay > 0 {
		staying, cancel := context.WithTimeout(ctx, c.Stay)
		if missing := c.Behind(); missing > 0 {
			c.note(train.Event{Kind: train.Note, Text: fmt.Sprintf(
				"the model is done and written; staying for %d phones, for at most %s", missing, c.Stay)})
		}
		c.Finish(staying)
		cancel()
	}
	c.Stop(errors.New("the run has ended"))
	return c.server.Close()
}

// phone is a phone's way to the sites.
type phone struct {
	// the present connection; each begins with the first sum, since a phone cannot know whether the sites went on
	*leaf.TransportUplink
	Site
	terms Terms
	token leaf.Token // with which the sites identify the phone in this run
	ids   []string   // of its nodes
	known shard.BorderNodes
	event func(train.Event)

	sent   atomic.Int64 // bytes of shares, over the present connection
	summed bool         // a sum came
}

// Phone returns the session of a phone that the members of t do not list: a group of one, whose sums are over all sites
// and phones. dir keeps the name that identifies it to the sites in this run, and nothing else.
func (s Site) Phone(t Terms, dir string, own []string) (_ *Session, err error) {
	p := &phone{Site: s, terms: t, ids: own, event: s.OnEvent}
	if p.token, err = tokenIn(dir); err != nil {
		return nil, err
	}
	if p.event == nil {
		p.event = func(train.Event) {}
	}
	reducer := func(context.Context, *comm.Group) (comm.Reducer, error) {
		return &leaf.Contributor{Agreement: t.Phones.Agreement, Token: p.token, Uplink: p, Known: p.known}, nil
	}
	wait := cmp.Or(s.Wait, DefaultWait)
	return &Session{Names: t.names(), Wait: wait, Rejoin: wait, Meet: p.meet, Reducer: reducer, Event: p.event,
		phone: p}, nil
}

// tokenNote is the name under which a phone keeps its token.
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

// Shared returns the bytes of shares that a phone sent over its last connection.
func (s *Session) Shared() int64 { return s.phone.sent.Load() }

// meet connects the phone to the sites, and returns the transport of a group of one.
func (p *phone) meet(ctx context.Context) (_ comm.Transport, err error) {
	id, err := identity.New() // another one each time: a permanent key would link the runs of a phone
	if err != nil {
		return nil, err
	}
	agreed, roster, members := p.terms.Phones.Agreement, identity.Roster{}, []int(nil)
	for r, m := range p.terms.Members.Members[:agreed.Sites] {
		m.Addrs = p.terms.Phones.Addresses[r]
		roster.Members, members = append(roster.Members, m), append(members, r)
	}
	sites, err := node.DialLeaf(ctx, node.Config{Identity: id, Transport: p.terms.Carrier, MaxPeers: agreed.Sites,
		PeerTimeout: leafTimeout, Interfaces: p.Network.Interfaces}, roster)
	if err != nil {
		return nil, err
	}
	p.sent.Store(0)
	if p.TransportUplink, p.known, err = leaf.Dial(ctx, sites, agreed, p.token, p.Gate.Evidence, p.ids); err != nil {
		sites.Close()
		return nil, err
	}
	p.event(train.Event{Kind: train.Connection, Peer: -1, Members: members})
	return alone{netsim.New(1, netsim.Config{}).Transport(0), sites}, nil
}

// alone is a transport for a group of one, which ends with the connection to the sites.
type alone struct {
	comm.Transport
	sites comm.Transport
}

// Close implements comm.Transport.
func (a alone) Close() error { return errors.Join(a.Transport.Close(), a.sites.Close()) }

// Send implements leaf.Uplink.
func (p *phone) Send(ctx context.Context, site int, share []byte) error {
	err := p.TransportUplink.Send(ctx, site, share)
	if err == nil {
		p.sent.Add(int64(len(share)))
	}
	return err
}

// Sums implements leaf.Uplink.
func (p *phone) Sums(ctx context.Context, site, exchange int) ([]byte, error) {
	p.waits(exchange)
	b, err := p.TransportUplink.Sums(ctx, site, exchange)
	p.summed = p.summed || err == nil
	return b, err
}

// Parts implements leaf.Uplink.
func (p *phone) Parts(ctx context.Context, exchange int) ([][]byte, error) {
	p.waits(exchange)
	return p.TransportUplink.Parts(ctx, exchange)
}

func (p *phone) waits(exchange int) {
	p.event(train.Event{Kind: train.Trace, Text: fmt.Sprintf("waiting for sum %d", exchange+1),
		Sent: comm.Counts{Reduce: p.sent.Load()}})
}
