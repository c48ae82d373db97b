package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/p2p"
)

// open opens this peer's host for a run, and lets it follow the roster until ctx ends.
func (s seat) open(ctx context.Context, p *agreement, here *site, rank int, id p2p.Identity, w *watch) (*p2p.Host, error) {
	at := s.listen
	if at == nil {
		at = here.peers(p).Members[rank].Addrs
	}
	network := p2p.Config{Identity: id, Listen: at, Transport: p.Carrier, MaxPeers: len(p.Peers), LAN: s.lan,
		Relays: append(p.Relays[:len(p.Relays):len(p.Relays)], relaysOf(here.roster, time.Now())...),
		Waiting: func(name string, since time.Duration, last error) {
			if int(since.Seconds())%5 == 0 {
				w.log.Info(fmt.Sprintf("waiting for %s (%.10s…): %s of %s", name, p.idOf(name), since.Round(time.Second), s.wait), "last_error", fmt.Sprint(last))
			}
		}}
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

func (p *agreement) idOf(name string) string {
	for _, m := range p.Peers {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}
