package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

const hospitalTables = "../../examples/hospitals/sites"

// threeSites writes keys NAME.key and plan.yaml of three sites into dir.
func threeSites(t *testing.T, dir string) (names []string) {
	t.Helper()
	names = []string{"north", "south", "west"}
	args := []string{"plan", "--method", "layer-wise", "--encoder", "pca:3", "-o", filepath.Join(dir, "plan.yaml"),
		"--port", fmt.Sprint(testenv.FreePorts(t, 2))}
	for k, name := range names {
		id := strings.TrimSpace(must(t, "init", "--identity", filepath.Join(dir, name+".key")))
		if k < 2 { // the third dials out only
			id += "@127.0.0.1"
		}
		args = append(args, name+"="+id)
	}
	must(t, args...)
	return names
}

// ended is how a command ended at one site.
type ended struct {
	exit        int
	out, errors string
}

// atOnce calls run for all sites at once.
func atOnce(names []string, run func(name string) (int, string, string)) map[string]ended {
	ends, done := map[string]ended{}, make(chan func(), len(names))
	for _, name := range names {
		go func() {
			var e ended
			e.exit, e.out, e.errors = run(name)
			done <- func() { ends[name] = e }
		}()
	}
	for range names {
		(<-done)()
	}
	return ends
}

// TestMeetTypes: three sites, one of which is a pharmacy without patients, make their parts from tables of
// several types, and the parts train together.
func TestMeetTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	names := threeSites(t, dir)
	files := map[string]string{"west-drug": "id,dose\n", "north-patient": "id,age,outcome\n",
		"south-patient": "id,age,outcome\n", "north-takes": "patient,drug,at,days\n",
		"south-takes": "patient,drug,at,days\n"}
	for i := range 8 {
		files["west-drug"] += fmt.Sprintf("d%d,%d\n", i, 10*i)
	}
	for i := range 60 {
		site := names[i%2]
		files[site+"-patient"] += fmt.Sprintf("p%d,%d,%s\n", i, 20+i%50, []string{"ill", "well"}[i/2%2])
		for k := range 2 { // the ill take others than the well do
			files[site+"-takes"] += fmt.Sprintf("p%d,d%d,west,%d\n", i, (i+k)%4+4*(i/2%2), i%5)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(at("%s.csv", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string) (int, string, string) {
		args := []string{"match", "--plan", at("plan.yaml"), "--identity", at("%s.key", name), "--wait", "30s", "--out",
			at("%s", name)}
		if name == "west" {
			return call(t.Context(), append(args, "--nodes", "drug="+at("west-drug.csv"))...)
		}
		return call(t.Context(), append(args, "--nodes", "patient="+at("%s-patient.csv", name), "--edges",
			"patient-takes-drug="+at("%s-takes.csv", name), "--label-column", "outcome", "--target-site-column", "at",
			"--edge-columns", "days")...)
	}
	for name, e := range atOnce(names, run) {
		line := map[bool]string{true: "type drug: 8 nodes, 1 feature",
			false: "relation patient-takes-drug: 0 listed"}[name == "west"]
		if name != "west" {
			line = "type patient: 30 nodes, 1 feature"
		}
		if e.exit != 0 || !strings.Contains(e.out, "of 68 nodes") || !strings.Contains(e.out, line) ||
			!strings.Contains(e.out, "edge column patient-takes-drug.days  numeric") {
			t.Fatalf("%s: exit %d\n%s%s", name, e.exit, e.out, e.errors)
		}
		if name == "west" && strings.Contains(e.out, "warning: class") {
			t.Errorf("a site without patients is warned of their classes:\n%s", e.out)
		}
		if text := must(t, "inspect", at("%s", name)); !strings.Contains(text, line) {
			t.Errorf("%s: inspect says\n%s", name, text)
		}
	}
	gather(t, at("parts"), at("north"), at("south"), at("west"))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--method", "full-batch", "--model", "rgcn",
		"--rounds", "60", "--seed", "1", "-q", "--out", at("together"), "--json", at("together/result.json"))
	if r := figures(t, at("together/result.json")); r.Bytes.Halo == 0 || !(*r.Test > 0.8) {
		t.Errorf("accuracy %v with %d bytes of halo rows", *r.Test, r.Bytes.Halo)
	}
}

// TestMeet: sites make their parts from their own tables, and the parts form one partition that
// trains.
func TestMeet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	names := threeSites(t, dir)
	meet := func(name string, more ...string) (int, string, string) {
		args := []string{"match", "--plan", at("plan.yaml"), "--identity", at("%s.key", name), "--source-column",
			"patient", "--target-column", "contact", "--target-site-column", "hospital", "--label-column", "readmitted",
			"--wait", "30s"}
		for flag, file := range map[string]string{"--nodes": "-patients.csv", "--edges": "-contacts.csv"} {
			if !slices.Contains(more, flag) { // each is given once
				args = append(args, flag, filepath.Join(hospitalTables, name+file))
			}
		}
		return call(t.Context(), append(args, more...)...)
	}
	all := func(more func(name string) []string) map[string]ended {
		return atOnce(names, func(name string) (int, string, string) { return meet(name, more(name)...) })
	}
	for name, e := range all(func(name string) []string {
		return []string{"--out", at("%s", name), "--audit", at("%s.log", name)}
	}) {
		if e.exit != 0 || !strings.Contains(e.out, "of 360 nodes") {
			t.Fatalf("%s: exit %d\n%s%s", name, e.exit, e.out, e.errors)
		}
		must(t, "audit", "verify", at("%s.log", name))
		_, facts, _ := strings.Cut(e.out, "-patients.csv: ")
		facts, _, _ = strings.Cut(facts, "\n  "+map[bool]string{true: "south", false: "north"}[name == "north"]+": ")
		part := at("%s/part-%d", name, slices.Index(names, name))
		moved := filepath.Join(t.TempDir(), filepath.Base(part)) // without import.json
		for from, to := range map[string]string{part: moved,
			at("%s/manifest.json", name): filepath.Join(filepath.Dir(moved), "manifest.json")} {
			if err := os.WriteFile(to, contents(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{part, at("%s", name), moved} {
			if text := must(t, "inspect", path); !strings.Contains(text, facts) ||
				!strings.Contains(facts, "nodes of each site: north 157, south 122, west 81") {
				t.Errorf("%s: inspect says\n%s\nmeet said\n%s", name, text, facts)
			}
		}
	}
	gather(t, at("parts"), at("north"), at("south"), at("west"))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--seed", "1", "-q", "--out", at("together"),
		"--json", at("together/result.json"))
	if r := figures(t, at("together/result.json")); r.Bytes.Halo == 0 || !(*r.Test > 0.8) {
		t.Errorf("accuracy %v with %d bytes of halo rows", *r.Test, r.Bytes.Halo)
	}

	// A site finds faults of its own tables before it waits for the others.
	for _, wrong := range [][]string{{"--nodes", at("gone.csv")}, {"--edges", at("gone.csv")},
		{"--target-column", "gone.csv"}, {"--out", at("west")}} {
		if exit, _, errors := meet("west", append([]string{"--out", at("never")}, wrong...)...); exit != 2 ||
			!strings.Contains(errors, wrong[1]) || strings.Contains(errors, "waiting") {
			t.Errorf("%v: exit %d, %s", wrong, exit, errors)
		}
	}

	// The others learn at once that it cannot take part, and a site without labels needs no column of them.
	for name, e := range all(func(name string) []string {
		return []string{"--out", at("%s-declined", name), "--id-column",
			map[bool]string{true: "gone", false: "id"}[name == "west"]}
	}) {
		want := map[bool]string{true: `no column "gone"`, false: "(west) cannot take part"}[name == "west"]
		if e.exit != 2 || !strings.Contains(e.errors, want) {
			t.Errorf("%s: exit %d, %s, must be %s", name, e.exit, e.errors, want)
		}
	}
	if err := os.WriteFile(at("unlabelled.csv"), regexp.MustCompile(",[^,\n]*\n").ReplaceAll(
		contents(t, filepath.Join(hospitalTables, "west-patients.csv")), []byte("\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, e := range all(func(name string) []string {
		if more := []string{"--out", at("%s-unlabelled", name)}; name == "west" {
			return append(more, "--nodes", at("unlabelled.csv"), "--label-column", "")
		}
		return []string{"--out", at("%s-unlabelled", name)}
	}) {
		if e.exit != 0 || !strings.Contains(e.out, "2 classes") {
			t.Errorf("%s: exit %d, %s%s", name, e.exit, e.out, e.errors)
		}
	}

	// A policy bounds which texts are sent.
	if err := os.WriteFile(at("policy.yaml"), []byte("federation: f\nmethods: [class-means]\nmin_members: 2\n"+
		"categories: [sex]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, _, errors := meet("west", "--out", at("never"), "--policy", at("policy.yaml")); exit != 2 ||
		!strings.Contains(errors,
			`policy.yaml: policy.categories: the texts of column "ward" must not leave this site`) {
		t.Errorf("exit %d, %s", exit, errors)
	}

	// Only the site at fault gets the details; the others only learn which site it is.
	for name, e := range all(func(name string) []string {
		more := []string{"--out", at("%s-again", name)}
		if name == "west" {
			contacts := append(contents(t, filepath.Join(hospitalTables, "west-contacts.csv")),
				"p007,nobody,north\n"...)
			if err := os.WriteFile(at("contacts.csv"), contacts, 0o600); err != nil {
				t.Error(err)
			}
			more = append(more, "--edges", at("contacts.csv"))
		}
		return more
	}) {
		want := "west"
		if name == "west" {
			want = `contacts.csv: line 194: north has no node "nobody"`
		}
		if e.exit != map[bool]int{true: 2, false: 1}[name == "west"] || !strings.Contains(e.errors, want) {
			t.Errorf("%s: exit %d, %s, must be %s", name, e.exit, e.errors, want)
		}
	}
}

// TestPlantedText: a text that nine patients of one site have is in no file of another site and in nothing that it
// prints, after it met, joined, met like the model and predicted; nor is a planted class.
func TestPlantedText(t *testing.T) {
	t.Parallel()
	const planted = "Ann Example 0176 555"
	dir := t.TempDir()
	at := func(name string, more ...any) string { return filepath.Join(dir, fmt.Sprintf(name, more...)) }
	names := threeSites(t, dir)
	plant := func(column int) string {
		lines := strings.Split(string(contents(t, filepath.Join(hospitalTables, "south-patients.csv"))), "\n")
		for k := 1; k < 10; k++ {
			cells := strings.Split(lines[k], ",")
			cells[column] = planted
			lines[k] = strings.Join(cells, ",")
		}
		path := at("south-%d.csv", column)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ward, class := plant(3), plant(4)
	step := func(nodes string, exit int, args func(name string) []string) {
		t.Helper()
		for name, e := range atOnce(names, func(name string) (int, string, string) {
			own := args(name)
			all := slices.Concat(own[:1], []string{"--plan", at("plan.yaml"), "--identity", at("%s.key", name),
				"--wait", "30s"}, own[1:])
			if all[0] == "match" {
				file := nodes
				if name != "south" {
					file = filepath.Join(hospitalTables, name+"-patients.csv")
				}
				all = append(all, "--nodes", file, "--edges", filepath.Join(hospitalTables, name+"-contacts.csv"),
					"--target-site-column", "hospital")
			}
			return call(t.Context(), all...)
		}) {
			if name == "south" {
				continue
			}
			if e.exit != exit || strings.Contains(e.out+e.errors, planted) {
				t.Errorf("%s: exit %d\n%s%s", name, e.exit, e.out, e.errors)
			}
			if err := filepath.WalkDir(at("%s", name), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && bytes.Contains(contents(t, path), []byte(planted)) {
					t.Errorf("%s has the planted text", path)
				}
				return err
			}); err != nil && exit == 0 {
				t.Error(err)
			}
		}
	}
	meet := func(out string) func(name string) []string {
		return func(name string) []string {
			return []string{"match", "--source-column", "patient", "--target-column", "contact",
				"--label-column", "readmitted", "--out", at("%s/%s", name, out)}
		}
	}
	step(class, 1, meet("class"))
	step(ward, 0, meet("part"))
	step("", 0, func(name string) []string {
		part := at("%s/part/part-%d", name, slices.Index(names, name))
		return []string{"join", "--shard", part, "--out", at("%s/run", name)}
	})
	model := at("south/run/model.safetensors")
	info, err := os.Stat(model)
	if err != nil || info.Mode().Perm() != 0o600 || bytes.Contains(contents(t, model), []byte(planted)) {
		t.Errorf("%v %v, or it has the planted text", info, err)
	}
	like := func(out string) func(name string) []string {
		return func(name string) []string {
			return []string{"match", "--like", model, "--out", at("%s/%s", name, out), "--wait", "30s"}
		}
	}
	step(ward, 0, like("again"))
	step("", 0, func(name string) []string {
		part := at("%s/again/part-%d", name, slices.Index(names, name))
		return []string{"predict", "--model", at("%s/run/model.safetensors", name), "--shard", part,
			"--out", at("%s/predictions.csv", name)}
	})
	for _, name := range names { // the parts have another random split
		was := string(contents(t, at("%s/run/predictions.csv", name)))
		is := string(contents(t, at("%s/predictions.csv", name)))
		row := regexp.MustCompile(`(?m)^([^,]+),[^,]+,[^,]+,(train|val|test),`)
		had, has := row.FindAllStringSubmatch(was, -1), map[string]string{}
		for _, one := range row.FindAllStringSubmatch(is, -1) {
			has[one[1]] = one[2]
		}
		for _, one := range had {
			if has[one[1]] != one[2] {
				t.Errorf("%s is marked %q, must be %q as in the run", one[1], has[one[1]], one[2])
			}
		}
		if len(had) < 50 {
			t.Errorf("%s: %d nodes have a split in the run's predictions, must be most", name, len(had))
		}
	}
	step(class, 0, like("rare")) // a class that the model lacks is no label

	text := must(t, "match", "--plan", at("plan.yaml"), "--identity", at("south.key"), "--nodes", ward,
		"--label-column", "readmitted", "--out", at("dry"), "--dry-run")
	if !strings.Contains(text, `texts of ward: ["medicine" "outpatient" "surgery"]; `+
		"not sent: 1 that fewer than 10 nodes have") {
		t.Errorf("page is\n%s", text)
	}
}

// gather copies the parts that peers wrote to separate directories into one. All have the same
// manifest.
func gather(t *testing.T, to string, dirs ...string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := contents(t, filepath.Join(dirs[0], "manifest.json"))
	for k, dir := range dirs {
		if !bytes.Equal(contents(t, filepath.Join(dir, "manifest.json")), manifest) {
			t.Errorf("%s has another manifest", dir)
		}
		for _, file := range []string{fmt.Sprintf("part-%d", k), "manifest.json"} {
			if err := os.WriteFile(filepath.Join(to, file), contents(t, filepath.Join(dir, file)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
