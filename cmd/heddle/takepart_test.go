package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// operators are three sites, each with a separate folder and home, that have their raw tables and nothing else.
type operators struct {
	t     *testing.T
	dir   string
	names []string
	// inside makes a command one of the site's own network (nil = all sites are on this machine's)
	inside func(site string, c *exec.Cmd) *exec.Cmd
}

// operate writes the tables of the hospitals into the folders, lets edit change them, and runs heddle init at each; one
// of them writes federation.yaml.
func operate(t *testing.T, edit func(o *operators), plan ...string) *operators {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes are interrupted by signals")
	}
	o := rawSites(t)
	if edit != nil {
		edit(o)
	}
	ids := o.init()
	args := append([]string{"plan", "-o", filepath.Join(o.dir, "federation.yaml"), "--port",
		fmt.Sprint(testenv.FreePorts(t, 3))}, plan...)
	for _, id := range ids {
		args = append(args, id+"@127.0.0.1")
	}
	must(t, args...)
	o.share()
	return o
}

// rawSites writes the tables of the hospitals into the folders.
func rawSites(t *testing.T) *operators {
	t.Helper()
	o := &operators{t: t, dir: t.TempDir(), names: []string{"north", "south", "west"}}
	for _, name := range o.names {
		for _, table := range []string{"patients", "contacts"} {
			file := name + "-" + table + ".csv"
			o.write(name, file, string(contents(t, filepath.Join(hospitalTables, file))))
		}
	}
	return o
}

// init runs heddle init at each site, and returns the lines that it printed: names and IDs.
func (o *operators) init() (ids []string) {
	o.t.Helper()
	for _, name := range o.names {
		e := o.run(name, "", "init", name)
		if e.exit != 0 {
			o.t.Fatalf("%s: %s", name, e.errors)
		}
		ids = append(ids, strings.TrimSpace(e.out))
	}
	return ids
}

// share copies federation.yaml to all sites.
func (o *operators) share() {
	for _, name := range o.names {
		o.write(name, "federation.yaml", string(contents(o.t, filepath.Join(o.dir, "federation.yaml"))))
	}
}

func (o *operators) at(name, file string) string { return filepath.Join(o.dir, name, file) }

func (o *operators) write(name, file, text string) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Join(o.dir, name), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(o.at(name, file), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// replace replaces a text in a site's file. It is a fault of the test if the file does not have the text.
func (o *operators) replace(name, file, old, by string) {
	o.t.Helper()
	text := string(contents(o.t, o.at(name, file)))
	if !strings.Contains(text, old) {
		o.t.Fatalf("%s of %s must have %q", file, name, old)
	}
	o.write(name, file, strings.Replace(text, old, by, 1))
}

func (o *operators) command(name, answer string, args ...string) *exec.Cmd {
	c := process(o.t, args...)
	if o.inside != nil {
		c = o.inside(name, c)
	}
	home := filepath.Join(o.dir, name)
	c.Dir, c.Stdin = home, strings.NewReader(answer)
	c.Env = append(c.Env, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"))
	return c
}

// run runs the program in a site's folder.
func (o *operators) run(name, answer string, args ...string) (e ended) {
	c := o.command(name, answer, args...)
	var out, errors bytes.Buffer
	c.Stdout, c.Stderr = &out, &errors
	_ = c.Run() // the exit code has it
	return ended{c.ProcessState.ExitCode(), out.String(), errors.String()}
}

// takePart runs heddle take-part at all sites. want has the exit code of each site (no entry = 0).
func (o *operators) takePart(answer string, want map[string]int, args ...string) map[string]ended {
	o.t.Helper()
	ends := atOnce(o.names, func(name string) (int, string, string) {
		e := o.run(name, answer, append([]string{"take-part"}, args...)...)
		return e.exit, e.out, e.errors
	})
	for name, e := range ends {
		if e.exit != want[name] {
			o.t.Errorf("%s: exit %d, must be %d\n%s%s", name, e.exit, want[name], e.out, e.errors)
		}
	}
	if o.t.Failed() {
		o.t.FailNow()
	}
	return ends
}

// complete checks the results of a run.
func (o *operators) complete(run int) {
	o.t.Helper()
	results := fmt.Sprintf("results/run-%d", run)
	for _, name := range o.names {
		for _, file := range []string{"report.html", "predictions.csv", "result.json"} {
			if _, err := os.Stat(o.at(name, filepath.Join(results, file))); err != nil {
				o.t.Error(err)
			}
		}
		model := filepath.Join(results, "model.safetensors")
		if !bytes.Equal(contents(o.t, o.at(name, model)), contents(o.t, o.at(o.names[0], model))) {
			o.t.Errorf("%s has another model", name)
		}
	}
	if r := figures(o.t, o.at("north", filepath.Join(results, "result.json"))); !(*r.Test > 0.8) {
		o.t.Errorf("run %d: test accuracy %v", run, *r.Test)
	}
}

// allowFullBatch lets the sites train layers, with sums in the clear.
func (o *operators) allowFullBatch() {
	for _, name := range o.names {
		o.replace(name, "site.yaml", "methods: [class-means]", "methods: [full-batch]\n  encoders: [raw]\n  "+
			"layer_outputs: [hidden, logits]")
		o.replace(name, "site.yaml", "min_members_in_sum: 3", "min_members_in_sum: 1")
		o.replace(name, "site.yaml", "rows: [int8, int4]", "rows: [float32, int8, int4]")
		o.replace(name, "site.yaml", "max_numbers: 10 ", "max_numbers: 0 ")
	}
}

// TestTakePart: three sites with raw tables train by two commands each, without a flag and with two files. Next month
// the same command trains again, and asks only if something new leaves.
func TestTakePart(t *testing.T) {
	t.Parallel()
	o := operate(t, func(o *operators) { // one site has no labels
		o.write("west", "west-patients.csv", regexp.MustCompile(",[^,\n]*\n").ReplaceAllString(
			string(contents(t, o.at("west", "west-patients.csv"))), "\n"))
	})
	o.replace("west", "site.yaml", "ward: label", "ward: categorical") // a wrong guess
	o.replace("west", "site.yaml", "categories: []", "categories: [ward]")
	page := o.takePart("y\n", nil)["north"].out
	for _, want := range []string{`texts of ward: ["medicine" "outpatient" "surgery"]`, "label counts",
		"Settings of the plan", "predictions: results/run-1/predictions.csv"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page must have %q\n%s", want, page)
		}
	}
	if before, _, _ := strings.Cut(page, "[y/N]"); !strings.Contains(before, "ZᵀZ") ||
		strings.Contains(before, "of 3 sites") {
		t.Errorf("all must be shown before the sites meet\n%s", page)
	}
	o.complete(1)
	if e := o.takePart("", nil, "--yes")["west"]; !strings.Contains(e.out, "nothing is new") {
		t.Errorf("the same tables again\n%s%s", e.out, e.errors)
	}
	// A single site ends well after its wait, and the others may still come later.
	o.replace("south", "site.yaml", "# wait: 10m ", "wait: 2s ")
	if e := o.run("south", "", "take-part", "--yes"); e.exit != 0 ||
		!strings.Contains(e.out, "nothing is new here: results/run-1 has the results; for 2s it waits") ||
		!strings.Contains(e.out, "nothing has changed here") {
		t.Errorf("alone with the same tables: exit %d\n%s%s", e.exit, e.out, e.errors)
	}
	o.replace("south", "site.yaml", "wait: 2s", "wait: 10m")
	o.replace("north", "north-patients.csv", "p000,", "p998,50,1.2,surgery,\np000,")
	o.replace("north", "north-contacts.csv", "p000,", "p998,p000,\np000,")
	o.takePart("", nil, "--yes") // no page has how many patients there are
	o.complete(2)
	if text := contents(t, o.at("north", "results/run-2/predictions.csv")); !bytes.Contains(text, []byte("p998,")) {
		t.Error("the new patient must have a prediction")
	}
	hospice := ""
	for k := range 12 {
		hospice += fmt.Sprintf("p9%d,50,1.2,hospice,no\n", k+10)
	}
	o.replace("north", "north-patients.csv", "p000,", hospice+"p000,")
	e := o.run("north", "", "take-part", "--yes")
	if e.exit != 2 || !strings.Contains(e.errors, "hospice") || strings.Contains(e.errors, "sums: number") {
		t.Errorf("a new text needs an answer: exit %d\n%s", e.exit, e.errors)
	}
	if e := o.run("north", "n\n", "take-part"); e.exit != 1 || !strings.Contains(e.errors, "not approved") {
		t.Errorf("exit %d\n%s", e.exit, e.errors)
	}
	o.replace("north", "state/approved.txt", "surgery", "surgerx")
	if e := o.run("north", "y\n", "take-part"); e.exit != 2 ||
		!strings.Contains(e.errors, "as this site's key signed it") {
		t.Errorf("a changed approval: exit %d\n%s", e.exit, e.errors)
	}
}

// TestTakePartFaults: what is wrong at one site is named there with file and line, and the others learn which site it
// is.
func TestTakePartFaults(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		edit       func(o *operators)
		west, rest string
		others     int
	}{
		"column": {func(o *operators) {
			o.replace("west", "west-patients.csv", "ward,", "ward,smoker,")
		}, `west-patients.csv: line 1: column "smoker" has no role`, "", 2},
		"cell": {func(o *operators) {
			o.replace("west", "west-patients.csv", "p010,58,", "p010,old,")
		}, "west-patients.csv: line 3", "west) cannot take part", 2},
		"name": {func(o *operators) {
			o.replace("west", "west-contacts.csv", "p007,p114,", "p007,nobody,north\np007,p114,")
		}, `west-contacts.csv: line 2: north has no node "nobody"`, "west", 1},
		"role": {func(o *operators) {
			o.replace("west", "site.yaml", "age: numeric", "age: nummeric")
		}, `site.yaml: line 13: role of column age must be one of`, "", 2},
		"plan": {func(o *operators) {
			o.replace("west", "federation.yaml", "seed: 1", "seed: 2")
		}, `seed is "2" at west and "1" at`, "seed is", 2},
		"policy": {func(o *operators) {
			o.replace("west", "site.yaml", "[ward]", "[]")
		}, "policy.categories: the texts of column \"ward\" must not leave", "west) cannot take part", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := operate(t, nil)
			one.edit(o)
			for _, site := range o.names {
				o.replace(site, "site.yaml", "# wait: 10m ", "wait: 8s ")
			}
			ends := atOnce(o.names, func(name string) (int, string, string) {
				e := o.run(name, "y\n", "take-part")
				return e.exit, e.out, e.errors
			})
			for site, e := range ends {
				want, exit := one.rest, one.others
				if site == "west" {
					want, exit = one.west, 2
				}
				if !strings.Contains(e.errors, want) || want != "" && e.exit != exit {
					t.Errorf("%s: exit %d, must be %d with %q\n%s%s", site, e.exit, exit, want, e.out, e.errors)
				}
			}
		})
	}
}

// struck runs heddle take-part at a site, and signals it when it has printed at and then ready (nil = at once) reports
// true. It must end by the signal.
func (o *operators) struck(name, at string, ready func() bool, signal syscall.Signal, args ...string) (e ended) {
	c := o.command(name, "y\n", append([]string{"take-part"}, args...)...)
	both, write, err := os.Pipe()
	if err == nil {
		c.Stdout, c.Stderr = write, write
		err = c.Start()
		write.Close()
	}
	if err != nil {
		return ended{0, "", err.Error()}
	}
	defer both.Close()
	var text strings.Builder
	seen := false
	for all := bufio.NewScanner(both); all.Scan(); {
		text.WriteString(all.Text() + "\n")
		if !seen && strings.Contains(all.Text(), at) {
			seen = true
			go func() {
				for ready != nil && !ready() {
					time.Sleep(time.Millisecond)
				}
				_ = c.Process.Signal(signal)
			}()
		}
	}
	_ = c.Wait()
	e = ended{c.ProcessState.ExitCode(), text.String(), ""}
	if !seen {
		e.exit = 0
	}
	return e
}

// TestTakePartKilled: a site that is killed at any step goes on by the same command, and so do the others, which wait.
func TestTakePartKilled(t *testing.T) {
	t.Parallel()
	trained := []string{"--method", "full-batch", "--model", "sage", "--hidden", "16", "--rounds", "150"}
	for name, one := range map[string]struct {
		at     string // what the site logs or prints before
		signal syscall.Signal
		plan   []string
	}{
		"waiting":    {"names at edges here", syscall.SIGKILL, nil},
		"columns":    {"phase=columns", syscall.SIGKILL, nil},
		"neighbours": {"phase=neighbours", syscall.SIGKILL, nil},
		"matched":    {"of 3 sites", syscall.SIGTERM, nil},
		"training":   {"round done", syscall.SIGKILL, trained},
		"stopped":    {"round done", syscall.SIGTERM, trained},
		"writing":    {"stage done", syscall.SIGKILL, nil},
		"lost part":  {"round done", syscall.SIGKILL, trained}, // and what it had made is gone
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := operate(t, nil, one.plan...)
			if one.plan != nil {
				o.allowFullBatch()
			}
			ends := atOnce(o.names, func(site string) (int, string, string) {
				if site == "west" {
					if e := o.struck(site, one.at, nil, one.signal, "--log-level", "debug"); e.exit == 0 {
						return -1, e.out, "killed at " + one.at
					}
					if name == "lost part" {
						if err := os.RemoveAll(filepath.Join(o.dir, site, "state", "run-1", "part")); err != nil {
							return -1, "", err.Error()
						}
					}
					time.Sleep(300 * time.Millisecond)
				}
				e := o.run(site, "y\n", "take-part")
				return e.exit, e.out, e.errors
			})
			for site, e := range ends {
				if e.exit != 0 {
					t.Fatalf("%s: exit %d\n%s%s", site, e.exit, e.out, e.errors)
				}
			}
			o.complete(1)
		})
	}
}

// TestTakePartSigned: with signatures a site needs one more command, and a member that is revoked takes no part.
func TestTakePartSigned(t *testing.T) {
	t.Parallel()
	o := operate(t, nil, "--federation", "tumour-registry")
	file := filepath.Join(o.dir, "federation.yaml")
	sign := func() {
		for _, name := range []string{"north", "south"} {
			if e := o.run(name, "", "roster", "sign", file); e.exit != 0 {
				t.Fatal(e.errors)
			}
		}
		o.share()
	}
	if e := o.run("north", "y\n", "take-part"); e.exit != 2 || !strings.Contains(e.errors, "roster.quorum") {
		t.Errorf("without signatures: exit %d\n%s", e.exit, e.errors)
	}
	sign()
	if page := o.takePart("y\n", nil)["south"].out; !strings.Contains(page, "compare over the phone: ") {
		t.Errorf("the page must have the fingerprint\n%s", page)
	}
	o.complete(1)
	must(t, "audit", "verify", o.at("west", "state/audit.jsonl"))
	must(t, "roster", "revoke", file, "west")
	sign()
	o.names = []string{"north", "south"}
	for _, name := range o.names {
		o.replace(name, "site.yaml", "min_members_in_sum: 3", "min_members_in_sum: 2")
		o.replace(name, "site.yaml", "min_members: 3", "min_members: 2")
	}
	if e := o.run("west", "y\n", "take-part"); e.exit != 2 || !strings.Contains(e.errors, "is not among the 2 listed") {
		t.Errorf("west is revoked: exit %d\n%s", e.exit, e.errors)
	}
	for _, name := range o.names { // edges to west are to nobody now
		text := string(contents(t, o.at(name, name+"-contacts.csv")))
		o.write(name, name+"-contacts.csv", regexp.MustCompile("(?m)^.*,west\n").ReplaceAllString(text, ""))
	}
	o.takePart("y\n", nil)
	if got := figures(t, o.at("north", "results/run-2/result.json")); got.Peers != 2 {
		t.Errorf("%d peers, must be 2", got.Peers)
	}
}

// TestTakePartWarm: next month trained layers start from the last model, which all sites have.
func TestTakePartWarm(t *testing.T) {
	t.Parallel()
	o := operate(t, nil, "--method", "full-batch", "--model", "sage", "--hidden", "16", "--rounds", "40")
	o.allowFullBatch()
	o.takePart("y\n", nil)
	o.replace("south", "south-patients.csv", "p002,", "p998,50,1.2,surgery,\np002,")
	e := o.takePart("y\n", nil)["north"]
	init := regexp.MustCompile("init: [0-9a-f]{64}")
	if !init.Match(contents(t, o.at("north", "results/run-2/settings.yaml"))) ||
		!strings.Contains(e.errors, "without a column of role split") {
		t.Errorf("run 2 must start from the model of run 1\n%s", e.errors)
	}
	// One site has lost the model: all train anew.
	if err := os.RemoveAll(o.at("west", "results")); err != nil {
		t.Fatal(err)
	}
	o.replace("south", "south-patients.csv", "p998,50", "p998,51")
	o.takePart("y\n", nil)
	if init.Match(contents(t, o.at("north", "results/run-3/settings.yaml"))) {
		t.Error("run 3 must not start from a model that west lacks")
	}
}

// TestTakePartPage: one page shows all steps of a site: the wait for other sites, matching, training and the end.
func TestTakePartPage(t *testing.T) {
	t.Parallel()
	at := fmt.Sprintf("127.0.0.1:%d", testenv.FreePorts(t, 1))
	o := operate(t, func(*operators) {})
	o.write("north", "site.yaml", string(contents(t, o.at("north", "site.yaml")))+"http: "+at+"\n")
	ends := make(chan ended, 3)
	take := func(name string) { go func() { ends <- o.run(name, "y\n", "take-part") }() }
	take("north")
	take("south")
	until(t, "http://"+at+"/status", func(status int, body string) bool {
		return status == 200 && strings.Contains(body, `"state":"Step 1 of 2, matching tables. Waiting for `) &&
			strings.Contains(body, `"name":"west","state":"has not been connected"`)
	})
	take("west")
	seen := until(t, "http://"+at+"/status", func(_ int, body string) bool {
		return strings.Contains(body, `"state":"The run is complete."`)
	})
	for _, want := range []string{"Step 1 of 2, matching tables", "Step 2 of 2, training", "connected: 3 of 3 sites"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the page at the end has no %q:\n%s", want, seen)
		}
	}
	for range 3 {
		if e := <-ends; e.exit != 0 {
			t.Errorf("exit %d\n%s%s", e.exit, e.out, e.errors)
		}
	}
}
