package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// block is a piece of docs/how-to/federation.md to run: "# at north", or "# at north, refused:
// rule".
type block struct{ site, refused, script string }

func blocksOf(t *testing.T, path string) (all []block) {
	t.Helper()
	for _, part := range strings.Split(string(contents(t, path)), "```sh\n")[1:] {
		script, _, ok := strings.Cut(part, "```")
		head, _, _ := strings.Cut(script, "\n")
		site, refused, _ := strings.Cut(strings.TrimPrefix(head, "# at "), ", refused: ")
		if !ok || !strings.HasPrefix(head, "# at ") {
			t.Fatalf("%s: a block begins with %q, must be # at SITE", path, head)
		}
		all = append(all, block{site, refused, script})
	}
	return all
}

// TestAdmissionGuide runs the commands of docs/how-to/federation.md: each site has its own
// directory and settings.
func TestAdmissionGuide(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the guide's commands are those of a Unix shell")
	}
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to run the guide's commands")
	}
	dir := t.TempDir()
	share := filepath.Join(dir, "share")
	must(t, "partition", "--data", sites(t), "--policy", "by-column", "--parts", "3", "--out",
		filepath.Join(share, "parts"))
	port := testenv.FreePorts(t, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runBlock := func(b block) error {
		at := filepath.Join(dir, b.site)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		// The guide's port is the default one, which may be taken here.
		script := strings.ReplaceAll(b.script, "--carrier tcp", fmt.Sprintf("--carrier tcp --port %d", port))
		c := exec.CommandContext(t.Context(), bash, "-euo", "pipefail", "-c", fmt.Sprintf("heddle() { %[1]s=1 "+
			"'%[2]s' \"$@\"; }\npeer() { %[1]s=1 '%[2]s' \"$@\"; }\n%[3]s", asPeer, self, script))
		c.Dir = at
		c.Env = append(os.Environ(), "SHARE="+share, "HOME="+at, "XDG_CONFIG_HOME="+filepath.Join(at, "config"))
		out, err := c.CombinedOutput()
		if b.refused != "" && err != nil && bytes.Contains(out, []byte(b.refused)) {
			return nil
		}
		if (err == nil) != (b.refused == "") {
			return fmt.Errorf("%s: %v, refused should be %q\n%s", b.script, err, b.refused, out)
		}
		return nil
	}
	var joining []block
	join := func() {
		var all sync.WaitGroup
		for _, b := range joining {
			all.Go(func() {
				if err := runBlock(b); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		joining = nil
	}
	seen := map[string]bool{}
	for _, b := range blocksOf(t, "../../docs/how-to/federation.md") {
		seen[b.site] = true
		if (strings.Contains(b.script, "peer join") || strings.Contains(b.script, "heddle predict")) &&
			b.refused == "" {
			joining = append(joining, b) // one waits for the other
			continue
		}
		join()
		if t.Failed() {
			t.FailNow()
		}
		if err := runBlock(b); err != nil {
			t.Fatal(err)
		}
	}
	for part, site := range []string{"north", "south", "west"} { // each trained once, then predicted or was refused
		show := fmt.Sprintf("heddle check --plan $SHARE/../south/first.yaml --shard $SHARE/parts/part-%d > page.txt",
			part)
		if err := runBlock(block{site: site, script: show}); err != nil {
			t.Fatal(err)
		}
		page := string(contents(t, filepath.Join(dir, site, "page.txt")))
		if !strings.Contains(page, "Earlier runs that sent rows of this table: 1. ") {
			t.Errorf("%s must see that one run sent rows of its table\n%s", site, page)
		}
	}
	if len(seen) != 4 {
		t.Errorf("sites %v, must be four", seen)
	}
	if !bytes.Equal(contents(t, filepath.Join(dir, "north/run/model.safetensors")),
		contents(t, filepath.Join(dir, "west/run/model.safetensors"))) {
		t.Error("the models differ")
	}
	// All sites publish their figures.
	schema := resultSchema(t)
	names := []string{"north", "south", "west"}
	for _, site := range names {
		figures := bySchema(t, schema,
			filepath.Join(dir, site, "run/result.json")).(map[string]any)["figures"].(map[string]any)
		known := []string{figures["told"].(map[string]any)["name"].(string)}
		for _, one := range figures["published"].([]any) {
			known = append(known, one.(map[string]any)["name"].(string))
		}
		if own := known[0]; own != site {
			t.Errorf("%s must tell its own figures (got those of %s)", site, own)
		}
		if slices.Sort(known); !slices.Equal(known, names) {
			t.Errorf("%s must know the figures of all (got %v)", site, known)
		}
		page := string(contents(t, filepath.Join(dir, site, "run/report.html")))
		for _, want := range []string{"2 of 2 other sites publish", "or more</td>",
			"This site published that its test accuracy is about"} {
			if !strings.Contains(page, want) {
				t.Errorf("the report of %s must have %q", site, want)
			}
		}
	}
	if said := must(t, "audit", "show", filepath.Join(dir, "north/audit.jsonl"), "--event",
		"left"); !strings.Contains(said, "figures, and this site's own: accuracy") {
		t.Errorf("north's log must say that it published its figures\n%s", said)
	}
	page := string(contents(t, filepath.Join(dir, "north/again.html")))
	for _, want := range []string{"with the rows of", "What was predicted", "What left each site",
		"Bytes and messages sent", ">north</th>", "rows (halo)", "Confusion matrix"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of north's predictions must have %q", want)
		}
	}
	lines := func(name string) int { return bytes.Count(contents(t, filepath.Join(dir, name)), []byte("\n")) }
	if was, again := lines("north/run/predictions.csv"), lines("north/again.csv"); was != again || was < 10 {
		t.Errorf("predictions of the run have %d lines, those of the same nodes later %d", was, again)
	}
	// The log records the run and the refusal.
	for event, want := range map[admission.RecordEvent][]string{
		admission.Began:     {"tumour-registry serial 1", "tumour-registry serial 2", "plan "},
		admission.Connected: {"north", "west", " rows"},
		admission.Left:      {"closed form", "figures", "predict", "bytes by halo", "bytes by reduce"},
		admission.Refused:   {"roster.revoked", "west"},
		admission.Ended:     {`"done"`, "roster.revoked"},
	} {
		said := must(t, "audit", "show", filepath.Join(dir, "south/audit.jsonl"), "--event", string(event))
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: %q, must contain %q", event, said, w)
			}
		}
	}
}

// registry is a federation: three keys, a roster of them in force, a plan, a policy and an approval
// of the first one.
type registry struct {
	dir  string
	ids  []string
	join []string // arguments of heddle join
}

func (f registry) at(name string) string { return filepath.Join(f.dir, name) }

func found(t *testing.T) registry {
	t.Helper()
	f := registry{dir: t.TempDir()}
	var members []string
	for _, name := range []string{"north", "south", "west"} {
		id := strings.TrimSpace(must(t, "init", "--identity", f.at(name+".key")))
		f.ids = append(f.ids, id)
		members = append(members, name+"="+id)
	}
	must(t, append([]string{"plan", "--federation", "tumour-registry", "-o", f.at("roster.json")}, members...)...)
	for _, name := range []string{"north", "west"} {
		must(t, "roster", "sign", f.at("roster.json"), "--identity", f.at(name+".key"), "--trusted",
			f.at("trusted.json"))
	}
	s, err := admission.ReadFile[admission.Roster](f.at("roster.json"))
	if err != nil {
		t.Fatal(err)
	}
	must(t, "roster", "verify", f.at("roster.json"), "--trusted", f.at("trusted.json"), "--fingerprint",
		s.Body.Fingerprint())
	must(t, "partition", "--data", sites(t), "--policy", "by-column", "--parts", "3", "--out", f.at("parts"))
	must(t, append([]string{"plan", "--out", f.at("plan.yaml")}, members...)...)
	f.policy(t, "federation: tumour-registry\nmethods: [class-means]\nmin_members: 3\n")
	must(t, "approve", "--plan", f.at("plan.yaml"), "--policy", f.at("policy.yaml"), "--shard", f.at("parts/part-0"),
		"--yes", "--identity", f.at("north.key"), "-o", f.at("approval.json"))
	f.join = []string{"join", "--plan", f.at("plan.yaml"), "--roster", f.at("roster.json"), "--trusted",
		f.at("trusted.json"), "--policy", f.at("policy.yaml"), "--approval", f.at("approval.json"), "--identity",
		f.at("north.key"), "--shard", f.at("parts/part-0"), "--audit", f.at("audit.jsonl"), "-o", f.at("run"), "--wait",
		"1ms"}
	return f
}

func (f registry) policy(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.at("policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAdmissionRefuses: what is missing or forbidden is refused by rule before a socket is opened,
// and recorded.
func TestAdmissionRefuses(t *testing.T) {
	t.Parallel()
	f := found(t)
	policy := string(contents(t, f.at("policy.yaml")))
	plan := contents(t, f.at("plan.yaml"))
	replace := func(old, new string) func() {
		return func() { f.policy(t, strings.Replace(policy, old, new, 1)) }
	}
	for _, c := range []struct {
		rule  string
		exit  int
		spoil func()
	}{
		{"policy.methods", 2, replace("[class-means]", "[layer-wise]\nencoders: [raw]\nlayer_outputs: [hidden]")},
		{"policy.rows", 2, replace("min_members", "rows: [int4]\nmin_members")},
		{"policy.min_members", 2, replace("min_members: 3", "min_members: 4")},
		{"approval.signatures", 2, replace("min_members", "approvers: ["+f.ids[1]+"]\nmin_members")},
		{"is for other", 2, replace("tumour-registry", "other")},
		{"policy.hours", 1, replace("min_members", "hours: [\""+shut()+"\"]\nmin_members")},
		{"approval.plan", 2, func() {
			if err := os.WriteFile(f.at("plan.yaml"), append(bytes.Clone(plan), '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		f.policy(t, policy)
		if err := os.WriteFile(f.at("plan.yaml"), plan, 0o644); err != nil {
			t.Fatal(err)
		}
		c.spoil()
		refuse(t, c.exit, []string{c.rule}, f.join...)
		var last admission.Record
		if _, err := admission.VerifyLog(f.at("audit.jsonl"), func(r admission.Record) error {
			if r.Event == admission.Refused {
				last = r
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.rule, ".") && last.Rule != c.rule {
			t.Errorf("%s: the log says %q last", c.rule, last.Rule)
		}
	}
	f.policy(t, policy)
	if err := os.WriteFile(f.at("plan.yaml"), plan, 0o644); err != nil {
		t.Fatal(err)
	}
	refuse(t, 1, []string{"south", "west"}, f.join...) // admitted, and nobody is there
	refuse(t, 2, []string{"go together"}, append(slices.Clone(f.join), "--policy", "")...)
	release, err := checkpoint.Lock(f.at("taken"))
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"only one peer"}, append(slices.Clone(f.join), "--state", f.at("taken"))...)
	release()
	if _, err := os.Stat(f.at("taken/run.yaml")); err == nil {
		t.Error("a state that another peer uses must keep its run.yaml")
	}
	const stray = "/ip4/127.0.0.1/tcp/4009/p2p/12D3KooWAAbDtCKfTbXVMXFWTBZuDyEeRcGZxb8QmNcLTiBRLF8d"
	for rule, other := range map[string][]byte{
		"roster.name":   bytes.Replace(plan, []byte("name: south"), []byte("name: sooth"), 1),
		"roster.relays": append(bytes.Clone(plan), "relays: ["+stray+"]\n"...),
		"relay " + stray + " is not in serial 1": bytes.Replace(plan, []byte("addresses: []"),
			[]byte("addresses: ["+stray+"/p2p-circuit]"), 1),
		"name must be 1 to 63 letters": bytes.Replace(plan, []byte("name: south"), []byte(`name: "so\e[2Juth"`), 1),
		"at most 65536 bytes":          append(bytes.Clone(plan), "# "+strings.Repeat("x", 65<<10)...),
	} {
		if err := os.WriteFile(f.at("plan.yaml"), other, 0o644); err != nil {
			t.Fatal(err)
		}
		refuse(t, 2, []string{rule}, f.join...)
	}
}

// shut returns a span of hours without the present one.
func shut() string {
	h := time.Now().Hour()
	return fmt.Sprintf("%02d:00-%02d:00", (h+3)%24, (h+5)%24)
}

func TestRosterCommands(t *testing.T) {
	t.Parallel()
	f := found(t)
	file, trusted := f.at("roster.json"), f.at("trusted.json")
	old := contents(t, file)
	sign := func(name string) []string {
		return []string{"roster", "sign", file, "--trusted", trusted, "--identity", f.at(name + ".key")}
	}
	east := strings.TrimSpace(must(t, "init", "--identity", f.at("east.key")))
	refuse(t, 2, []string{"never replaced"}, "init", "--identity", f.at("east.key"))
	refuse(t, 2, []string{"quorum"}, "roster", "add", file, "east="+east, "--quorum", "9")
	refuse(t, 2, []string{"nobody"}, "roster", "revoke", file, "nobody")
	refuse(t, 2, []string{"already in force here"}, sign("north")...)

	must(t, "roster", "add", file, "east="+east+"@east.example", "--expires", "2099-12-31")
	out := must(t, "roster", "revoke", file, "west")
	if !strings.Contains(out, "- west  ") || !strings.Contains(out, "serial 2") {
		t.Errorf("%q, must say what was changed", out)
	}
	refuse(t, 2, []string{"roster.quorum", "0 of the 2", "north"}, "roster", "verify", file, "--trusted", trusted)
	refuse(t, 2, []string{"must be an administrator", "north, south, west"}, sign("east")...)
	out = must(t, sign("north")...)
	if !strings.Contains(out, "+ east  "+east) || !strings.Contains(out, "- west") {
		t.Errorf("%q, must say the changes of both commands", out)
	}
	refuse(t, 2, []string{"roster.quorum", "1 of the 2", "south (" + f.ids[1]}, "roster", "verify", file, "--trusted",
		trusted)
	must(t, sign("south")...)
	refuse(t, 2, []string{"32 hexadecimal"}, "roster", "verify", file, "--trusted", f.at("other.json"), "--fingerprint",
		"12ab")
	refuse(t, 2, []string{"ask an administrator"}, "roster", "verify", file, "--trusted", f.at("other.json"))
	must(t, "roster", "verify", file, "--trusted", trusted)
	show := must(t, "roster", "show", file)
	for _, w := range []string{"serial       2", "2 of 2", "/dns/east.example/udp/4001/quic-v1", "revoked      west",
		"signed by    north"} {
		if !strings.Contains(show, w) {
			t.Errorf("%q, must contain %q", show, w)
		}
	}
	refuse(t, 2, []string{"roster.revoked", "west"}, f.join...)
	refuse(t, 2, []string{"roster.revoked", "new identity"}, "roster", "add", file, "west="+f.ids[2])
	if err := os.WriteFile(file, old, 0o644); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"roster.serial", "older than serial 2"}, f.join...)
	refuse(t, 2, []string{"roster.serial"}, "roster", "verify", file, "--trusted", trusted)
	refuse(t, 2, []string{"is not of this content"}, "roster", "show",
		write(t, string(bytes.Replace(old, []byte("name: north"), []byte("name: nord"), 1))))
}

func TestApproveCommand(t *testing.T) {
	t.Parallel()
	f := found(t)
	policy := string(contents(t, f.at("policy.yaml"))) + "approvers: [" + f.ids[1] + ", " + f.ids[2] +
		"]\napprovals: 2\n"
	f.policy(t, policy)
	by := func(name string) []string {
		return []string{"approve", "--plan", f.at("plan.yaml"), "--policy", f.at("policy.yaml"), "--shard",
			f.at("parts/part-0"), "--yes", "--site", f.ids[0], "--identity", f.at(name + ".key"), "-o",
			f.at("two.json")}
	}
	if out := must(t, by("south")...); !strings.Contains(out, "not enough yet") ||
		!strings.Contains(out, "method: class-means") || !strings.Contains(out, "west") {
		t.Errorf("%q, must say the plan and that a signature is missing", out)
	}
	if out := must(t, by("west")...); strings.Contains(out, "not enough yet") || !strings.Contains(out, "signed by 2") {
		t.Errorf("%q, must say two signatures", out)
	}
	f.policy(t, strings.Replace(policy, "class-means", "full-batch", 1)+"encoders: [raw]\nlayer_outputs: [hidden]\n")
	refuse(t, 2, []string{"policy.methods", "policy.yaml"}, by("south")...)
	f.policy(t, policy)
	refuse(t, 2, []string{"not among"},
		append(by("south"), "--site", strings.TrimSpace(must(t, "init", "--identity", f.at("x.key"))))...)
	refuse(t, 2, []string{"the command init"}, append(by("south"), "--identity", f.at("none.key"))...)
}

// TestApproveAsks: the page is shown before the question, and nothing is signed without a yes.
func TestApproveAsks(t *testing.T) {
	t.Parallel()
	f := found(t)
	out := f.at("asked.json")
	approve := []string{"approve", "--plan", f.at("plan.yaml"), "--policy", f.at("policy.yaml"), "--shard",
		f.at("parts/part-0"), "--identity", f.at("north.key"), "-o", out}
	answered := func(answer string) (said string, exit int) {
		c := process(t, approve...)
		c.Stdin = strings.NewReader(answer)
		text, err := c.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return string(text), c.ProcessState.ExitCode()
	}
	for _, answer := range []string{"n\n", "\n", "", "yn\n"} {
		said, exit := answered(answer)
		page, rest, asked := strings.Cut(said, "Approve this plan for north until ")
		if exit != 1 || !asked || !strings.Contains(page, "What leaves north") ||
			!strings.Contains(page, "leave_one_out: auto") || !strings.Contains(rest, "nothing is signed") {
			t.Errorf("%q: exit %d\n%s", answer, exit, said)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%q: a signature was left (%v)", answer, err)
		}
	}
	if said, exit := answered("Y\n"); exit != 0 || !strings.Contains(said, "signed by 1") {
		t.Errorf("yes: exit %d\n%s", exit, said)
	}
	if s, err := admission.ReadFile[admission.Approval](out); err != nil || !slices.Equal(s.Signers(), f.ids[:1]) {
		t.Errorf("%v, must be signed by north alone", err)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"part 1", "is member 0"},
		append(slices.Clone(approve), "--yes", "--shard", f.at("parts/part-1"))...)
	policy := string(contents(t, f.at("policy.yaml")))
	f.policy(t, policy+"max_hops: 1\n")
	refuse(t, 2, []string{"policy.max_hops: a layer must have at most 1 hops (got 6)"},
		append(slices.Clone(approve), "--yes")...)
	f.policy(t, policy+"max_numbers: 0.5\n")
	refuse(t, 2, []string{"policy.max_numbers: at most 0.5 numbers"}, append(slices.Clone(approve), "--yes")...)
	refuse(t, 2, []string{"policy.max_numbers: at most 0.5 numbers"}, f.join...) // whatever was approved
	f.policy(t, policy)
	const stray = "/ip4/127.0.0.1/tcp/4009/p2p/12D3KooWAAbDtCKfTbXVMXFWTBZuDyEeRcGZxb8QmNcLTiBRLF8d"
	if err := os.WriteFile(f.at("plan.yaml"), append(contents(t, f.at("plan.yaml")), "relays: ["+stray+"]\n"...),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []string{"trusted.json", "none.json"} {
		refuse(t, 2, []string{"roster.relays: relay " + stray + " is not in serial"},
			append(slices.Clone(approve), "--yes", "--trusted", f.at(trusted))...)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused plan was signed (%v)", err)
	}
}

// TestCheckPlan: the page lists all messages with their receivers, whether policy and roster allow the plan, and all
// settings. It needs neither key nor policy.
func TestCheckPlan(t *testing.T) {
	t.Parallel()
	f := found(t)
	check := []string{"check", "--plan", f.at("plan.yaml"), "--shard", f.at("parts/part-1")}
	alone := must(t, check...)
	for _, want := range []string{"site         south: part 1 of 3 of sites, 186 of 600 nodes",
		"policy       none was given", "reads rows of 133 of this site's nodes",
		"3 times    int8     4 numbers               columns of the node",
		"4 times    int8     3 numbers               logits of the node in the round before", "16 values (median",
		"Our attacks on these rows: an attacker recovers 0 of 154 rows exactly", "numbers for each value",
		"there is no ε", "  leave_one_out: auto                policy.leave_one_out\n", "carrier: quic;"} {
		if !strings.Contains(alone, want) {
			t.Errorf("%s\nmust contain %q", alone, want)
		}
	}
	judged := append(check, "--policy", f.at("policy.yaml"), "--trusted", f.at("trusted.json"))
	if out := must(t, judged...); !strings.Contains(out, "policy.yaml allows it\n") ||
		!strings.Contains(out, "serial 1 of tumour-registry lists all members") {
		t.Errorf("%s\nmust say that policy and roster allow it", out)
	}
	if out := must(t, append(judged, "--trusted", f.at("none.json"))...); !strings.Contains(out,
		"roster       none of tumour-registry is in force here") {
		t.Errorf("%s\nthe output must say that this site has no roster", out)
	}
	const told = "this site's own test metric, in whole percent, to all members, if 25 test nodes or more have labels"
	f.policy(t, string(contents(t, f.at("policy.yaml")))+"site_figures: 25\n")
	if out := must(t, judged...); !strings.Contains(out, told) || strings.Contains(alone, "own test metric") {
		t.Errorf("%s\nmust say that figures of the site leave, and only then", out)
	}
	f.policy(t, strings.Replace(string(contents(t, f.at("policy.yaml"))), "class-means", "layer-wise", 1)+
		"encoders: [mlp]\nlayer_outputs: [hidden]\n")
	exit, stdout, stderr := call(t.Context(), judged...)
	if exit != 2 || !strings.Contains(stdout, "policy.yaml does not allow it\n") ||
		!strings.Contains(stdout, "columns of the node") || !strings.Contains(stderr, "policy.methods") {
		t.Errorf("exit %d, %s\n%s", exit, stdout, stderr)
	}
	two := filepath.Join(t.TempDir(), "two")
	must(t, "partition", "--data", sites(t), "--policy", "random", "--parts", "2", "--out", two)
	refuse(t, 2, []string{"part 0 of 2, and", "has 3 members"},
		append(check, "--shard", filepath.Join(two, "part-0"))...)
}

// TestPeerIDs: the admission package and libp2p read the same key from an ID.
func TestPeerIDs(t *testing.T) {
	t.Parallel()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	s := admission.Unsigned(admission.Approval{Federation: "f", Plan: strings.Repeat("0", 64), Site: id.PeerID(),
		Expires: "2099-12-31"})
	if err := s.Sign(id.PeerID(), id.Sign); err != nil {
		t.Error(err)
	}
}
