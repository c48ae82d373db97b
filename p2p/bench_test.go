package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// BenchmarkThroughput sends MB-size frames through a Mesh and, in turn within the same run, the
// same bytes through a bare libp2p stream of the same connection, so that both see the machine in
// the same state:
//
//	go test ./p2p -run - -bench Throughput -benchtime 3s
//
// It reports the rate of both, and the medians of what the stream took over what the session took,
// by the clock and by processor time.
func BenchmarkThroughput(b *testing.B) {
	for _, transport := range transports {
		for _, size := range []int{64 << 10, 256 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", transport, size>>10), func(b *testing.B) { throughput(b, transport, size) })
		}
	}
}

func throughput(b *testing.B, transport string, size int) {
	ss := sessions(b, transport, 2)
	bare := bareStream(b, ss, 0, 1)
	frame, part, room := make([]byte, size), make([]byte, min(size, 1<<20)), make([]byte, 1<<20)
	shard := make([]byte, 128<<20) // like a peer's heap; with an empty one the collector would run every few frames
	defer runtime.KeepAlive(shard)
	const batch = 32 << 20 // bytes sent each way before the other has its turn
	count := batch / size
	ctx := context.Background()

	viaSession := func() {
		go func() {
			for range count {
				ss[0].Send(ctx, 1, nil, frame)
			}
		}()
		for range count {
			f, err := ss[1].Recv(ctx, 0)
			if err != nil {
				b.Error(err)
				return
			}
			ss[1].Free(f)
		}
	}
	viaStream := func() {
		go func() {
			for range count {
				for sent := 0; sent < size; sent += len(part) {
					bare[0].Write(part)
				}
			}
		}()
		if _, err := io.CopyN(discard{room}, bare[1], batch); err != nil {
			b.Error(err)
		}
	}
	viaSession()
	viaStream()
	var session, stream time.Duration
	var byCPU, byWall []float64
	b.ResetTimer()
	for range b.N {
		t0, c0 := time.Now(), processTime()
		viaSession()
		t1, c1 := time.Now(), processTime()
		viaStream()
		session, stream = session+t1.Sub(t0), stream+time.Since(t1)
		byWall = append(byWall, time.Since(t1).Seconds()/t1.Sub(t0).Seconds())
		byCPU = append(byCPU, (processTime()-c1).Seconds()/(c1-c0).Seconds())
	}
	b.StopTimer()
	b.ReportMetric(median(byCPU), "cpu-ratio")
	mb := float64(b.N) * batch / 1e6
	b.ReportMetric(mb/session.Seconds(), "session-MB/s")
	b.ReportMetric(mb/stream.Seconds(), "bare-MB/s")
	b.ReportMetric(median(byWall), "wall-ratio")
}

// discard reads with a buffer of a megabyte, as a program that wants the bytes would.
type discard struct{ buf []byte }

func (d discard) Write(p []byte) (int, error) { return len(p), nil }

func (d discard) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		m, err := r.Read(d.buf)
		n += int64(m)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// bareStream opens a second stream on the connection of two sessions, of the given ranks.
func bareStream(b *testing.B, ss []*Mesh, from, to int) [2]network.Stream {
	const protocol = "/heddle/bare/1"
	got := make(chan network.Stream, 1)
	ss[1].host.node.SetStreamHandler(protocol, func(s network.Stream) { got <- s })
	defer ss[1].host.node.(*node.Node).RemoveStreamHandler(protocol)
	out, err := ss[0].links[to].stream.Conn().NewStream(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(out.SetProtocol(protocol), mss.SelectProtoOrFail(protocol, out)); err != nil {
		b.Fatal(err)
	}
	in := <-got
	in.SetDeadline(time.Time{})
	return [2]network.Stream{out, in}
}

// BenchmarkRoundTrip sends a small frame there and back.
func BenchmarkRoundTrip(b *testing.B) {
	for _, transport := range transports {
		b.Run(transport, func(b *testing.B) {
			ss := sessions(b, transport, 2)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				for {
					f, err := ss[1].Recv(ctx, 0)
					if err != nil {
						return
					}
					ss[1].Send(ctx, 0, nil, f)
				}
			}()
			frame := binary.LittleEndian.AppendUint64(nil, 1)
			for b.Loop() {
				if err := ss[0].Send(ctx, 1, nil, frame); err != nil {
					b.Fatal(err)
				}
				if _, err := ss[0].Recv(ctx, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFootprint opens a session of 24 peers in this process and reports what one of them uses while it is idle:
// memory of heap and stacks, and goroutines. It also reports processor time and wake-ups (an idle thread gets work) of
// all 24 in ten seconds, and the resident memory of the process.
//
//	go test ./p2p -run - -bench Footprint -benchtime 1x
func BenchmarkFootprint(b *testing.B) {
	for _, transport := range transports {
		b.Run(transport, func(b *testing.B) {
			for range b.N {
				const peers = 24
				bytes, goroutines := heap(), runtime.NumGoroutine()
				begun := time.Now()
				ss := sessions(b, transport, peers)
				b.ReportMetric(time.Since(begun).Seconds(), "join-s")
				b.ReportMetric(float64(heap()-bytes)/peers/1024, "KiB/peer")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/peers, "goroutines/peer")
				cpu, woken := processTime(), wakeups()
				time.Sleep(10 * time.Second)
				b.ReportMetric((processTime() - cpu).Seconds(), "cpu-s/10s")
				b.ReportMetric(float64(wakeups()-woken)/10, "wakeups/s")
				b.ReportMetric(float64(resident())/(1<<20), "resident-MiB")
				for _, s := range ss {
					s.host.Close()
				}
			}
		})
	}
}

// BenchmarkSessions opens and closes sessions of two peers, and reports what is left of them.
//
//	go test ./p2p -run - -bench Sessions -benchtime 1000x
func BenchmarkSessions(b *testing.B) {
	for _, transport := range transports {
		b.Run(transport, func(b *testing.B) {
			hs, roster := hosts(b, transport, 2)
			open := func(generation uint64) {
				ss, errs := join(context.Background(), hs, []identity.Roster{roster}, []Hello{{Generation: generation}})
				for i, err := range errs {
					if err != nil {
						b.Fatal(err)
					}
					defer ss[i].Close()
				}
			}
			open(0)
			bytes, goroutines, files := heap(), runtime.NumGoroutine(), openFiles()
			for i := range b.N {
				open(uint64(i) + 1)
			}
			time.Sleep(8 * time.Second) // quic-go answers late packets of a closed connection for a while
			b.ReportMetric(float64(heap()-bytes)/1024, "KiB-left")
			b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines-left")
			b.ReportMetric(float64(openFiles()-files), "files-left")
		})
	}
}

// openFiles is how many descriptors this process has (0 = the system does not report it).
func openFiles() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}
