package p2p_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Three peers, here in one process, sum a vector over QUIC on loopback.
func Example() {
	var hosts []*p2p.Host
	var roster identity.Roster
	for _, name := range []string{"site-a", "site-b", "site-c"} {
		id, err := identity.New() // a program keeps its key: identity.Create, identity.Load
		if err != nil {
			panic(err)
		}
		h, err := p2p.Listen(p2p.Config{Identity: id, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}})
		if err != nil {
			panic(err)
		}
		defer h.Close()
		hosts = append(hosts, h)
		roster.Members = append(roster.Members, identity.Member{Name: name, ID: h.ID(), Addrs: h.Addrs()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	sums := make([]float32, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() {
			s, err := h.Join(ctx, roster, p2p.Hello{Plan: [32]byte{1}})
			if err != nil {
				panic(err)
			}
			g := comm.NewGroup(s, s.Rank(), s.Size())
			defer g.Close()
			x := []float32{float32(i + 1)}
			if err := g.AllReduce(ctx, comm.Reduce, x); err != nil {
				panic(err)
			}
			sums[i] = x[0]
		})
	}
	all.Wait()
	fmt.Println(sums)
	// Output: [6 6 6]
}
