package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/rng"
)

// simulated runs heddle simulate --json.
func simulated(t *testing.T, args ...string) Result {
	t.Helper()
	var out bytes.Buffer
	c := newSimulate()
	c.SetArgs(append(args, "--json"))
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// If all phones are there, all bytes follow the formula, every phone is in every sum, and the accuracy equals that of
// pooled data. A second run differs only in processor time.
func TestEverybody(t *testing.T) {
	args := []string{"--phones", "60", "--rounds", "2", "--all-rounds", "--least-leaves", "10"}
	one := simulated(t, args...)
	o := one.Runs[0]
	if o.Bytes.Shares != o.Formula.Shares || o.Bytes.Sums != o.Formula.Sums || o.Bytes.Lost != 0 ||
		o.Bytes.Shares == 0 {
		t.Errorf("bytes must be those of the formula, %+v (got %+v)", o.Formula, o.Bytes)
	}
	config, err := (&command{settings: settings{seed: 1}, rounds: 2, hops: 2, target: "labels"}).config(generated(3, 60,
		0.3, 1))
	if err != nil {
		t.Fatal(err)
	}
	shares, sums := int64(0), int64(0)
	a := leaf.Agreement{Sites: 3}
	numbers := config.Exchanges(2)
	for _, n := range numbers {
		shares, sums = shares+60*a.SentBytes(n), sums+60*a.FetchedBytes(n)
	}
	if o.Bytes.Shares != shares || o.Bytes.Sums != sums || o.Exchanges != len(numbers) || o.Rounds != 2 {
		t.Errorf("%d exchanges of %d and %d bytes in 2 rounds must be so (got %d, %+v, %d rounds)", len(numbers),
			shares, sums, o.Exchanges, o.Bytes, o.Rounds)
	}
	if o.Counted != 1 || o.WakeUps != 1 || math.Abs(o.Accuracy-one.Pooled) > 0.01 {
		t.Errorf("all phones must be in all sums and the accuracy within 0.01 of %.3f (got %+v)", one.Pooled, o)
	}
	again := simulated(t, args...).Runs[0]
	again.Processor = o.Processor
	if *again != *o {
		t.Errorf("the same seed gave other results: %+v and %+v", *o, *again)
	}
}

// If the sites know the edges between members, accuracy equals that of pooled data with all edges, for phones with a
// graph and for phones of one node. All bytes follow the formula, also for phones that come and go.
func TestEdges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := dataset.Write(dir, generated(1, 8, 0.3, 1).pooled); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"graphs": {"--edges"}, "one node": {"--single"},
		"one node, by day": {"--single", "--trace", "day", "--deadline", "3m"}} {
		r := simulated(t, append(args, "--data", dir, "--sites", "2", "--rounds", "2", "--all-rounds", "--labelled",
			"0.3", "--least-leaves", "2")...)
		o := r.Runs[0]
		if o.Bytes.Shares != o.Formula.Shares || o.Bytes.Sums != o.Formula.Sums || o.Bytes.Shares == 0 {
			t.Errorf("%s: bytes are %+v, must be those of the formula, %+v", name, o.Bytes, o.Formula)
		}
		if all := len(args) < 3; all && math.Abs(o.Accuracy-r.Joined) > 0.005 {
			t.Errorf("%s: accuracy is %.4f, must be that of pooled data with all edges, %.4f", name, o.Accuracy,
				r.Joined)
		} else if all != (o.Counted == 1) {
			t.Errorf("%s: %.2f of the phones are in a sum, all must be if and only if they are there", name, o.Counted)
		}
		if single := args[0] == "--single"; single != (r.Phones > 200) || o.Exchanges != 12+4 {
			t.Errorf("%s: %d phones of %d nodes in %d exchanges, must be 16: those of two rounds, and four hops", name,
				r.Phones, r.Nodes, o.Exchanges)
		}
	}
}

// Phones that come and go cost their part of some sums and little accuracy. With fewer phones fewer bytes are sent.
func TestComeAndGo(t *testing.T) {
	r := simulated(t, "--phones", "150", "--trace", "day", "--deadline", "3m", "--participation", "1,0.5",
		"--least-leaves", "10", "--rounds", "2")
	all, half := r.Runs[0], r.Runs[1]
	if all.Counted >= 0.9 || all.Counted < 0.2 || half.Counted >= all.Counted {
		t.Errorf("phones in a sum: %.2f and, of half of them, %.2f", all.Counted, half.Counted)
	}
	if all.WakeUps <= 1 || all.Seconds < float64(all.Exchanges-1)*180 {
		t.Errorf("phones that go must come back: %+v", all)
	}
	for _, o := range r.Runs {
		if o.Bytes.Shares != o.Formula.Shares || o.Bytes.Sums != o.Formula.Sums {
			t.Errorf("bytes must be those of the formula, %+v (got %+v)", o.Formula, o.Bytes)
		}
		if o.Accuracy < r.Pooled-0.05 {
			t.Errorf("accuracy must be at least %.3f (got %.3f)", r.Pooled-0.05, o.Accuracy)
		}
	}
	if half.Bytes.Shares >= all.Bytes.Shares {
		t.Errorf("half of the phones sent %d bytes, all of them %d", half.Bytes.Shares, all.Bytes.Shares)
	}
}

// real runs the same federation over netsim, in which members wait for their messages, and returns how long it took.
func real(t *testing.T, c classmeans.Config, m members, link netsim.Model) time.Duration {
	sites, phones := len(m.sites), len(m.phones)
	net := netsim.New(sites+phones, netsim.Config{Links: netsim.Table{All: link}})
	a := leaf.Agreement{Sites: sites, Least: 2, Most: phones}
	rules := leaf.Rules{Cohorts: []gate.Cohort{{Name: "phones", Most: phones}},
		Attest: func(context.Context, [16]byte, []byte) (gate.Admission, error) {
			return gate.Admission{Cohort: "phones"}, nil
		}}
	collectors := make([]*leaf.Collector, sites)
	var run, served, ready sync.WaitGroup
	ready.Add(sites)
	start := time.Now()
	for r, s := range append(m.sites[:sites:sites], m.phones...) {
		trainer, err := classmeans.New(c, s)
		if err != nil {
			t.Fatal(err)
		}
		trainer.Leaves = true
		run.Go(func() {
			var reducer comm.Reducer
			g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			if r < sites {
				g = comm.NewGroup(net.Transport(r), r, sites)
				in, err := leaf.NewIntake(a, r, rules)
				masked, failed := secagg.New(t.Context(), secagg.KeyTerms{Least: 2}, g)
				if err = errors.Join(err, failed); err == nil {
					collectors[r], err = leaf.NewCollector(a, g, masked, in, in.Quorum(phones, time.Hour))
				}
				if err != nil {
					t.Error(err)
				}
				reducer = collectors[r]
				ready.Done()
				for p := sites; p < sites+phones; p++ {
					served.Go(func() {
						collectors[r].Serve(t.Context(), net.Transport(r), p) //nolint:errcheck // ends as leaves leave
					})
				}
			} else {
				ready.Wait()
				who := newPhone(r-sites, s, 1, "always").token
				up, _, err := leaf.Dial(t.Context(), net.Transport(r), a, who, nil, nil)
				if err != nil {
					t.Error(err)
				}
				reducer = &leaf.Contributor{Agreement: a, Token: who, Uplink: up}
			}
			if err := trainer.Run(t.Context(), g, reducer); err != nil {
				t.Error(err)
			}
		})
	}
	run.Wait()
	took := time.Since(start)
	for _, s := range collectors {
		s.Stop(io.EOF)
	}
	for p := range phones {
		net.Transport(sites + p).Close()
	}
	served.Wait()
	return took
}

// Simulated time is, to a tenth, the time of the same federation over a network on which members wait.
func TestTimeIsThatOfWaiting(t *testing.T) {
	for name, link := range map[string]netsim.Model{
		"latency": {Latency: 40 * time.Millisecond, Rate: 1e8},
		"rate":    {Latency: 2 * time.Millisecond, Rate: 1e5},
		"both":    {Latency: 15 * time.Millisecond, Rate: 5e5},
	} {
		t.Run(name, func(t *testing.T) {
			m := generated(3, 24, 0.3, 1)
			c, err := (&command{settings: settings{seed: 1}, rounds: 2, hops: 2, target: "labels"}).config(m)
			if err != nil {
				t.Fatal(err)
			}
			o, err := simulate(t.Context(), c, m, settings{trace: "always", deadline: time.Hour, quorum: 1, least: 2,
				participation: 1, seed: 1, links: &link})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				if took := real(t, c, m, link).Seconds(); math.Abs(o.Seconds-took) > took/10 {
					t.Errorf("simulated time must be %.3f s to a tenth (got %.3f)", took, o.Seconds)
				}
			})
		})
	}
}

// A phone is there as often as its kind specifies, its windows ascend, and one that charges at night is never there by
// day.
func TestPresence(t *testing.T) {
	for k := range devices {
		d := &devices[k]
		there, asked := 0, 0
		for number := range 200 {
			p := newPresence(d, rng.New(7).Fold(uint64(number)))
			for now := time.Duration(0); now < 3*day; now += 7 * time.Minute {
				from, to := p.at(now)
				if from < now || to <= from {
					t.Fatalf("%s: at %v the window is %v to %v", d.name, now, from, to)
				}
				hour := math.Mod((now + begins).Hours(), 24)
				asked++
				if from == now {
					there++
					if d.night && hour > 9 && hour < 22 {
						t.Fatalf("%s is there at %.1f h", d.name, hour)
					}
				}
			}
		}
		want := 1.0
		if d.on > 0 {
			want = float64(d.on) / float64(d.on+d.off)
		}
		if d.night {
			want *= 7.5 / 24
		}
		if got := float64(there) / float64(asked); math.Abs(got-want) > 0.02 {
			t.Errorf("%s must be there %.3f of the time (got %.3f)", d.name, want, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--sites must be 2 to 64 (got 1)":                        {"--sites", "1"},
		"--phones must be 2 to 1048576 (got 1)":                  {"--phones", "1"},
		"--trace must be always or day (got \"now\")":            {"--trace", "now"},
		"--deadline must be above 0 and at most 24h (got 0s)":    {"--deadline", "0"},
		"--quorum must be above 0 and at most 1 (got 2)":         {"--quorum", "2"},
		"--participation must be above 0 and at most 1 (got -1)": {"--participation", "1,-1"},
		"--labelled must be 0 to 0.5 (got 1)":                    {"--labelled", "1"},
		"least_leaves must be between 2 and":                     {"--phones", "10", "--least-leaves", "1"},
		"phones admitted must be between 20 and":                 {"--phones", "10"},
		"--single without --phones":                              {"--phones", "30", "--data", "nowhere", "--single"},
		"stat nowhere":                                           {"--data", "nowhere"},
	} {
		c := newSimulate()
		c.SetArgs(args)
		c.SetOut(io.Discard)
		silence(c)
		err := c.ExecuteContext(t.Context())
		var input *heddle.InputError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &input) {
			t.Errorf("%v: %v, must be of the input and say %q", args, err, want)
		}
	}
}

func silence(c *cobra.Command) { c.SilenceErrors, c.SilenceUsage = true, true }

// The table has a column for each run.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	c := newSimulate()
	c.SetArgs([]string{"--phones", "30", "--participation", "1,0.8", "--rounds", "1"})
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 sites and 30 phones, generated:", "phones that take part, %  100.0   80.0",
		"between sites, MB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table must have %q:\n%s", want, out.String())
		}
	}
}

// An interrupted simulation ends.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	m := generated(2, 5, 0.3, 1)
	c, err := (&command{settings: settings{seed: 1}, hops: 1, target: "labels"}).config(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simulate(ctx, c, m,
		settings{trace: "always", deadline: time.Hour, quorum: 1, least: 2, participation: 1}); err == nil {
		t.Error("no error")
	}
}
