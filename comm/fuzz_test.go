package comm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// script is a transport on which the given frames come from the one other member, and then its end. What is sent is
// kept.
type script struct {
	in [][]byte

	mu  sync.Mutex
	out [][]byte
}

func (s *script) Send(_ context.Context, _ int, head, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, append(append([]byte{}, head...), body...))
	return nil
}

func (s *script) Recv(_ context.Context, from int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.in) == 0 {
		return nil, &comm.PeerError{Rank: from, Op: "recv", Err: io.EOF}
	}
	f := s.in[0]
	s.in = s.in[1:]
	return f, nil
}

func (s *script) Free([]byte)  {}
func (s *script) Close() error { return nil }

// pairwise are the operations of two members, with messages of one frame and of several.
var pairwise = []func(g *comm.Group) error{
	func(g *comm.Group) error { return g.AllReduce(context.Background(), comm.Reduce, make([]float32, 5)) },
	func(g *comm.Group) error {
		return g.AllReduce(context.Background(), comm.Reduce, make([]float32, 140_000))
	},
	func(g *comm.Group) error {
		c := comm.Contribution{Update: make([]float32, 3), Counts: make([]int64, 5000), Meta: []byte("digest")}
		r, err := g.Reduce(context.Background(), &c)
		if err == nil && len(r.Meta[1-g.Rank()]) > comm.MaxMeta {
			return errors.New("took a longer meta than there may be")
		}
		return err
	},
	func(g *comm.Group) error {
		x := []float32{1, -2, 3, 0, 0.5, 0}
		_, err := g.Reduce(context.Background(),
			&comm.Contribution{Update: x, Bits: 16, Columns: 2, Counts: make([]int64, 3)})
		for _, v := range x {
			if err == nil && !(math.Abs(float64(v)) <= math.MaxFloat32) {
				return fmt.Errorf("a sum of finite numbers is %g", v)
			}
		}
		return err
	},
	func(g *comm.Group) error {
		_, err := g.Reduce(context.Background(),
			&comm.Contribution{Update: make([]float32, 600_000), Bits: 8, Columns: 5000})
		return err
	},
	func(g *comm.Group) error {
		out, in := make([][]float32, 2), make([][]float32, 2)
		out[1-g.Rank()], in[1-g.Rank()] = make([]float32, 3), make([]float32, 3)
		return g.Exchange(context.Background(), comm.Halo, "rows", out, in)
	},
	func(g *comm.Group) error {
		out := make([][]byte, 2)
		out[1-g.Rank()] = []byte("warp and weft")
		in, err := g.SendRecv(context.Background(), comm.Control, "digests", out, 1000)
		if err == nil && len(in[1-g.Rank()]) > 1000 {
			return errors.New("took more than its limit")
		}
		return err
	},
	func(g *comm.Group) error {
		return g.Broadcast(context.Background(), comm.Control, 1, make([]float32, 70_000))
	},
	func(g *comm.Group) error { return g.Barrier(context.Background()) },
	func(g *comm.Group) error {
		const length = 300_000
		lane := comm.Lane{Unit: 4, Out: make([]int, 2), In: make([]int, 2),
			Fill: func(_, _ int, dst []byte) []byte { clear(dst); return dst },
			Take: func(_, at, n int, src []byte) error {
				if at+n > length || len(src) != n {
					panic("a piece goes beyond its message")
				}
				return nil
			}}
		q := 1 - g.Rank()
		lane.Out[q], lane.In[q] = length, length
		s, err := g.Stream(context.Background(), comm.Halo, "rows", lane)
		if err != nil {
			return err
		}
		s.Ask(0, q)
		s.Give(0, q)
		return s.End()
	},
}

// FuzzOperations: whatever frames the other member sends, an operation ends, without a panic, and fails with a
// *PeerError that names it unless all came that it waits for. in is a list of frames, each behind its length as uint16;
// a length of 65,535 means a full frame of zeros behind the 16 bytes that follow.
func FuzzOperations(f *testing.F) {
	for k, run := range pairwise {
		f.Add(uint8(k), encodeScript(heard(f, run)))
	}
	f.Fuzz(func(t *testing.T, which uint8, in []byte) {
		s := &script{in: decodeScript(in)}
		g := comm.NewGroup(s, 0, 2)
		defer g.Close()
		err := pairwise[int(which)%len(pairwise)](g)
		if fault, blamed := errors.AsType[*comm.PeerError](err); err != nil && (!blamed || fault.Rank != 1) {
			t.Errorf("operation %d: %v, must be a PeerError of peer 1", int(which)%len(pairwise), err)
		}
	})
}

// heard returns the frames that member 0 receives if nothing goes wrong.
func heard(t testing.TB, run func(g *comm.Group) error) [][]byte {
	t.Helper()
	kept := &script{}
	var all sync.WaitGroup
	for r, m := range netsim.New(2, netsim.Config{}).Transports() {
		all.Go(func() {
			if r == 1 {
				m = tee{m, kept}
			}
			g := comm.NewGroup(m, r, 2)
			if err := run(g); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return kept.out
}

// tee keeps a copy of what is sent.
type tee struct {
	comm.Transport
	kept *script
}

func (t tee) Send(ctx context.Context, to int, head, body []byte) error {
	return errors.Join(t.kept.Send(ctx, to, head, body), t.Transport.Send(ctx, to, head, body))
}

const fullFrame = 1<<16 - 1

func encodeScript(frames [][]byte) (b []byte) {
	for _, f := range frames {
		if len(f) == comm.MaxFrame {
			b = append(binary.LittleEndian.AppendUint16(b, fullFrame), f[:comm.HeaderLen]...)
			continue
		}
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(f))), f...)
	}
	return b
}

func decodeScript(b []byte) (frames [][]byte) {
	for len(b) >= 2 {
		n := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		size := n
		if n == fullFrame {
			n, size = comm.HeaderLen, comm.MaxFrame
		}
		n = min(n, len(b))
		frame := make([]byte, size)
		if size != comm.MaxFrame {
			frame = frame[:n]
		}
		copy(frame, b[:n])
		frames, b = append(frames, frame), b[n:]
	}
	return frames
}

// What the fuzz target begins with is what lets each operation end well, so that what differs from it is what fails it.
// A stream's pieces have to come after they were asked for, which a script does not wait for.
func TestScript(t *testing.T) {
	for k, run := range pairwise[:len(pairwise)-1] {
		in := decodeScript(encodeScript(heard(t, run)))
		if err := run(comm.NewGroup(&script{in: in}, 0, 2)); err != nil {
			t.Errorf("operation %d: %v", k, err)
		}
	}
}
