package secagg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// BenchmarkSum takes one sum at all members, which share this machine's processors: in the clear as
// floats, in fixed point without masks, and with them.
func BenchmarkSum(b *testing.B) {
	for _, size := range []struct{ members, numbers int }{{3, 1_000_000}, {10, 1_000_000}, {50, 10_000},
		{50, 1_000_000}} {
		if testing.Short() && size.members*size.numbers > 5_000_000 {
			continue
		}
		for _, form := range []struct {
			name string
			how  int
			bits int
		}{{"floats", plain, 0}, {"fixed/bits=32", unmasked, 32}, {"masked/bits=32", masked, 32},
			{"fixed/bits=64", unmasked, 64}, {"masked/bits=64", masked, 64}} {
			b.Run(fmt.Sprintf("members=%d/numbers=%d/%s", size.members, size.numbers, form.name), func(b *testing.B) {
				errs := together(b, size.members, nil, func(g *comm.Group) error {
					var r comm.Reducer = g
					if form.how != plain {
						s, err := New(context.Background(), KeyTerms{Least: 2}, g)
						if err != nil {
							return err
						}
						if r = s; form.how == unmasked {
							s.pairs = nil
						}
					}
					x, own := make([]float32, size.numbers), make([]float32, size.numbers)
					for i := range own {
						own[i] = float32(i%1000) - float32(g.Rank())
					}
					if err := g.Barrier(context.Background()); err != nil {
						return err
					}
					if g.Rank() == 0 {
						b.ResetTimer()
					}
					for range b.N {
						copy(x, own)
						if _, err := r.Reduce(context.Background(),
							&comm.Contribution{Update: x, Bits: form.bits}); err != nil {
							return err
						}
					}
					return nil
				})
				if err := errors.Join(errs...); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkMask makes one member's masks of a million numbers towards one other member, and towards 49.
func BenchmarkMask(b *testing.B) {
	for _, partners := range []int{1, 49} {
		for _, bits := range []int{32, 64} {
			b.Run(fmt.Sprintf("partners=%d/bits=%d", partners, bits), func(b *testing.B) {
				v := comm.NewIntegers(bits, 1_000_000)
				pairs := make([]pair, partners)
				for k := range pairs {
					pairs[k] = pair{with: k + 1, secret: bytes.Repeat([]byte{byte(k)}, 32), first: k%2 == 0}
				}
				b.SetBytes(int64(partners * len(v.B)))
				for b.Loop() {
					cover(pairMasks(pairs, "bench"), v, 0, 0, 1_000_000)
				}
			})
		}
	}
}

// BenchmarkKeys agrees on the secrets of a session.
func BenchmarkKeys(b *testing.B) {
	for _, members := range []int{3, 10, 50} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			for b.Loop() {
				errs := together(b, members, nil, func(g *comm.Group) error {
					_, err := New(context.Background(), KeyTerms{Least: 2}, g)
					return err
				})
				if err := errors.Join(errs...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSites takes a sum of a million numbers of 50 sites, each behind a link of 100 Mbit/s and 20 ms,
// in the clear and masked in as many bytes. One machine makes the masks of all sites.
func BenchmarkSites(b *testing.B) {
	const size, numbers = 50, 1_000_000
	links, err := netsim.ParseTable("latency=20ms,rate=100Mbit")
	if err != nil {
		b.Fatal(err)
	}
	for _, how := range []int{plain, masked} {
		b.Run([]string{plain: "floats", masked: "masked"}[how], func(b *testing.B) {
			errs := over(b, netsim.New(size, netsim.Config{Links: links}), size, nil, func(g *comm.Group) error {
				var r comm.Reducer = g
				if how == masked {
					s, err := New(context.Background(), KeyTerms{Least: 2}, g)
					if err != nil {
						return err
					}
					r = s
				}
				x := make([]float32, numbers)
				if err := g.Barrier(context.Background()); err != nil {
					return err
				}
				if g.Rank() == 0 {
					b.ResetTimer()
				}
				for range b.N {
					for i := range x {
						x[i] = float32(i%1000) - float32(g.Rank())
					}
					if _, err := r.Reduce(context.Background(),
						&comm.Contribution{Update: x, Parts: []int{numbers}}); err != nil {
						return err
					}
				}
				return nil
			})
			if err := errors.Join(errs...); err != nil {
				b.Fatal(err)
			}
		})
	}
}
