package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
)

// pipes is a program's own transport: a channel for each pair of members and direction.
type pipes struct {
	frames [][]chan []byte // by sender and receiver
	rank   int
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Send(ctx context.Context, to int, head, body []byte) error {
	frame := append(append([]byte(nil), head...), body...) // the caller uses head and body again
	select {
	case p.frames[p.rank][to] <- frame:
		return nil
	case <-ctx.Done():
		return &comm.PeerError{Rank: to, Op: "send", Err: ctx.Err()}
	case <-p.closed:
		return comm.ErrClosed
	}
}

func (p *pipes) Recv(ctx context.Context, from int) ([]byte, error) {
	select {
	case frame := <-p.frames[from][p.rank]:
		return frame, nil
	case <-ctx.Done():
		return nil, &comm.PeerError{Rank: from, Op: "recv", Err: ctx.Err()}
	case <-p.closed:
		return nil, comm.ErrClosed
	}
}

func (p *pipes) Free([]byte) {}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Three members train over a transport of the program. Package comm/commtest tests one of your own.
func ExampleJoin_transport() {
	plan, sites, err := federation()
	if err != nil {
		fmt.Println(err)
		return
	}
	frames := make([][]chan []byte, len(sites))
	for k := range frames {
		for range sites {
			frames[k] = append(frames[k], make(chan []byte, 16))
		}
	}
	connect := func(_ context.Context, rank, size int) (comm.Transport, error) {
		return &pipes{frames: frames, rank: rank, closed: make(chan struct{})}, nil
	}
	results, errs := make([]*heddle.Result, len(sites)), make([]error, len(sites))
	var wait sync.WaitGroup
	for k, site := range sites {
		site.Network.Transport = connect
		wait.Go(func() { results[k], errs[k] = heddle.Join(context.Background(), plan, site) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one result at all sites:", results[0].Test == results[1].Test && results[0].Test == results[2].Test)
	// Output: one result at all sites: true
}
