package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/retexo"
)

const peers = 4

// train trains once and measures from the first greeting to the last test count.
func train(ctx context.Context, data, transport string, rounds int, profile string) (m measure, err error) {
	g, err := dataset.Read(data, 0)
	if err != nil {
		return m, err
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		return m, err
	}
	shards, err := partition.Partition(g, policy, peers, 1)
	if err != nil {
		return m, err
	}
	plan := retexo.Plan{Model: "gcn", Encoder: "raw", Carry: "hidden", Layers: 2, Hidden: 256, Hops: 1, Dropout: 0.3}
	spec, err := plan.Spec("single", g.X.Cols(), g.Labels.Classes)
	if err != nil {
		return m, err
	}
	c := retexo.Defaults(spec)
	c.Rounds = rounds
	transports, closeAll, err := connect(ctx, transport)
	if err != nil {
		return m, err
	}
	defer closeAll()
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return m, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return m, err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	errs, results := make([]error, peers), make([]retexo.Result, peers)
	var all sync.WaitGroup
	for rank, t := range transports {
		all.Go(func() {
			if results[rank], errs[rank] = one(ctx, c, shards[rank], t); errs[rank] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	m.Seconds = time.Since(start).Seconds()
	if err := errors.Join(errs...); err != nil {
		return m, err
	}
	stages := results[0].Stages
	m.TestAccuracy = stages[len(stages)-1].Test
	return m, nil
}

// one is one peer's run.
func one(ctx context.Context, c retexo.Config, s *partition.Shard, t comm.Transport) (retexo.Result, error) {
	group := comm.NewGroup(t, s.Rank, s.Parts)
	defer group.Close()
	model, err := retexo.NewModel(c)
	if err != nil {
		return retexo.Result{}, err
	}
	trainer, err := retexo.New(c, s, model)
	if err != nil {
		return retexo.Result{}, err
	}
	err = trainer.Run(ctx, group, group)
	return trainer.Result(), err
}

// connect returns a transport a peer: in memory, or of libp2p hosts on loopback.
func connect(ctx context.Context, transport string) (ts []comm.Transport, closeAll func(), err error) {
	listen := map[string]string{"quic": "/ip4/127.0.0.1/udp/0/quic-v1", "tcp": "/ip4/127.0.0.1/tcp/0"}[transport]
	switch {
	case transport == "memory":
		return sim.New(peers, sim.Config{}).Transports(), func() {}, nil
	case listen == "":
		return nil, nil, fmt.Errorf("transport %q, want memory, quic or tcp", transport)
	}
	var hosts []*p2p.Host
	closeHosts := func() {
		for _, h := range hosts {
			h.Close()
		}
	}
	defer func() {
		if err != nil {
			closeHosts()
		}
	}()
	var roster p2p.Roster
	for i := range peers {
		id, err := p2p.NewIdentity()
		if err != nil {
			return nil, nil, err
		}
		h, err := p2p.Listen(p2p.Config{Identity: id, Transport: transport, Listen: []string{listen}})
		if err != nil {
			return nil, nil, err
		}
		hosts = append(hosts, h)
		roster.Members = append(roster.Members, p2p.Member{Name: fmt.Sprintf("peer-%d", i), ID: h.ID(), Addrs: h.Addrs()})
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ts = make([]comm.Transport, peers)
	errs := make([]error, peers)
	var all sync.WaitGroup
	for i, h := range hosts { // members are ranked in the roster's order
		all.Go(func() { ts[i], errs[i] = h.Join(ctx, roster, p2p.Hello{Plan: [32]byte{1}}) })
	}
	all.Wait()
	return ts, closeHosts, errors.Join(errs...)
}
