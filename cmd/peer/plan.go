package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/p2p"
)

// agreement is what the peers of a run on several machines share: the settings file of peer join.
type agreement struct {
	Settings `yaml:",inline"`
	Carrier  string        `yaml:"carrier"`           // quic, tcp, noise, ws or auto
	Silence  time.Duration `yaml:"silence,omitempty"` // after which a peer of which nothing comes is lost, 1s to 10m; 0: 10 s
	Relays   []string      `yaml:"relays,omitempty"`  // multiaddresses that end in /p2p/ID, beside those of the roster
	Peers    []member      `yaml:"peers"`             // peer r holds part-r

	text []byte // of the file that it was read from
}

// member is one peer of a plan.
type member struct {
	Name      string   `yaml:"name"`
	ID        string   `yaml:"id"`        // as peer id prints it
	Addresses []string `yaml:"addresses"` // multiaddresses at which it listens; none: it only dials out
}

// A plan on disk is agreed on: no flag changes it. While it is made, flags do.
var (
	agreedPlan = file[agreement]{settings: func(p *agreement) *Settings { return &p.Settings }, bind: func(*agreement, *pflag.FlagSet) {}}
	newPlanOf  = file[agreement]{settings: func(p *agreement) *Settings { return &p.Settings }, bind: (*agreement).bind}
)

func startPlan() *agreement { return &agreement{Carrier: "quic"} }

// readPlan reads a plan that was agreed on. An error names the file and, of the plan, every fault.
func readPlan(path string) (*agreement, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput{fmt.Errorf("plan: %w", err)}
	}
	p, err := agreedPlan.parse(path, text, pflag.NewFlagSet("", pflag.ContinueOnError), startPlan)
	if err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", path, err)}
	}
	p.text = text
	return p, nil
}

// validate reports what is wrong with how and with whom p meets; a plan without peers is of those that --secret makes.
func (p *agreement) validate() error {
	errs := []error{knownCarrier(p.Carrier)}
	if len(p.Peers) > 0 {
		errs = append(errs, p.roster().Validate())
	}
	for r, m := range p.Peers {
		if first := slices.IndexFunc(p.Peers, func(one member) bool { return one.Name == m.Name }); first < r {
			errs = append(errs, fmt.Errorf("peers: number %d and number %d are both called %q, want a name for each", first, r, m.Name))
		}
	}
	return errors.Join(errs...)
}

// knownCarrier refuses a carrier that there is not.
func knownCarrier(name string) error {
	if !slices.Contains(p2p.Transports, name) {
		return fmt.Errorf("carrier: %q, want one of %s", name, strings.Join(p2p.Transports, ", "))
	}
	return nil
}

func (p *agreement) bind(f *pflag.FlagSet) {
	p.Settings.bind(f)
	f.StringVar(&p.Carrier, "carrier", p.Carrier, "quic, tcp, noise (TCP without TLS), ws (WebSocket) or auto (the fastest for each pair)")
	f.DurationVar(&p.Silence, "silence", p.Silence, "after which a peer of which nothing comes is lost (default 10s)")
	f.Lookup("silence").DefValue = "0" // the value that help does not show
	f.StringSliceVar(&p.Relays, "relay", p.Relays, "multiaddress of a relay that ends in /p2p/ID; may be repeated")
}

func (p *agreement) roster() (r p2p.Roster) {
	for _, m := range p.Peers {
		r.Members = append(r.Members, p2p.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

func newPlan() *cobra.Command {
	var config, out string
	var port int
	c := &cobra.Command{
		Use:   "plan NAME=ID[@HOST] ...",
		Short: "Write the plan of a run on several machines",
		Long: `Write the plan of a run on several machines: the settings, and who takes part. The first peer named
holds part-0, the next part-1 and so on. Give the same file to all of them. HOST is an IP address or a
name; a peer without one only dials out.`,
		Example: `  peer plan --preset frugal --out plan.yaml north=12D3KooW...@10.0.0.1 south=12D3KooW...@10.0.0.2`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := newPlanOf.load(config, c.Flags(), startPlan)
			if err != nil {
				return err
			}
			if err := p.name(args, port); err != nil {
				return badInput{err}
			}
			if err := p.validate(); err != nil {
				return badInput{err}
			}
			text, err := yaml.Marshal(p)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			if err := writable(out); err != nil {
				return err
			}
			return writeWhole(out, func(w io.Writer) error { _, err := w.Write(text); return err })
		},
	}
	defaults := startPlan()
	defaults.Settings, _ = base("retexo", "", "gcn")
	defaults.bind(c.Flags())
	c.Flags().StringVar(&config, "config", "", "settings file (YAML); flags override it")
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: standard output)")
	c.Flags().IntVar(&port, "port", 4001, "on which a host's first peer listens; its next one takes the next")
	return c
}

// name fills in the peers from arguments NAME=ID[@HOST].
func (p *agreement) name(args []string, port int) error {
	ports := make(map[string]int)
	var errs []error
	for _, a := range args {
		name, id, ok := strings.Cut(a, "=")
		if !ok || name == "" || id == "" {
			errs = append(errs, fmt.Errorf("peer %q, want NAME=ID or NAME=ID@HOST", a))
			continue
		}
		id, host, reachable := strings.Cut(id, "@")
		m := member{Name: name, ID: id, Addresses: []string{}}
		if reachable {
			kind := "dns"
			if ip, err := netip.ParseAddr(host); err == nil {
				kind = "ip4"
				if ip.Is6() {
					kind = "ip6"
				}
			}
			m.Addresses = addresses(p.Carrier, "/"+kind+"/"+host, port+ports[host])
			ports[host]++
		}
		p.Peers = append(p.Peers, m)
	}
	return errors.Join(errs...)
}

// addresses are those at which a peer listens for a carrier, at a host written as "/ip4/10.0.0.1".
func addresses(carrier, host string, port int) (all []string) {
	tails := map[string][]string{"tcp": {"/tcp/%d"}, "noise": {"/tcp/%d"}, "ws": {"/tcp/%d/wss"}, "auto": {"/udp/%d/quic-v1", "/tcp/%d"}}[carrier]
	if tails == nil {
		tails = []string{"/udp/%d/quic-v1"}
	}
	for _, tail := range tails {
		all = append(all, host+fmt.Sprintf(tail, port))
	}
	return all
}

// rank finds this peer in the plan.
func (p *agreement) rank(id, path string) (int, error) {
	for r, m := range p.Peers {
		if m.ID == id {
			return r, nil
		}
	}
	return 0, badInput{fmt.Errorf("%s: peers: this peer's ID %s is not among the %d listed: ask for it to be added, or give --identity", path, id, len(p.Peers))}
}
