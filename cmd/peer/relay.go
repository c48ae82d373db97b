package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/p2p"
)

// post is a relay's place: what it is told by flags.
type post struct {
	identity, roster, trusted, carrier string
	listen                             []string
	limits                             p2p.RelayLimits
}

func newRelay() *cobra.Command {
	var p post
	c := &cobra.Command{
		Use:   "relay --roster roster.json",
		Short: "Carry connections between members that cannot reach each other",
		Long: `Carry connections between members of a federation that cannot reach each other: both behind routers that
let nothing in. What passes is encrypted between the two; the relay cannot read it. Where the routers allow
it, the members open a direct way with the relay's help, and it carries nothing more.

This machine must be listed in the roster with the role relay and an address that all members can reach.
Members are let in, strangers are not; a new version of the roster is followed while the relay runs.`,
		Example: "  peer roster add roster.json post=12D3KooW...@203.0.113.7 --role relay --carrier auto\n  peer relay --roster roster.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(c.Context(), slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)))
		},
	}
	f := c.Flags()
	f.StringVar(&p.identity, "identity", defaultIdentity(), "key file of this machine")
	f.StringVar(&p.roster, "roster", "", "the federation's roster")
	f.StringVar(&p.trusted, "trusted", "", "file of the roster in force here (default: one for each federation, beside the key)")
	f.StringVar(&p.carrier, "carrier", "auto", "quic, tcp, noise, ws or auto: whatever its addresses say")
	f.StringSliceVar(&p.listen, "listen", nil, "multiaddresses to listen on (default: this machine's in the roster)")
	f.Int64Var(&p.limits.Bytes, "circuit-bytes", 0, "that one connection may carry each way; 0: no bound")
	f.DurationVar(&p.limits.Duration, "circuit-time", 0, "that one connection may last; 0: no bound")
	f.IntVar(&p.limits.Circuits, "circuits", 0, "connections of one member at once; 0: two to each other member")
	required(c, "roster")
	return c
}

func (p post) run(ctx context.Context, log *slog.Logger) error {
	id, err := loadOrMakeKey(p.identity)
	if err != nil {
		return err
	}
	feed := rosterFeed{path: p.roster, trusted: p.trusted}
	r, err := feed.first(time.Now())
	if err != nil {
		return badInput{err}
	}
	self, err := r.Admit(id.PeerID(), time.Now(), admission.Relay)
	if err != nil {
		return badInput{err}
	}
	if p.listen == nil {
		p.listen = self.Addresses
	}
	if len(p.listen) == 0 {
		return badInput{errors.New("roster: it lists no address of this relay, and --listen gives none")}
	}
	cfg := p2p.Config{Identity: id, Listen: p.listen, Transport: p.carrier, MaxPeers: max(64, len(r.Members))}
	if err := cfg.Validate(); err != nil {
		return badInput{err}
	}
	relay, err := p2p.ListenRelay(cfg, carried(r, time.Now()), p.limits)
	if err != nil {
		return err
	}
	log.Info("relay", "federation", r.Federation, "serial", r.Serial, "members", len(r.Members), "addresses", relay.Addrs())
	feed.follow(ctx, log, func(r admission.Roster, now time.Time) {
		if _, err := r.Admit(id.PeerID(), now, admission.Relay); err != nil {
			log.Warn("this relay is one no more", "error", err)
			r.Members = r.Members[:0]
		}
		if err := relay.Admit(carried(r, now)); err != nil {
			log.Warn("roster", "error", err)
		}
		log.Info("roster", "serial", r.Serial, "connected", relay.Connected())
	})
	return relay.Close()
}

// carried lists those for whom a relay works: all members whose time is not over.
func carried(r admission.Roster, now time.Time) (out p2p.Roster) {
	for _, m := range r.Members {
		if _, err := r.Admit(m.ID, now); err == nil {
			out.Members = append(out.Members, p2p.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
		}
	}
	return out
}

// relaysOf lists the addresses of a federation's relays.
func relaysOf(r admission.Roster, now time.Time) (out []string) {
	for _, m := range r.Members {
		if m.Role != admission.Relay || m.Expires.Past(now) {
			continue
		}
		for _, a := range m.Addresses {
			out = append(out, a+"/p2p/"+m.ID)
		}
	}
	return out
}
