package leaf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
)

// Collector is one site's comm.Reducer of sums with leaves. It is not safe for use by several goroutines
// at once, except Sums and Stop.
type Collector struct {
	agreed Agreement
	group  *comm.Group  // of the sites
	inner  comm.Reducer // sums what the sites have
	intake *Intake      // nil at a site that collects no shares
	until  func(ctx context.Context, exchange int) error
	border *border // (nil = there are no edges between members, or this site collects no shares)

	journal *Journal // nil = none
	next    int      // next exchange of the run; those that are kept are replayed

	mu      sync.Mutex
	sums    []exchange
	err     error         // why there will be no more
	changed chan struct{} // closed when sums, err or fetched change
	fetched map[Token]int // sums that a leaf has fetched, in a row

	serving sync.Mutex
	latest  map[Token]*byte // connection of each leaf
}

// exchange is one sum, as it is published, or what this site has of the sums over neighbours.
type exchange struct {
	numbers []byte
	leaves  map[Token]bool // whose shares are in it
	width   int            // columns of rows, one for each node of the border (0 = a sum)
	list    uint32         // digest of the leaves, over neighbours
	opened  []byte         // sums of this site's own nodes, over neighbours
}

// NewCollector returns the reducer of one of the sites in g, which sums what the sites have through inner. The first
// a.Sites members have an intake, the others nil. until returns when an exchange may close: Intake.Quorum.
func NewCollector(
	a Agreement, g *comm.Group, inner comm.Reducer, in *Intake, until func(ctx context.Context, exchange int) error,
) (*Collector, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if g.Size() < a.Sites || (in != nil) != (g.Rank() < a.Sites) {
		return nil, fmt.Errorf("the sites that collect shares must be the first %d of a group (got rank %d of %d, "+
			"with an intake: %t)", a.Sites, g.Rank(), g.Size(), in != nil)
	}
	return &Collector{agreed: a, group: g, inner: inner, intake: in, until: until, changed: make(chan struct{}),
		fetched: map[Token]int{}, latest: map[Token]*byte{}}, nil
}

// Reduce implements comm.Reducer: the sums are over all sites, and over the leaves with a share at all collecting sites
// a share when they close the exchange. They are exact sums of what each member rounded to Step. Limits are not
// checked: nobody sees what one leaf sends.
//
// The M sites send 16·len·(M−1) bytes by Reduce if inner is a Group, for len numbers of Update and Counts. By Control
// they send, in addition to Meta, a tag of 8 bytes for each share that a collecting site has, to each other collecting
// site.
func (s *Collector) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if e, is := s.replayed(); is {
		if e.width > 0 {
			return comm.Reduced{},
				fmt.Errorf("%v: what is kept must be a sum of all: begin again with empty states", c.ID)
		}
		return comm.Reduced{Meta: slices.Repeat([][]byte{c.Meta}, s.group.Size())},
			unpack(comm.Integers{Bits: 64, B: e.numbers}, c)
	}
	if err := s.group.Allow(c); err != nil {
		return comm.Reduced{}, err
	}
	x, err := pack(c, s.agreed.bound(s.group.Size()))
	if err != nil {
		return comm.Reduced{}, err
	}
	shares, list, err := s.collect(ctx, func(Token) int { return len(x.B) / 8 })
	if err != nil {
		return comm.Reduced{}, err
	}
	if len(list) < s.agreed.Least {
		list = nil
	}
	add(x, shares, list)
	sum := comm.Contribution{ID: c.ID, Meta: c.Meta, Common: c.Common, Counts: make([]int64, len(x.B)/8), Allowed: true}
	for i := range sum.Counts {
		sum.Counts[i] = int64(binary.LittleEndian.Uint64(x.B[8*i:]))
	}
	said, err := s.inner.Reduce(ctx, &sum)
	if err != nil {
		return comm.Reduced{}, err
	}
	for i, n := range sum.Counts {
		binary.LittleEndian.PutUint64(x.B[8*i:], uint64(n))
	}
	if err := s.publish(exchange{numbers: x.B, leaves: tokens(shares, list)}); err != nil {
		return comm.Reduced{}, err
	}
	return comm.Reduced{Meta: said.Meta}, unpack(x, c)
}

// collect closes the next exchange, in which the share of leaf t has numbers(t) numbers, and returns the leaves whose
// shares every collecting site has.
func (s *Collector) collect(ctx context.Context,
	numbers func(Token) int) (shares map[uint64]share, list []uint64, err error) {
	var own []byte
	if s.intake != nil {
		s.intake.begin(numbers)
		if err := s.until(ctx, len(s.sums)); err != nil {
			return nil, nil, err
		}
		shares = s.intake.close()
		for _, tag := range slices.Sorted(maps.Keys(shares)) {
			own = binary.LittleEndian.AppendUint64(own, tag)
		}
	}
	in, err := s.tell(ctx, "lists of leaves", own, s.agreed.Sites, 8*s.agreed.Most)
	if err != nil || s.intake == nil {
		return nil, nil, err
	}
	lists := make([][]uint64, s.agreed.Sites)
	for q := range lists {
		if lists[q], err = parseList(in[q]); err != nil {
			return nil, nil, &comm.PeerError{Rank: q, Op: "lists of leaves", Err: err}
		}
	}
	return shares, common(lists), nil
}

// tell sends b to the first `sites` members of the group and returns what each member sent, with b of this one.
func (s *Collector) tell(ctx context.Context, what string, b []byte, sites, limit int) ([][]byte, error) {
	out := make([][]byte, s.group.Size())
	for q := range sites {
		out[q] = b
	}
	in, err := s.group.SendRecv(ctx, comm.Control, what, out, limit)
	if err == nil {
		in[s.group.Rank()] = b
	}
	return in, err
}

// tokens returns whose the listed shares are.
func tokens(shares map[uint64]share, list []uint64) map[Token]bool {
	leaves := make(map[Token]bool, len(list))
	for _, tag := range list {
		leaves[shares[tag].token] = true
	}
	return leaves
}

func parseList(b []byte) (list []uint64, err error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("a list must have whole tags of 8 bytes (got %d bytes)", len(b))
	}
	for ; len(b) > 0; b = b[8:] {
		tag := binary.LittleEndian.Uint64(b)
		if len(list) > 0 && tag <= list[len(list)-1] {
			return nil, errors.New("the tags of a list must ascend")
		}
		list = append(list, tag)
	}
	return list, nil
}

// publish keeps an exchange and lets leaves fetch it.
func (s *Collector) publish(e exchange) error {
	if s.journal != nil {
		if err := s.journal.Keep(exchangeName(len(s.sums)), e.encode(s.agreed.Run)); err != nil {
			return err
		}
	}
	s.publishKept(e)
	s.next++
	return nil
}

func (s *Collector) publishKept(e exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums = append(s.sums, e)
	s.change()
}

// change wakes the callers that wait for a change. s.mu is locked.
func (s *Collector) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Stop reports that no sum follows, since the run has ended or failed: err is the reason.
func (s *Collector) Stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.change()
	}
}

// Behind returns how many leaves this site has admitted that have not fetched all that they ask this site for: sums, if
// it is their first site, and sums over neighbours.
func (s *Collector) Behind() (n int) {
	if s.intake == nil {
		return 0
	}
	admitted := s.intake.admitted()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range admitted {
		if s.fetched[t] < s.due(t) {
			n++
		}
	}
	return n
}

// due returns the number of exchanges after which a leaf no longer needs this site. s.mu is locked.
func (s *Collector) due(t Token) int {
	n := len(s.sums)
	if t.First(s.agreed.Sites) != s.group.Rank() {
		for n > 0 && s.sums[n-1].width == 0 {
			n--
		}
	}
	return n
}

// Finish returns when no leaf is behind, or ctx ends. Sums must be complete.
func (s *Collector) Finish(ctx context.Context) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if s.Behind() == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// took notes that leaf t has received the sums of an exchange.
func (s *Collector) took(t Token, exchange int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched[t] = max(s.fetched[t], exchange+1); s.fetched[t] >= s.due(t) {
		s.change()
	}
}

// What a leaf fetches of an exchange:
//
//	byte 0       version of this layout, 1
//	byte 1       1: the leaf's numbers are in the sums, 0: they are not
//	byte 2       1: sums over neighbours, 0: of all
//	byte 3       0
//	bytes 4–7    exchange, little endian as all that follows
//	bytes 8–11   the exchange that is open or opens next: shares of earlier ones are late
//	bytes 12–15  over neighbours a hash of the leaves in the sums: sites' parts of the same sums go together; else 0
//	bytes 16–    numbers of 8 bytes: the sums; over neighbours this site's part of them, one row for each leaf node
const sumsHeader = 16

// Sums waits for an exchange and returns what leaf t fetches of it.
func (s *Collector) Sums(ctx context.Context, t Token, exchange int) ([]byte, error) {
	for {
		s.mu.Lock()
		n, err, changed := len(s.sums), s.err, s.changed
		s.mu.Unlock()
		if exchange >= 0 && exchange < n {
			return s.encode(t, exchange, n), nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Collector) encode(t Token, exchange, open int) []byte {
	s.mu.Lock()
	e := s.sums[exchange]
	s.mu.Unlock()
	b := make([]byte, 4, sumsHeader+len(e.numbers))
	b[0] = version
	if e.leaves[t] {
		b[1] = 1
	}
	numbers := e.numbers
	if e.width > 0 {
		b[2], numbers = 1, nil
		for _, i := range s.intake.owned(t) {
			numbers = append(numbers, e.row(i)...)
		}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(exchange))
	b = binary.LittleEndian.AppendUint32(b, uint32(open))
	b = binary.LittleEndian.AppendUint32(b, e.list)
	return append(b, numbers...)
}
