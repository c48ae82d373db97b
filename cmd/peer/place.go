package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/p2p"
)

// open opens this peer's host for a run, and lets it follow the roster until ctx ends.
func (s seat) open(ctx context.Context, p *agreement, here *site, rank int, id p2p.Identity, w *watch) (*p2p.Host, error) {
	network := s.network(p, here, rank, id)
	network.Waiting = func(name string, since time.Duration, last error) {
		if int(since.Seconds())%5 == 0 {
			wait := s.wait
			if s.waiting != nil {
				wait = time.Duration(s.waiting.Load())
			}
			var more []any
			if last != nil {
				more = []any{"last_error", last}
			}
			w.log.Info(fmt.Sprintf("waiting for %s (%.10s…): %s of %s", name, p.idOf(name), since.Round(time.Second), wait.Round(time.Second)), more...)
		}
	}
	if err := network.Validate(); err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", s.plan, err)}
	}
	h, err := p2p.Listen(network)
	if err != nil {
		return nil, err
	}
	go here.revoke(ctx, s.gate, p, id.PeerID(), h, w.log)
	return h, nil
}

// network is what plan, policy and this peer's own flags say of its host. Where several bound a rate the least holds.
func (s seat) network(p *agreement, here *site, rank int, id p2p.Identity) p2p.Config {
	at := s.listen
	if at == nil {
		at = here.peers(p).Members[rank].Addrs
	}
	intake := s.intake
	if here.policy != nil && here.policy.MaxIntake > 0 && (intake == 0 || here.policy.MaxIntake < intake) {
		intake = here.policy.MaxIntake
	}
	return p2p.Config{Identity: id, Listen: at, Transport: p.Carrier, MaxPeers: len(p.Peers), LAN: s.lan, Silence: p.Silence, MaxRate: intake,
		Relays: append(p.Relays[:len(p.Relays):len(p.Relays)], relaysOf(here.roster, time.Now())...)}
}

func (p *agreement) idOf(name string) string {
	for _, m := range p.Peers {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}
