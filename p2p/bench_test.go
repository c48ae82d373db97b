package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// BenchmarkThroughput sends MB-size frames through a Session and, in turn within the same run, the same bytes through
// a bare libp2p stream of the same connection, so that both see the machine in the same state:
//
//	go test ./p2p -run - -bench Throughput -benchtime 3s
//
// It reports the rate of both and their ratio.
func BenchmarkThroughput(b *testing.B) {
	for _, transport := range transports {
		for _, size := range []int{64 << 10, 256 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", transport, size>>10), func(b *testing.B) { throughput(b, transport, size) })
		}
	}
}

func throughput(b *testing.B, transport string, size int) {
	ss := sessions(b, transport, 2)
	bare := bareStream(b, ss)
	frame, part, room := make([]byte, size), make([]byte, min(size, 1<<20)), make([]byte, 1<<20)
	shard := make([]byte, 128<<20) // as a peer's heap holds; with an empty one the collector would run every few frames
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
			if _, err := ss[1].Recv(ctx, 0); err != nil {
				b.Error(err)
				return
			}
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
	b.ResetTimer()
	for range b.N {
		t0 := time.Now()
		viaSession()
		t1 := time.Now()
		viaStream()
		session, stream = session+t1.Sub(t0), stream+time.Since(t1)
	}
	b.StopTimer()
	mb := float64(b.N) * batch / 1e6
	b.ReportMetric(mb/session.Seconds(), "session-MB/s")
	b.ReportMetric(mb/stream.Seconds(), "bare-MB/s")
	b.ReportMetric(stream.Seconds()/session.Seconds(), "ratio")
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

// bareStream opens a second stream on the session's connection.
func bareStream(b *testing.B, ss []*Session) [2]network.Stream {
	got := make(chan network.Stream, 1)
	ss[1].host.net.SetStreamHandler(func(s network.Stream) { got <- s })
	out, err := ss[0].links[1].stream.Conn().NewStream(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := out.Write([]byte{0}); err != nil { // QUIC shows a stream to the other side with its first byte
		b.Fatal(err)
	}
	in := <-got
	ss[1].host.net.SetStreamHandler(ss[1].host.onStream)
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
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
