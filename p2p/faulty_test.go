package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// faulty is the transport of a member that proves its identity and then sends other frames than it should: spoil gets
// each with its number, and returns the frames that are sent instead.
type faulty struct {
	comm.Transport
	spoil func(k int, frame []byte) [][]byte
	sent  int
}

func (f *faulty) Send(ctx context.Context, to int, head, body []byte) error {
	frames := f.spoil(f.sent, slices.Concat(head, body))
	f.sent++
	for _, frame := range frames {
		if err := f.Transport.Send(ctx, to, frame, nil); err != nil {
			return err
		}
	}
	return nil
}

// A member whose frames are corrupted, cut short, lengthened, sent twice, in another order or once
// more is named by the others, at once or in the next operation; nothing hangs.
func TestFaultyMember(t *testing.T) {
	t.Parallel()
	var before, first []byte // one for each fault: the member of one may still run when the next begins
	faults := map[string]func(k int, frame []byte) [][]byte{
		"cut short":  func(_ int, f []byte) [][]byte { return [][]byte{f[:len(f)/2]} },
		"lengthened": func(_ int, f []byte) [][]byte { return [][]byte{append(f, 0)} },
		"empty":      func(_ int, f []byte) [][]byte { return [][]byte{{}} },
		"twice":      func(_ int, f []byte) [][]byte { return [][]byte{f, f} },
		"another order": func(k int, f []byte) [][]byte {
			if k%2 == 0 {
				before = f
				return nil
			}
			return [][]byte{f, before}
		},
		"once more": func(k int, f []byte) [][]byte {
			if k == 0 {
				first = f
			}
			return [][]byte{first}
		},
	}
	for at := range comm.HeaderLen {
		faults["corrupted at "+string(rune('a'+at))] = func(_ int, f []byte) [][]byte {
			f[at] ^= 0x81
			return [][]byte{f}
		}
	}
	for name, spoil := range faults {
		t.Run(name, func(t *testing.T) {
			ss := sessions(t, "tcp", 2)
			ctx := within(t, patience)
			run := func(s *Mesh, over comm.Transport) (err error) {
				g := comm.NewGroup(over, s.Rank(), 2)
				defer g.Close()
				out, in := make([][]float32, 2), make([][]float32, 2)
				out[1-s.Rank()], in[1-s.Rank()] = make([]float32, 70_000), make([]float32, 70_000) // two frames
				for call := 0; err == nil && call < 3; call++ {
					err = g.Exchange(ctx, comm.Halo, "rows", out, in)
				}
				return err
			}
			go run(ss[0], &faulty{Transport: ss[0], spoil: spoil})
			err := run(ss[1], ss[1])
			fault, ok := errors.AsType[*comm.PeerError](err)
			if !ok || fault.Rank != 0 || ctx.Err() != nil {
				t.Errorf("%v, must be a fault of peer 0", err)
			}
		})
	}
}

// A member that cuts the stream inside a frame, announces a frame that is too long, or speaks out
// of turn is named, and no memory is taken for its promise.
func TestFaultyStream(t *testing.T) {
	t.Parallel()
	length := func(n uint32, more ...byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, n), more...) }
	for name, said := range map[string][]byte{
		"cut":      length(100, 1, 2, 3),
		"too long": length(maxFrame + 1),
		"promise":  length(maxFrame, 1),
		"half":     {1, 0},
	} {
		each(t, func(t *testing.T, transport string) {
			ss := sessions(t, transport, 2)
			s := ss[0].links[1].stream
			if _, err := s.Write(said); err != nil {
				t.Fatal(err)
			}
			s.CloseWrite()
			_, err := ss[1].Recv(within(t, patience), 0)
			fault, ok := errors.AsType[*comm.PeerError](err)
			if !ok || fault.Rank != 0 || errors.Is(err, context.DeadlineExceeded) ||
				cap(ss[1].links[0].body) > firstRead {
				t.Errorf("%s: %v, must be a fault of peer 0", name, err)
			}
			if name != "too long" && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v, must say that the stream ended inside a frame", name, err)
			}
		})
	}
}

// A member that reads nothing delays members that send to it until their deadline, which names it. What waits for it
// takes no more memory than the windows of one stream, and the others go on.
func TestMemberThatReadsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 3)
		frame := make([]byte, 1<<20)
		sent := 0
		var err error
		for ; err == nil && sent < 100; sent++ {
			err = ss[0].Send(within(t, 500*time.Millisecond), 1, frame, nil)
		}
		fault, ok := errors.AsType[*comm.PeerError](err)
		if !ok || fault.Rank != 1 || sent > 64 {
			t.Errorf("%d MiB went to a member that reads nothing, then %v", sent, err)
		}
		frames(t, ss[0], ss[2])
		frames(t, ss[1], ss[2])
	})
}
