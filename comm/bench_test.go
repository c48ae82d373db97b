package comm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

func BenchmarkAllReduce(b *testing.B) {
	const size, n = 4, 375_000
	net := netsim.New(size, netsim.Config{})
	gs := make([]*comm.Group, size)
	xs := make([][]float32, size)
	for r := range gs {
		gs[r] = comm.NewGroup(net.Transport(r), r, size)
		xs[r] = make([]float32, n)
	}
	b.SetBytes(4 * n)
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for r := range gs {
			wg.Go(func() {
				if err := gs[r].AllReduce(context.Background(), comm.Reduce, xs[r]); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
