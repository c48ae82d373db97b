package p2p

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/comm"
)

// BenchmarkAllReduce adds up 16 MiB over four peers in this process and, in turn within the same
// run, sends the bytes that this takes through bare libp2p streams of the same connections, all at
// once: 8 MiB from each peer to each other.
//
//	go test ./p2p -run - -bench AllReduce -benchtime 10x
//
// wall-ratio and cpu-ratio are the medians of what the streams took over what the sum took, by the
// clock and by processor time: 1 would be a sum that costs nothing beyond its transport.
func BenchmarkAllReduce(b *testing.B) {
	const peers, floats = 4, 4 << 20
	for _, transport := range transports {
		b.Run(fmt.Sprintf("%s/%dx%dMiB", transport, peers, floats*4>>20), func(b *testing.B) {
			ss := sessions(b, transport, peers)
			groups, vectors := make([]*comm.Group, peers), make([][]float32, peers)
			var bare [peers][peers]network.Stream // [from][to]
			for r, s := range ss {
				groups[r], vectors[r] = comm.NewGroup(s, r, peers), make([]float32, floats)
				for to := range r {
					two := bareStream(b, []*Mesh{ss[to], s}, to, r)
					bare[to][r], bare[r][to] = two[0], two[1]
				}
			}
			sum := func() {
				var all sync.WaitGroup
				for r, g := range groups {
					all.Go(func() {
						if err := g.AllReduce(context.Background(), comm.Reduce, vectors[r]); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
			const each = 2 * 4 * floats / peers
			part := make([]byte, 1<<20)
			rooms := make([][]byte, peers*peers)
			for i := range rooms {
				rooms[i] = make([]byte, 1<<20)
			}
			send := func() {
				var all sync.WaitGroup
				for from := range peers {
					for to := range peers {
						if from == to {
							continue
						}
						all.Go(func() {
							for n := 0; n < each; n += len(part) {
								bare[from][to].Write(part)
							}
						})
						all.Go(func() {
							if _, err := io.CopyN(discard{rooms[from*peers+to]}, bare[to][from], each); err != nil {
								b.Error(err)
							}
						})
					}
				}
				all.Wait()
			}
			sum()
			send()
			var byWall, byCPU []float64
			for range b.N {
				t0, c0 := time.Now(), processTime()
				sum()
				t1, c1 := time.Now(), processTime()
				send()
				byWall = append(byWall, time.Since(t1).Seconds()/t1.Sub(t0).Seconds())
				byCPU = append(byCPU, (processTime()-c1).Seconds()/(c1-c0).Seconds())
			}
			b.ReportMetric(median(byWall), "wall-ratio")
			b.ReportMetric(median(byCPU), "cpu-ratio")
		})
	}
}
