package leaf

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Uplink carries what a leaf exchanges with the sites that collect its shares.
type Uplink interface {
	// Send brings a share to a site. An error is no reason to give up: the leaf is left out of one sum.
	Send(ctx context.Context, site int, share []byte) error
	// Sums waits for an exchange and returns what a site publishes of it.
	Sums(ctx context.Context, site, exchange int) ([]byte, error)
	// Parts asks all sites at once for what each has of sums over neighbours, and returns it by site.
	Parts(ctx context.Context, exchange int) ([][]byte, error)
}

// Contributor is a leaf's comm.Reducer. What it returns are the sums of all sites and of the leaves that were in time;
// Reduced.Without reports whether this one was not.
type Contributor struct {
	Agreement Agreement
	Token     Token
	Uplink    Uplink
	Known     shard.BorderNodes // as the sites know it (Dial), empty if no node has an edge to another member's
	Random    io.Reader         // of seeds (nil = crypto/rand)

	next int // exchange
	open int // the first for which a share is not late, as far as is known
}

// Reduce implements comm.Reducer.
func (l *Contributor) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	k := l.next
	if k >= l.open {
		if err := l.send(ctx, k, c); err != nil {
			return comm.Reduced{}, err
		}
	}
	b, err := l.fetch(ctx, k)
	if err != nil {
		return comm.Reduced{}, err
	}
	if !isExchange(b, k, false) {
		return comm.Reduced{}, fmt.Errorf("%v: the sums of exchange %d must have its header of %d bytes "+
			"(got %d bytes)", c.ID, k, sumsHeader, len(b))
	}
	l.next, l.open = k+1, int(binary.LittleEndian.Uint32(b[8:]))
	return comm.Reduced{Meta: [][]byte{c.Meta}, Without: b[1] == 0},
		unpack(comm.Integers{Bits: 64, B: b[sumsHeader:]}, c)
}

// send sends the shares of c. A site that cannot be reached, or that is late, leaves this leaf out.
func (l *Contributor) send(ctx context.Context, k int, c *comm.Contribution) error {
	x, err := pack(c, l.Agreement.bound(mostSites))
	if err != nil {
		return err
	}
	random := l.Random
	if random == nil {
		random = rand.Reader
	}
	shares, err := l.Agreement.split(x, l.Token, uint32(k), func(b []byte) error {
		_, err := io.ReadFull(random, b)
		return err
	})
	if err != nil {
		return err
	}
	for q, b := range shares {
		if l.Uplink.Send(ctx, q, b) != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// mostSites is how many sites a leaf makes space for in a sum.
const mostSites = 1 << 12

// fetch asks the leaf's first site for an exchange, and the others if that one cannot be reached.
func (l *Contributor) fetch(ctx context.Context, k int) ([]byte, error) {
	var errs []error
	m := l.Agreement.Sites
	for i := range m {
		b, err := l.Uplink.Sums(ctx, (l.Token.First(m)+i)%m, k)
		if err == nil {
			return b, nil
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no site has the sums of exchange %d: %w", k, errors.Join(errs...))
}
