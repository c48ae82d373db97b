package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Site is what one site decides for itself in a run on several machines.
type Site struct {
	Identity identity.Identity // of the member that this site is
	Shard    *shard.Shard      // its part of the graph; a meeting without training does not need it
	State    string            // directory of checkpoints (empty = none are kept)
	Network  p2p.Network       // how it reaches the others (zero = over libp2p, at the plan's addresses)
	Wait     time.Duration     // how long to wait for all peers at the start (0 = DefaultWait)
	Rejoin   time.Duration     // how long to wait for failed peers (0 = a failure ends the run)
	Gate     gate.Files
	Phones   *gate.Phones      // for leaves whose shares this site collects (nil = it collects none)
	OnEvent  func(train.Event) // receives the events one at a time, and delays the run while it takes; may be nil
}

// DefaultWait is how long a site waits for the others unless it sets Wait.
const DefaultWait = 10 * time.Minute

// Terms are what the members of a run agree on about their sessions, and this member's place among them.
type Terms struct {
	Rank        int             // of this member
	Members     identity.Roster // by rank
	Relays      []string
	Carrier     string
	PeerTimeout time.Duration
	Progress    time.Duration // without any frame ends a connection (0 = never)
	Hello       p2p.Hello
	Request     Request

	Secure int      // members of a sum at least (0 = sums are in the clear)
	Run    [32]byte // names the run to secure sums

	Spends *train.Privacy // of what the run releases of edges (nil = nothing is kept private)
	ID     string         // of the run in a ledger

	Phones *Phones // (nil = there are none)
	Seed   uint64  // of a simulated network
}

// Request is what a site's policy judges of a run.
type Request interface {
	Admitted(r admission.Roster, now time.Time) error // whether a roster has the members
	Allowed(p admission.Policy) error
	Releases() (runs int, numbers float64, err error) // of each node, for the ledger of runs
	Approval() (comm.Approval, error)                 // of what one connection may send (nil = anything)
}

// names returns the members' names, by rank.
func (t Terms) names() (all []string) {
	for _, m := range t.Members.Members {
		all = append(all, m.Name)
	}
	return all
}

// secure returns what makes the reducer of each group of the members; own is one of them (nil = sums are in the clear).
func (t Terms) secure(own identity.Identity) func(context.Context, *comm.Group) (comm.Reducer, error) {
	if t.Secure == 0 {
		return nil
	}
	terms := secagg.KeyTerms{Run: t.Run, Least: t.Secure, Sign: own.Sign,
		Verify: func(rank int, message, signature []byte) error {
			return identity.Verify(t.Members.Members[rank].ID, message, signature)
		}}
	return func(ctx context.Context, g *comm.Group) (comm.Reducer, error) { return secagg.New(ctx, terms, g) }
}

// Attend admits the site to a run by t, and calls do with its Session, which meets the others at the site's host. If a
// local fault comes first, it informs the others. The error is an *train.InputError if the site's files are at fault.
func (s Site) Attend(ctx context.Context, t Terms, do func(context.Context, *Session) error) (err error) {
	release, err := checkpoint.Lock(s.State)
	if err != nil {
		return train.Input(err)
	}
	defer release()
	if _, err := netsim.ParseLink(s.Network.Link, len(t.Members.Members)); err != nil {
		return train.Input(err)
	}
	if n := s.Network; n.Transport != nil && (n.Host != nil || n.Listen != nil || n.LAN) {
		return train.Input(errors.New("a transport of the program connects by itself: omit Host, Listen and LAN"))
	}
	k, err := s.admit(t, time.Now())
	defer func() {
		if unmet(err) && (k == nil || !k.present) {
			s.Decline(ctx, t)
		}
	}()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end(err)) }()
	held, err := (&checkpoint.Store{Dir: s.State}).List() // of one run: several have no budget
	if err != nil {
		return train.Input(err)
	}
	spend, err := t.Spending(s.Gate.Ledger, len(held) > 0, s.Shard)
	if err != nil {
		return err
	}
	// ends if the log or the roster bars the site, and informs the others why
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k.stop = func(rank int, why error) {
		stop(&comm.PeerError{Rank: rank, Name: t.names()[rank], Op: "admission", Err: why})
	}
	if err := k.recall(s.State); err != nil {
		return err
	}
	if err := k.openNetwork(running, s); err != nil {
		return err
	}
	defer k.closeHost()
	at := &Session{Rank: t.Rank, Names: t.names(), Progress: t.Progress, Wait: cmp.Or(s.Wait, DefaultWait),
		Rejoin: s.Rejoin, Place: train.Place{Spend: spend}, Link: s.Network.Link, Seed: t.Seed,
		Request: t.Request, Meet: k.meet, Reducer: t.secure(s.Identity), Event: k.event, keeper: k}
	phones, err := s.collects(t, at)
	if err != nil {
		return err
	}
	err = do(running, at)
	if phones != nil {
		err = errors.Join(err, phones.end(running, err))
	}
	return p2p.Explained(at.naming(err))
}

// errNoMember ends a site that the roster no longer lists.
var errNoMember = errors.New("the roster does not list this site any more")

// unmet reports whether err is a fault at home before this site met the others, which would wait for it.
func unmet(err error) bool {
	var peer *comm.PeerError
	known := errors.As(err, &peer) || errors.Is(err, comm.ErrRefused)
	return err != nil && !known && !errors.Is(err, context.DeadlineExceeded)
}

// declineTime is how long a site that cannot take part looks for the others.
const declineTime = 3 * time.Second

// Decline informs the other members that the site cannot take part, if it can dial them: else they would wait for it. A
// site with checkpoints does not: its next process may go on.
func (s Site) Decline(ctx context.Context, t Terms) {
	held, _ := (&checkpoint.Store{Dir: s.State}).List()
	if ctx.Err() != nil || len(held) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, declineTime)
	defer cancel()
	t.Hello = p2p.Hello{PlanText: p2p.Declined}
	if s.Network.Transport != nil {
		if over, err := connect(ctx, s.Network, t); err == nil {
			over.Close()
		}
		return
	}
	h, err := p2p.Listen(p2p.Config{Identity: s.Identity, Transport: t.Carrier, MaxPeers: len(t.Members.Members),
		Relays: t.Relays, PeerTimeout: t.PeerTimeout, Host: s.Network.Host})
	if err != nil {
		return
	}
	defer h.Close()
	members := identity.Roster{Members: slices.Clone(t.Members.Members)}
	members.Members[t.Rank].Addrs = nil // it dials, and waits for nobody
	h.Join(ctx, members, t.Hello)
}

// connect connects the member of t over the program's transport, and compares the plans.
func connect(ctx context.Context, n p2p.Network, t Terms) (comm.Transport, error) {
	over, err := n.Transport(ctx, t.Rank, len(t.Members.Members))
	if err != nil {
		return nil, err
	}
	if err := p2p.Compare(ctx, over, t.names(), t.Rank, t.Hello); err != nil {
		return nil, errors.Join(err, over.Close())
	}
	return over, nil
}

// Spending returns what records in l what a run by t spends of parts, nil if nothing does. A run that l cannot afford
// is refused now, unless it continues from checkpoints: then it may have spent already, and is refused later if it has
// not.
func (t Terms) Spending(of gate.Ledger, continues bool, parts ...*shard.Shard) (func(train.Privacy) error, error) {
	l := dp.Ledger{Path: of.Path, Budget: dp.Guarantee{Epsilon: of.Epsilon, Delta: of.Delta}}
	switch {
	case l.Path == "" && l.Budget != (dp.Guarantee{}):
		return nil, train.Input(errors.New("a privacy budget needs a privacy ledger, which counts what runs spend"))
	case l.Path == "" || t.Spends == nil && l.Budget == (dp.Guarantee{}):
		return nil, nil
	case t.Spends == nil:
		return nil, train.Input(fmt.Errorf("epsilon must be above 0 with a privacy budget (got 0): "+
			"the run would spend all of %s", parts[0].Name))
	}
	l.Data = shard.Edges(parts...)
	if !continues {
		if err := l.Afford(*t.Spends); err != nil {
			return nil, train.Input(err)
		}
	}
	return func(s train.Privacy) error { return l.Spend(s, t.ID) }, nil
}
