package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// mailed finds the lines that sites send to each other.
var mailed = regexp.MustCompile(`heddle-(invitation|answer)-\S+`)

// TestInvite: sites take part by lines that they send to each other: nobody types an ID, and each types its own address
// only. An invited site needs two commands, with signatures three, and two files.
func TestInvite(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		flags []string
		want  map[string]int // commands of a site
	}{
		"plain":  {nil, map[string]int{"north": 3, "south": 2, "west": 2}},
		"signed": {[]string{"--federation", "tumour-registry"}, map[string]int{"north": 3, "south": 3, "west": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, typed := rawSites(t), map[string]int{}
			run := func(site, input string, args ...string) string {
				typed[site]++
				e := o.run(site, input, args...)
				if e.exit != 0 {
					t.Fatalf("%s %.40q: exit %d\n%s", site, args, e.exit, e.errors)
				}
				return e.out
			}
			port := testenv.FreePorts(t, 2)
			run("north", "", "init", "north", fmt.Sprintf("127.0.0.1:%d", port))
			typed["north"]++ // its terminal stays open until the answers are there
			inviting := o.command("north", "", append([]string{"invite", "south", "west"}, one.flags...)...)
			inviting.Stdin = nil
			in, err := inviting.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := inviting.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := inviting.Start(); err != nil {
				t.Fatal(err)
			}
			var lines []string
			for s := bufio.NewScanner(out); len(lines) < 2 && s.Scan(); {
				lines = append(lines, mailed.FindString(s.Text()))
			}
			answers := run("south", "", "init", lines[0], fmt.Sprintf("127.0.0.1:%d", port+1))
			answers += run("west", "", "init", lines[1])
			if _, err := io.WriteString(in, answers); err != nil {
				t.Fatal(err)
			}
			if err := inviting.Wait(); err != nil { // it ends when all have answered, though its input is open
				t.Fatal(err)
			}
			held := string(contents(t, o.at("north", "federation.yaml")))
			if e := o.run("north", answers, "invite"); e.exit != 0 ||
				string(contents(t, o.at("north", "federation.yaml"))) != held {
				t.Errorf("the same answers again must change nothing: exit %d\n%s", e.exit, e.errors)
			}
			o.write("south", "federation.yaml", held)
			if one.flags != nil {
				run("south", "", "roster", "sign", "federation.yaml")
				held = string(contents(t, o.at("south", "federation.yaml")))
			}
			o.write(".", "federation.yaml", held)
			o.share()
			o.takePart("y\n", nil)
			o.complete(1)
			for site, n := range one.want {
				if typed[site]++; typed[site] != n { // with heddle take-part
					t.Errorf("%s typed %d commands, must be %d", site, typed[site], n)
				}
				files, err := os.ReadDir(o.at(site, "."))
				if err != nil {
					t.Fatal(err)
				}
				kept := 0
				for _, file := range files {
					if strings.HasSuffix(file.Name(), ".yaml") {
						kept++
					}
				}
				if kept != 2 {
					t.Errorf("%s has %d files besides its tables, must be 2", site, kept)
				}
			}
			if one.flags == nil {
				return
			}
			// A site that comes later is in the next version, which others sign as well.
			o.write("north", "federation.yaml", held)
			o.write("east", "east-patients.csv", string(contents(t, o.at("south", "south-patients.csv"))))
			east := run("east", "", "init", mailed.FindString(run("north", "", "invite", "east")))
			run("north", east, "invite")
			later := string(contents(t, o.at("north", "federation.yaml")))
			if !strings.Contains(later, "serial: 2\n") || !strings.Contains(later, "name: east\n") ||
				strings.Count(later, "- by: ") != 1 {
				t.Errorf("the next version must have east, signed by north:\n%s", later)
			}
			// The daemon of a site needs an approval, whose policy is site.yaml.
			if e := o.run("north", "", "approve", "--plan", "federation.yaml", "--policy", "site.yaml", "--shard",
				"state/run-1/part/part-0", "--yes"); e.exit != 2 || !strings.Contains(e.errors, "has 4 members") {
				t.Errorf("a part of 3: exit %d\n%s", e.exit, e.errors)
			}
			o.write("north", "federation.yaml", held)
			run("north", "", "approve", "--plan", "federation.yaml", "--policy", "site.yaml", "--shard",
				"state/run-1/part/part-0", "--yes")
		})
	}
}

// TestInvitePlanned: a site that heddle plan has made the only member of an unsigned federation.yaml invites others; an
// answer for another federation is refused.
func TestInvitePlanned(t *testing.T) {
	t.Parallel()
	o := rawSites(t)
	run := func(site, input string, args ...string) ended {
		e := o.run(site, input, args...)
		if e.exit != 0 {
			t.Fatalf("%s %.40q: exit %d\n%s", site, args, e.exit, e.errors)
		}
		return e
	}
	member := strings.TrimSpace(run("north", "", "init", "north", "127.0.0.1:4001").out)
	elsewhere := run("north", "", "invite", "west", "--federation", "elsewhere").out
	run("north", "", "plan", "--federation", "tumour-registry", member, "--out", "federation.yaml")
	answer := run("south", "", "init", mailed.FindString(run("north", "", "invite", "south").out)).out
	run("north", answer, "invite", "south")
	held := string(contents(t, o.at("north", "federation.yaml")))
	if !strings.Contains(held, "serial: 1\n") || !strings.Contains(held, "name: south") {
		t.Errorf("south must be in the first version\n%s", held)
	}
	answer = run("west", "", "init", mailed.FindString(elsewhere)).out
	e := o.run("north", answer, "invite", "west")
	if want := `west must answer for federation "tumour-registry"`; e.exit != 2 || !strings.Contains(e.errors, want) {
		t.Errorf("exit %d, must be 2 with %q\n%s", e.exit, want, e.errors)
	}
}

// TestInviteFaults: what is wrong with a pasted line is named, and federation.yaml stays as it is.
func TestInviteFaults(t *testing.T) {
	t.Parallel()
	o := rawSites(t)
	line := func(site string, args ...string) string {
		e := o.run(site, "", args...)
		if e.exit != 0 {
			t.Fatalf("%s %.40q: exit %d\n%s", site, args, e.exit, e.errors)
		}
		return mailed.FindString(e.out)
	}
	line("north", "init", "north", "127.0.0.1:4001")
	west := strings.TrimSpace(o.run("west", "", "init", "west").out)
	invitation := line("north", "invite", "south")
	other := line("west", "invite", "south", "--federation", "elsewhere")
	answer := line("south", "init", invitation)
	for name, one := range map[string]struct{ site, input, argument, want string }{
		"cut":            {"south", "", invitation[:200], "the line must end with -end"},
		"no start":       {"south", "", invitation[10:], "the line must begin with heddle-invitation-"},
		"words":          {"south", "", "heddle invite south", "name must be 1 to 63 letters"},
		"letter":         {"south", "", invitation[:100] + "AAAA" + invitation[104:], "changed on its way"},
		"own answer":     {"south", "", answer, "the line must begin with heddle-invitation-"},
		"second":         {"south", "", other, "site.yaml exists"},
		"cut answer":     {"north", answer[:300], "", "the line must end with -end"},
		"changed answer": {"north", answer[:400] + "AAAA" + answer[404:], "", "the line was changed on its way"},
		"no answer":      {"north", "Dear north,", "", "the line must begin with heddle-answer-"},
		"another":        {"west", answer, "", "south answers another site's invitation: one by north"},
	} {
		args := []string{"invite"}
		if one.argument != "" {
			args = []string{"init", one.argument}
		}
		if e := o.run(one.site, one.input, args...); e.exit != 2 || !strings.Contains(e.errors, one.want) {
			t.Errorf("%s: exit %d, must be 2 with %q\n%s", name, e.exit, one.want, e.errors)
		}
	}
	if _, err := os.Stat(o.at("north", "federation.yaml")); err == nil {
		t.Error("no answer was good, and there is federation.yaml")
	}
	if e := o.run("north", answer[:300]+"\n  "+answer[300:]+"\n", "invite", "south"); e.exit != 0 {
		t.Errorf("an answer that a mail has broken into two lines: exit %d\n%s", e.exit, e.errors)
	}
	// Another site's key in the same name, and a file of others.
	again := line("north", "invite", "south")
	o.write("east", "east-patients.csv", string(contents(t, o.at("south", "south-patients.csv"))))
	if e := o.run("north", line("east", "init", again)+"\n", "invite"); e.exit != 2 ||
		!strings.Contains(e.errors, "south must have ID") {
		t.Errorf("another key: exit %d\n%s", e.exit, e.errors)
	}
	own := o.run("south", "", "init", invitation).errors // the answer again, with both IDs
	must(t, "plan", "-o", o.at("south", "federation.yaml"),
		"south="+regexp.MustCompile("12D3KooW[0-9A-Za-z]{44}").FindAllString(own, -1)[1], west+"@127.0.0.2")
	if e := o.run("south", "", "take-part"); e.exit != 2 ||
		!strings.Contains(e.errors, "must have the member that invited") {
		t.Errorf("a file without the inviter: exit %d\n%s", e.exit, e.errors)
	}
}

// TestJoinByFiles: heddle join without flags takes the part that is there by the same two files, and refuses what
// site.yaml does not allow.
func TestJoinByFiles(t *testing.T) {
	t.Parallel()
	o := operate(t, nil)
	o.takePart("y\n", nil)
	for rank, name := range o.names {
		o.write(name, "site.yaml", string(contents(t, o.at(name, "site.yaml")))+
			fmt.Sprintf("part: state/run-1/part/part-%d\n", rank))
	}
	join := func(name string) (int, string, string) {
		e := o.run(name, "", "join")
		return e.exit, e.out, e.errors
	}
	for name, e := range atOnce(o.names, join) {
		if e.exit != 0 {
			t.Fatalf("%s: exit %d\n%s", name, e.exit, e.errors)
		}
		if !bytes.Equal(contents(t, o.at(name, "results/model.safetensors")),
			contents(t, o.at(name, "results/run-1/model.safetensors"))) {
			t.Errorf("%s: the part must give the model of heddle take-part", name)
		}
	}
	if e := o.run("west", "", "policy", "explain", "site.yaml"); e.exit != 0 ||
		!strings.Contains(e.out, "plans of federation (any) that train by class-means") {
		t.Errorf("exit %d\n%s%s", e.exit, e.out, e.errors)
	}
	o.replace("west", "site.yaml", "min_members: 3", "min_members: 4")
	if exit, _, errors := join("west"); exit != 2 || !strings.Contains(errors, "site.yaml does not allow this plan: "+
		"policy.min_members") {
		t.Errorf("exit %d\n%s", exit, errors)
	}
	if e := o.run(".", "", "join"); e.exit != 2 || !strings.Contains(e.errors, "--plan and --shard must be given, or") {
		t.Errorf("without files: exit %d\n%s", e.exit, e.errors)
	}
}
