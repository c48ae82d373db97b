package federation

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// post has the flags of heddle relay.
type post struct {
	identity, roster, trusted, carrier string
	listen                             []string
	limits                             node.RelayLimits
}

func newRelay() *cobra.Command {
	var p post
	c := &cobra.Command{
		Use:   "relay --roster federation.yaml",
		Short: "Forward connections between members of a federation",
		Long: `Forward connections between members of a federation that cannot reach each other because both are
behind routers that accept no connections. The two ends encrypt the traffic; the relay cannot read it. If the routers
allow it, the members open a direct connection with the relay's help.

The roster must list this machine with the role relay and an address that all members reach. The relay serves members
only and follows a new version of the roster while it runs.`,
		Example: "  heddle roster add federation.yaml post=12D3KooW...@203.0.113.7 --role relay --carrier auto\n" +
			"  heddle relay --roster federation.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.serveRelay(c.Context(), slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)))
		},
	}
	f := c.Flags()
	f.StringVar(&p.identity, "identity", cli.DefaultIdentity(), "key file of this machine")
	f.StringVar(&p.roster, "roster", "", "roster of the federation")
	cli.Reads(f, "roster")
	f.StringVar(&p.trusted, "trusted", "", "file of the roster in force (default: next to the key)")
	f.StringVar(&p.carrier, "carrier", "auto", "protocol (quic, tcp, noise, ws, auto = by address)")
	f.StringSliceVar(&p.listen, "listen", nil, "multiaddresses to listen on (default: the roster's)")
	f.Int64Var(&p.limits.Bytes, "circuit-bytes", 0, "bytes of one connection each way (0 = no limit)")
	f.DurationVar(&p.limits.Duration, "circuit-time", 0, "duration of one connection (0 = no limit)")
	f.IntVar(&p.limits.Circuits, "circuits", 0, "connections of a member at once (default: two a member)")
	cli.Required(c, "roster")
	return c
}

func (p post) serveRelay(ctx context.Context, log *slog.Logger) error {
	id, err := cli.LoadOrMakeKey(p.identity)
	if err != nil {
		return err
	}
	given, err := readRoster(p.roster)
	if err != nil {
		return err
	}
	r, trusted := given.Body, inForce(p.trusted, given.Body.Federation)
	if err := trusted.Update(given, "", time.Now()); err != nil {
		return cli.Invalid(err)
	}
	self, err := r.Admit(id.PeerID(), time.Now(), admission.Relay)
	if err != nil {
		return cli.Invalid(err)
	}
	if p.listen == nil {
		p.listen = self.Addresses
	}
	if len(p.listen) == 0 {
		return cli.Invalidf("a relay needs an address: add one to its entry in the roster, or give --listen")
	}
	cfg := node.Config{Identity: id, Listen: p.listen, Transport: p.carrier, MaxPeers: max(64, len(r.Members))}
	if err := cfg.Validate(); err != nil {
		return cli.Invalid(err)
	}
	relay, err := node.ListenRelay(cfg, carried(r, time.Now()), p.limits)
	if err != nil {
		return err
	}
	log.Info("relay", "federation", r.Federation, "serial", r.Serial, "members", len(r.Members),
		"addresses", relay.Addrs())
	feed := admission.Feed{Path: p.roster, InForce: trusted, Warn: func(text string) { log.Warn(text) }}
	feed.Follow(ctx, r, func(r admission.Roster, now time.Time) {
		if _, err := r.Admit(id.PeerID(), now, admission.Relay); err != nil {
			log.Warn("this relay is no longer a member", "error", err)
			r.Members = r.Members[:0]
		}
		if err := relay.Admit(carried(r, now)); err != nil {
			log.Warn("roster", "error", err)
		}
		log.Info("roster", "serial", r.Serial, "connected", relay.Connected())
	})
	return relay.Close()
}

// carried lists whom a relay serves: members whose membership has not ended.
func carried(r admission.Roster, now time.Time) (out identity.Roster) {
	for _, m := range r.Members {
		if _, err := r.Admit(m.ID, now); err == nil {
			out.Members = append(out.Members, identity.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
		}
	}
	return out
}
