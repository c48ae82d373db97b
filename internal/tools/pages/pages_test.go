package pages

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestPagesInABrowser looks at the pages that the program writes, on a phone and on a desk, light and dark, by eye and
// by ear. With HEDDLE_WRITE=1 it makes the pictures of docs/screenshots.
func TestPagesInABrowser(t *testing.T) {
	b := Start(t)
	data, dir := sites(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "train", "--data", data, "--policy", "by-column", "-q", "-o", at("run"))
	must(t, "train", "--data", patients(t, true), "--threshold", "recall@precision=0.7", "--figures-by", "age:40,65",
		"-q", "-o", at("use"))
	must(t, "train", "--data", patients(t, false), "--metric", "accuracy", "-q", "-o", at("useless"))
	must(t, "compare", "--data", data, "--method", "layer-wise", "--rounds", "5", "--seeds", "2", "-q", "-o",
		at("compare"))
	must(t, "predict", "--model", at("run/model.safetensors"), "--data", data, "--out", at("p.csv"), "--report",
		at("predictions.html"))
	must(t, "partition", "--data", data, "--policy", "by-column", "--out", at("parts"), "--report",
		at("partition.html"))
	for _, name := range []string{"run/report.html", "use/report.html", "useless/report.html", "compare/compare.html",
		"predictions.html", "partition.html"} {
		t.Run(name, func(t *testing.T) { b.Check(t, "file://"+at(name), "true") })
	}
	if os.Getenv("HEDDLE_WRITE") != "" {
		shots := filepath.Join(root, "docs", "screenshots")
		b.Screenshots(t, "file://"+at("run/report.html"), "true", filepath.Join(shots, "report"), 1500)
		b.Screenshots(t, "file://"+at("use/report.html"), "true", filepath.Join(shots, "use"), 3000)
		b.Screenshots(t, "file://"+at("useless/report.html"), "true", filepath.Join(shots, "useless"), 1500)
		b.Screenshots(t, "file://"+at("compare/compare.html"), "true", filepath.Join(shots, "compare"), 1500)
	}
}

// TestLivePageInABrowser looks at the live page while a site waits for another one, and while they train. With
// HEDDLE_WRITE=1 it makes the pictures of docs/screenshots.
func TestLivePageInABrowser(t *testing.T) {
	b := Start(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--policy", "by-column", "--out", at("parts"))
	plan := []string{"plan", "--out", at("plan.yaml"), "--port", fmt.Sprint(testenv.FreePorts(t, 3)), "--method",
		"layer-wise", "--rounds", "100000", "--patience", "0", "--hidden", "4"}
	for r := range 3 {
		plan = append(plan, fmt.Sprintf("site-%d=%s@127.0.0.1", r,
			strings.TrimSpace(must(t, "init", "--identity", at(fmt.Sprint("key-", r))))))
	}
	must(t, plan...)
	address := "127.0.0.1:" + fmt.Sprint(testenv.FreePorts(t, 1))
	url := "http://" + address
	join := func(r int, more ...string) {
		start(t, append([]string{"join", "-q", "--plan", at("plan.yaml"), "--identity", at(fmt.Sprint("key-", r)),
			"--shard", at(fmt.Sprint("parts/part-", r)), "--out", at(fmt.Sprint("out-", r)), "--wait", "5m"},
			more...)...)
	}
	join(0, "--http", address, "--audit", at("audit"))
	join(1)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get(url + "/healthz"); err == nil {
			answer.Body.Close()
			break
		} else if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
	live := `document.getElementById("link").textContent == "Live."`
	b.Check(t, url, live+` && document.querySelector("main .lead").textContent.startsWith("Waiting")`)
	join(2)
	trains := live + ` && [...document.querySelectorAll("h2")].some(h => h.textContent == "Learning curves")` +
		` && document.querySelectorAll("main .charts svg").length >= 4` // the map, two curves, bytes
	b.Check(t, url, trains)
	const since = `( since [^;]* UTC)?`
	want := regexp.MustCompile("^site-0is this site; site-1is connected" + since + "; site-2is connected" + since + "$")
	if rows := b.Texts(t, url, trains, `[aria-label="Sites"] tbody tr`); !want.MatchString(strings.Join(rows, "; ")) {
		t.Errorf("the federation is %q", rows)
	}
	if os.Getenv("HEDDLE_WRITE") != "" {
		b.Screenshots(t, url, trains, filepath.Join(root, "docs", "screenshots", "live"), 1500)
	}
}

// TestSchema: the schema of results is valid JSON Schema, and a run's result follows it. Tests of the program check all
// modes with the part of JSON Schema that it uses.
func TestSchema(t *testing.T) {
	read := func(path string) any {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		object, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("result.schema.json",
		read(filepath.Join(root, "docs/reference/result.schema.json"))); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	must(t, "train", "--data", sites(t), "--transport", "memory", "-q", "--out", out)
	if err := schema.Validate(read(filepath.Join(out, "result.json"))); err != nil {
		t.Error(err)
	}
}
