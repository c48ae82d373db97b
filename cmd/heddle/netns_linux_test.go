package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// A network has a namespace for each site, and one with the switch between them.
type network struct {
	prefix string
	sites  []string
}

// newNetwork gives the sites the addresses 10.88.0.1, 10.88.0.2, … It goes when the test ends.
func newNetwork(t *testing.T, sites []string) *network {
	t.Helper()
	n := &network{fmt.Sprintf("hdle%d.", os.Getpid()), sites}
	ip := func(line string) error {
		out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
		return nil
	}
	if err := ip("netns add " + n.prefix + "switch"); err != nil {
		t.Skipf("SKIPPED, not shown here: three sites in network namespaces, which need root and iproute2: %v", err)
	}
	lines := []string{"-n SWITCH link add bridge0 type bridge", "-n SWITCH link set bridge0 up"}
	for k, site := range sites {
		lines = append(lines, "netns add "+n.prefix+site,
			fmt.Sprintf("-n SWITCH link add to%d type veth peer name eth netns %s%s", k, n.prefix, site),
			fmt.Sprintf("-n SWITCH link set to%d master bridge0 up", k))
		address := "addr add " + n.address(site) + "/24 dev eth"
		for _, line := range []string{"link set lo up", address, "link set eth up"} {
			lines = append(lines, fmt.Sprintf("-n %s%s %s", n.prefix, site, line))
		}
	}
	t.Cleanup(func() {
		for _, name := range append([]string{"switch"}, sites...) {
			_ = ip("netns del " + n.prefix + name) // one that was not made
		}
	})
	for _, line := range lines {
		if err := ip(strings.ReplaceAll(line, "SWITCH", n.prefix+"switch")); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *network) address(site string) string {
	for k, one := range n.sites {
		if one == site {
			return fmt.Sprintf("10.88.0.%d", k+1)
		}
	}
	return ""
}

// inside returns c as it runs in the namespace of a site: ip becomes the program, with the same process ID.
func (n *network) inside(site string, c *exec.Cmd) *exec.Cmd {
	out := exec.Command("ip", append([]string{"netns", "exec", n.prefix + site}, c.Args...)...)
	out.Env = c.Env
	return out
}

// TestThreeNetworks: three sites, each with its network, home and raw tables, train month after month. The name of the
// federation is the only flag.
func TestThreeNetworks(t *testing.T) {
	testenv.OnlyLong(t)
	o := rawSites(t)
	net := newNetwork(t, o.names)
	o.inside = net.inside
	o.write("west", "west-patients.csv", regexp.MustCompile(",[^,\n]*\n").ReplaceAllString( // it has no labels
		string(contents(t, o.at("west", "west-patients.csv"))), "\n"))
	do := func(site, input string, args ...string) string {
		t.Helper()
		e := o.run(site, input, args...)
		if e.exit != 0 {
			t.Fatalf("%s %.40q: exit %d\n%s", site, args, e.exit, e.errors)
		}
		return e.out
	}
	must(t, "plan", "-o", o.at("north", "federation.yaml"), "--method", "full-batch", "--model", "sage", "--hidden",
		"16", "--rounds", "150") // how to train, which another person chose
	do("north", "", "init", "north", net.address("north"))
	lines := mailed.FindAllString(do("north", "", "invite", "south", "west",
		"--federation", "tumour-registry"), -1)
	answers := do("south", "", "init", lines[0], net.address("south")) +
		do("west", "", "init", lines[1]) // it only dials out
	do("north", answers, "invite")
	o.replace("west", "site.yaml", "ward: label", "ward: categorical") // a wrong guess
	o.replace("west", "site.yaml", "categories: []", "categories: [ward]")
	o.allowFullBatch()
	// The federation's file goes from one site to the next, and each signs it.
	sign := func() {
		t.Helper()
		for _, name := range []string{"north", "south"} {
			o.share()
			do(name, "", "roster", "sign", "federation.yaml")
			o.write(".", "federation.yaml", string(contents(t, o.at(name, "federation.yaml"))))
		}
		o.share()
	}
	o.write(".", "federation.yaml", string(contents(t, o.at("north", "federation.yaml"))))
	sign()
	warm := func(run int) bool {
		return regexp.MustCompile("init: [0-9a-f]{64}").Match(
			contents(t, o.at("north", fmt.Sprintf("results/run-%d/settings.yaml", run))))
	}
	step := func(name string, check func(t *testing.T)) {
		before := o.t
		if !t.Run(name, func(t *testing.T) { o.t = t; check(t) }) {
			t.FailNow() // what follows starts from its end
		}
		o.t = before
	}

	step("killed", func(t *testing.T) {
		written := func() bool {
			states, _ := filepath.Glob(o.at("west", "state/run-1/checkpoints/state-*.ckpt"))
			return len(states) > 0
		}
		ends := atOnce(o.names, func(name string) (int, string, string) {
			if name == "west" {
				for _, one := range []struct {
					at     string
					ready  func() bool
					signal syscall.Signal
				}{
					{"Approve this plan", nil, syscall.SIGKILL},
					{"phase=columns", nil, syscall.SIGKILL},
					{`phase="features and edges"`, nil, syscall.SIGKILL},
					{"phase=neighbours", nil, syscall.SIGTERM},
					{"of 3 sites", nil, syscall.SIGKILL},
					{"msg=halo", nil, syscall.SIGTERM},
					{"msg=halo", written, syscall.SIGKILL},
					{"stage done", nil, syscall.SIGKILL},
				} {
					e := o.struck(name, one.at, one.ready, one.signal)
					t.Logf("%s, %v: exit %d", one.at, one.signal, e.exit)
					if e.exit == 0 {
						return -1, e.out, "not killed at " + one.at
					}
					if again := "to go on, repeat the command"; one.signal == syscall.SIGTERM &&
						!strings.Contains(e.out, again) {
						return -1, e.out, "must print: " + again
					}
				}
			}
			e := o.run(name, "y\n", "take-part")
			return e.exit, e.out, e.errors
		})
		for name, e := range ends {
			if e.exit != 0 {
				t.Fatalf("%s: exit %d\n%s%s", name, e.exit, e.out, e.errors)
			}
		}
		o.complete(1)
	})

	step("a fault in one table", func(t *testing.T) {
		o.replace("west", "west-patients.csv", "p010,58,", "p010,old,")
		for name, e := range o.takePart("y\n", map[string]int{"north": 2, "south": 2, "west": 2}) {
			want := "west) cannot take part"
			if name == "west" {
				want = "west-patients.csv: line 3"
			}
			if !strings.Contains(e.errors, want) {
				t.Errorf("%s must print %q\n%s", name, want, e.errors)
			}
		}
	})

	step("next month", func(t *testing.T) {
		o.replace("west", "west-patients.csv", "p010,old,", "p010,58,")
		o.replace("north", "north-patients.csv", "p000,", "p998,50,1.2,surgery,\np000,")
		o.replace("north", "north-contacts.csv", "p000,", "p998,p000,\np000,")
		o.takePart("y\n", nil)
		o.complete(2)
		if !warm(2) {
			t.Error("training must start from the model of run 1")
		}
		predictions := contents(t, o.at("north", "results/run-2/predictions.csv"))
		if !bytes.Contains(predictions, []byte("p998,")) {
			t.Error("the new patient must have a prediction")
		}
	})

	step("another column", func(t *testing.T) {
		for _, name := range o.names {
			file := name + "-patients.csv"
			lines := strings.Split(strings.TrimSpace(string(contents(t, o.at(name, file)))), "\n")
			for k := range lines {
				lines[k] += "," + map[bool]string{true: "smoker", false: fmt.Sprint(k % 2)}[k == 0]
			}
			o.write(name, file, strings.Join(lines, "\n")+"\n")
		}
		for name, e := range o.takePart("y\n", map[string]int{"north": 2, "south": 2, "west": 2}) {
			if want := name + `-patients.csv: line 1: column "smoker" has no role`; !strings.Contains(e.errors, want) {
				t.Errorf("%s must print %q\n%s", name, want, e.errors)
			}
			o.replace(name, "site.yaml", "    age: numeric", "    smoker: numeric\n    age: numeric")
		}
		page := o.takePart("y\n", nil)["south"].out
		if !strings.Contains(page, "smoker") {
			t.Errorf("the page must have the new column\n%s", page)
		}
		o.complete(3)
		if warm(3) {
			t.Error("a run with a new column must not start from the model of the old columns")
		}
	})

	step("another plan", func(t *testing.T) {
		file := filepath.Join(o.dir, "federation.yaml")
		text := string(contents(t, file))
		if err := os.WriteFile(file, []byte(strings.Replace(text, "seed: 1", "seed: 2", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		o.share()
		o.write("west", "federation.yaml", text) // it still has the old one
		for name, e := range o.takePart("y\n", map[string]int{"north": 2, "south": 2, "west": 2}) {
			if !strings.Contains(e.errors, "seed is") {
				t.Errorf("%s must name the setting\n%s", name, e.errors)
			}
		}
		o.share()
		o.takePart("y\n", nil)
		if r := figures(t, o.at("west", "results/run-4/result.json")); !(*r.Test > 0.8) {
			t.Errorf("accuracy %v", *r.Test)
		}
	})

	step("a revoked member", func(t *testing.T) {
		must(t, "roster", "revoke", filepath.Join(o.dir, "federation.yaml"), "west")
		sign()
		if e := o.run("west", "y\n", "take-part"); e.exit != 2 ||
			!strings.Contains(e.errors, "is not among the 2 listed") {
			t.Errorf("west is revoked: exit %d\n%s", e.exit, e.errors)
		}
		o.names = []string{"north", "south"}
		for _, name := range o.names { // edges to west are to nobody now
			file := name + "-contacts.csv"
			text := string(contents(t, o.at(name, file)))
			o.write(name, file, regexp.MustCompile("(?m)^.*,west\n").ReplaceAllString(text, ""))
		}
		for name, e := range o.takePart("y\n", map[string]int{"north": 2, "south": 2}) {
			if want := "at least 3 members must take part (got 2)"; !strings.Contains(e.errors, want) {
				t.Errorf("%s must print %q\n%s", name, want, e.errors)
			}
			o.replace(name, "site.yaml", "min_members: 3", "min_members: 2")
		}
		o.takePart("y\n", nil)
		if got := figures(t, o.at("north", "results/run-5/result.json")); got.Peers != 2 {
			t.Errorf("%d sites trained, must be 2", got.Peers)
		}
		must(t, "audit", "verify", o.at("north", "state/audit.jsonl"))
	})
}

// TestDoctorNAT: heddle doctor names the kind of router before a site, and what to do if no hole can be punched.
func TestDoctorNAT(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 3 s")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("SKIPPED, not shown here: kinds of NAT, without nft")
	}
	o := rawSites(t)
	net := newNetwork(t, o.names)
	o.inside = net.inside
	args := []string{"plan", "-o", filepath.Join(o.dir, "federation.yaml")}
	for k, line := range o.init() {
		if k > 0 { // north only dials out
			line += "@" + net.address(o.names[k])
		}
		args = append(args, line)
	}
	must(t, args...)
	o.share()
	in := func(site, line string) string {
		t.Helper()
		fields := strings.Fields(line)
		out, err := net.inside(site, exec.Command(fields[0], fields[1:]...)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s: %v %s", site, line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const router = "10.88.0.99" // what north's datagrams have as their source
	for _, site := range []string{"south", "west"} {
		in(site, "ip neigh add "+router+" dev eth lladdr "+in("north", "cat /sys/class/net/eth/address"))
	}
	in("north", "nft add table ip nat")
	in("north", "nft add chain ip nat out { type nat hook postrouting priority 100 ; }")
	for to, want := range map[string]string{
		router:                               "a router that keeps one port: all see " + router,
		router + ":20000-60000 fully-random": "NOTE  a router that takes another port to each destination",
	} {
		in("north", "nft flush chain ip nat out")
		in("north", "nft add rule ip nat out oifname eth ip protocol udp snat to "+to)
		ends := atOnce(o.names, func(name string) (int, string, string) {
			e := o.run(name, "", "doctor", "--plan", "federation.yaml", "--wait", "10s")
			return e.exit, e.out, e.errors
		})
		if text := ends["north"].out; !strings.Contains(text, want) {
			t.Errorf("snat to %s: the doctor must print %q\n%s%s", to, want, text, ends["north"].errors)
		}
	}
}
