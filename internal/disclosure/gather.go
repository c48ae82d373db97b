package disclosure

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// What members exchange when they connect to gather, and not when they train, ends with one of these lines.
const (
	gathering  = "step: gather\n"
	connecting = "step: gather parts with edges between sites\n"
)

// OtherStep reports whether some members gather while others train.
func OtherStep(err error) bool {
	var m *p2p.MemberMismatchError
	gathers := func(text string) bool {
		return strings.HasSuffix(text, gathering) || strings.HasSuffix(text, connecting)
	}
	return errors.As(err, &m) && gathers(m.OurPlan) != gathers(m.PeerPlan)
}

// Gather writes the part of the site s of the graph of all members of p, g and its edges to others, into dir.
func Gather(ctx context.Context, p plan.Plan, s session.Site, g *graph.Graph, outside []shard.Outside, rank int,
	dir string) error {
	if g == nil {
		return train.Input(errors.New("a run that begins needs a graph"))
	}
	if err := g.Valid(); err != nil {
		return train.Input(err)
	}
	own := shard.Whole(g)
	own.Rank, own.Parts = rank, len(p.Members)
	own.HaloPtr, own.Boundary = slices.Repeat([]int{own.Owned}, own.Parts+1), slices.Repeat([][]int32{{}}, own.Parts)
	text := p.Agreed() + gathering
	if outside != nil {
		text = p.Agreed() + connecting
	}
	s.Shard = nil
	hello := p2p.Hello{Plan: sha256.Sum256([]byte(text)), PlanText: text}
	return MeetAs(ctx, p, s, "gather", hello, nil, func(ctx context.Context,
		at *session.Session) error {
		step := 0
		tell := func(b []byte) ([][]byte, error) {
			r, err := at.Group.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Step: step, Kind: "gather"}, Meta: b})
			step++
			return r.Meta, err
		}
		first, err := shard.Number(own, p.Names(), tell)
		if err == nil && outside != nil {
			err = shard.Connect(own, first, p.Names(), outside, func(what string, out [][]byte, limit int) ([][]byte,
				error) {
				return at.Group.SendRecv(ctx, comm.Halo, what, out, limit)
			})
		}
		if err != nil {
			if _, theirs := errors.AsType[*comm.PeerError](err); !theirs && ctx.Err() == nil {
				err = train.Input(err)
			}
			return err
		}
		if _, err := shard.WriteOwn(dir, own, shard.Meta{Policy: "by-column", Sites: p.Names()}, tell); err != nil {
			return err
		}
		return at.Group.Barrier(ctx) // nobody leaves before all have what they need
	})
}
