package federation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// doctor checks what a run needs. It prints each finding at once, with a remedy.
type doctor struct {
	plan, roster, identity, shard, state string
	listen                               []string
	wait                                 time.Duration
	lan                                  bool

	w      io.Writer
	faults int
}

func newDoctor() *cobra.Command {
	var d doctor
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and its connections to other peers",
		Long: `Report the version of this program, what the machine offers and the ID of its key. With --plan or
--roster, also report for each other member whether it is reached directly or through a relay, over which transport,
how fast, and whether the clocks agree, with advice for each problem. Members answer while they join, train, or run
heddle doctor at the same time: start it on both sides with a longer --wait.`,
		Example: "  heddle doctor\n  heddle doctor --plan plan.yaml --shard parts/part-0 --state state\n" +
			"  heddle doctor --roster federation.yaml --wait 2m",
		RunE: func(c *cobra.Command, _ []string) error {
			d.w = c.OutOrStdout()
			return d.diagnose(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&d.plan, "plan", "", "plan whose peers are reached")
	f.StringVar(&d.roster, "roster", "", "roster whose members are reached")
	f.StringVar(&d.identity, "identity", cli.DefaultIdentity(), "key file of this peer")
	f.StringVar(&d.shard, "shard", "", "this peer's part of the graph")
	cli.Reads(f, "plan", "roster", "shard")
	f.StringVar(&d.state, "state", ".", "directory for checkpoints")
	f.StringSliceVar(&d.listen, "listen", nil, "multiaddresses to listen on (default: this peer's)")
	f.DurationVar(&d.wait, "wait", 5*time.Second, "time limit for reaching a member")
	f.BoolVar(&d.lan, "lan", false, "search the local network by mDNS")
	return c
}

func (d *doctor) diagnose(ctx context.Context) error {
	d.fine("heddle", "%s, %s, %s/%s", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	d.fine("kernels", "%s (of %s; HEDDLE_KERNELS chooses)", kernels.Name(), strings.Join(kernels.Usable(), ", "))
	d.fine("cores", "%d, %d of them used (GOMAXPROCS)", runtime.NumCPU(), runtime.GOMAXPROCS(0))
	d.memory()
	d.disk()
	d.buffers()
	if d.plan == "" && d.roster == "" {
		d.files(0)
		d.key()
	} else if err := d.network(ctx); err != nil {
		return err
	}
	if d.faults > 0 {
		return fmt.Errorf("%d faults were found", d.faults)
	}
	return nil
}

func (d *doctor) fine(about, format string, args ...any) {
	fmt.Fprintf(d.w, "%-8s %s\n", about, fmt.Sprintf(format, args...))
}

// advise reports what makes a run slower or less safe, and fault what makes it fail.
func (d *doctor) advise(about, remedy, format string, args ...any) {
	fmt.Fprintf(d.w, "%-8s NOTE  %s\n%-8s       → %s\n", about, fmt.Sprintf(format, args...), "", remedy)
}

func (d *doctor) fault(about, remedy, format string, args ...any) {
	d.faults++
	fmt.Fprintf(d.w, "%-8s FAULT %s\n%-8s       → %s\n", about, fmt.Sprintf(format, args...), "", remedy)
}

// key reports this peer's ID, if there is a key that can be read.
func (d *doctor) key() {
	id, err := cli.LoadKey(d.identity)
	if err != nil {
		d.advise("identity", "the command init makes a key and prints its ID", "%v", err)
		return
	}
	d.fine("identity", "%s", id.PeerID())
}

// reach is whom to reach, and how.
type reach struct {
	members identity.Roster
	relays  []string
	carrier string
}

// meet reads plan and roster.
func (d *doctor) meet(now time.Time) (m reach, err error) {
	m.carrier = "auto"
	var known admission.Roster
	if d.roster != "" {
		s, err := readRoster(d.roster)
		if err != nil {
			return m, err
		}
		known = s.Body
		m.relays = known.RelayAddresses(now)
		for _, one := range carried(s.Body, now).Members {
			if listed, _ := s.Body.Find(one.ID); listed.Role != "relay" {
				m.members.Members = append(m.members.Members, one)
			}
		}
	}
	if d.plan == "" {
		return m, nil
	}
	p, _, err := cli.ReadPlan(d.plan)
	if err != nil {
		return m, err
	}
	if d.roster != "" {
		if err := known.AllowsRelays(now, p.Relays, p.Addresses()); err != nil {
			return m, cli.Invalidf("%s: %w", d.plan, err)
		}
	}
	listed := m.members.Members
	m.carrier, m.members, m.relays = p.Carrier, disclosure.Roster(*p), append(m.relays, p.Relays...)
	for i, one := range m.members.Members {
		for _, other := range listed {
			if one.ID == other.ID && len(one.Addrs) == 0 {
				m.members.Members[i].Addrs = other.Addrs
			}
		}
	}
	return m, nil
}

// network tries to reach all members.
func (d *doctor) network(ctx context.Context) error {
	m, err := d.meet(time.Now())
	if err != nil {
		return err
	}
	id, err := cli.LoadOrMakeKey(d.identity)
	if err != nil {
		return err
	}
	d.fine("identity", "%s", id.PeerID())
	self := -1
	for i, one := range m.members.Members {
		if one.ID == id.PeerID() {
			self = i
		}
	}
	if self < 0 {
		d.fault("identity", "ask for "+id.PeerID()+" to be added, or give --identity",
			"this peer is not among the %d members", len(m.members.Members))
		return nil
	}
	d.files(len(m.members.Members))
	d.names(ctx, net.DefaultResolver, m.members.Members, m.relays)
	if d.listen == nil {
		d.listen = m.members.Members[self].Addrs
	} else {
		d.announced(m.members.Members[self].Addrs)
	}
	cfg := node.Config{Identity: id, Listen: d.listen, Transport: m.carrier, Relays: m.relays, LAN: d.lan,
		MaxPeers: max(64, len(m.members.Members))}
	if err := cfg.Validate(); err != nil {
		return cli.Invalid(err)
	}
	n, err := node.Listen(cfg)
	if err != nil {
		remedy := "stop the program that uses the port"
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			remedy = "correct this site's address in the plan, or, if a router forwards it, repeat with --listen"
		}
		d.fault("listen", remedy, "%v", err)
		return nil
	}
	d.fine("listen", "%s", strings.Join(n.FullAddrs(), " "))
	ctx, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	asking := make(chan []*asked, 1)
	going, stop := context.WithCancel(ctx)
	go func() { asking <- askAll(going, m.members.Members, id.PeerID()) }()
	found, err := n.Survey(ctx, m.members)
	stop()
	ports := <-asking
	if err == nil {
		d.packets(ports)
		d.sightings(found)
	}
	return errors.Join(err, n.Close())
}
