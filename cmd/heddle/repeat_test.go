package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestRepeat: the settings next to a report repeat the run, to the same model and the same predictions.
func TestRepeat(t *testing.T) {
	t.Parallel()
	data := sites(t)
	for name, args := range map[string][]string{
		"auto": {"--method", "class-means"},
		"layers": {"--method", "layer-wise", "--encoder", "raw", "--decay", "0.005", "--row-norm", "l1",
			"--exchange", "halo", "--keep-last", "--rounds", "4", "--policy", "by-column"},
		"fullbatch": {"--method", "full-batch", "--model", "sage", "--rounds", "3", "--peers", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, again := filepath.Join(dir, "first"), filepath.Join(dir, "again")
			must(t, slices.Concat([]string{"train", "--data", data, "-q", "-o", first, "--seed", "5"}, args)...)
			must(t, "train", "--config", filepath.Join(first, "settings.yaml"), "-q", "-o", again)
			for _, file := range []string{"model.safetensors", "predictions.csv"} {
				if !bytes.Equal(contents(t, filepath.Join(first, file)), contents(t, filepath.Join(again, file))) {
					t.Errorf("%s of the repeated run differs", file)
				}
			}
			page := string(contents(t, filepath.Join(first, "report.html")))
			for _, want := range []string{"--config " + filepath.Join(first, "settings.yaml"), "What left each site",
				"Site by site"} {
				if !strings.Contains(page, want) {
					t.Errorf("the report has no %q", want)
				}
			}
			if predictions := string(contents(t, filepath.Join(first, "predictions.csv"))); strings.Contains(
				predictions, ",site-1,") != (name == "layers") && name != "auto" {
				t.Error("the sites of predictions must have their names, and parts their numbers")
			}
			if named := strings.Contains(page, "site-1"); named != (name == "layers") && name != "auto" {
				t.Errorf("the report has the names of sites: %t", named)
			}
		})
	}
}

// TestRepeatInit: the settings of a run that started from a model file name the file and its digest, and repeat the
// run; with another file, or without it, they do not.
func TestRepeatInit(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	train := func(args ...string) []string {
		return append([]string{"train", "--data", data, "-q", "--method", "full-batch", "--peers", "2", "--rounds",
			"2"}, args...)
	}
	must(t, train("-o", at("old"), "--seed", "1")...)
	must(t, train("-o", at("first"), "--seed", "2", "--init", at("old", "model.safetensors"))...)
	again := []string{"train", "--config", at("first", "settings.yaml"), "-q", "-o", at("again")}
	must(t, again...)
	if !bytes.Equal(contents(t, at("first", "model.safetensors")), contents(t, at("again", "model.safetensors"))) {
		t.Error("the repeated run must make the same model")
	}
	if err := os.WriteFile(at("old", "model.safetensors"), contents(t, at("first", "model.safetensors")),
		0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"must have SHA-256"}, again...)
	if err := os.Remove(at("old", "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"settings.yaml: init_file", "no such file"}, again...)
}

// TestRepeatJoin: the settings next to the reports of all sites are the same, and are a plan that repeats the run.
func TestRepeatJoin(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	run := func(plan, name string) {
		t.Helper()
		done := make(chan string, 2)
		for r := range 2 {
			go func() {
				exit, _, stderr := call(t.Context(),
					c.join(r, plan, "-o", filepath.Join(c.dir, fmt.Sprint(name, r)))...)
				if exit == 0 {
					stderr = ""
				}
				done <- stderr
			}()
		}
		for range 2 {
			if fault := <-done; fault != "" {
				t.Fatal(fault)
			}
		}
	}
	file := func(name string) string { return string(contents(t, filepath.Join(c.dir, name))) }
	run(c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--method", "layer-wise", "--encoder",
		"raw", "--decay", "0.005", "--row-norm", "l1", "--exchange", "halo", "--keep-last", "--secure-sums", "off"),
		"first")
	if file("first0/settings.yaml") != file("first1/settings.yaml") {
		t.Error("the settings of the sites differ")
	}
	for r := range 2 {
		if want := fmt.Sprintf("heddle join --plan %s --shard", filepath.Join(c.dir, fmt.Sprint("first", r),
			"settings.yaml")); !strings.Contains(file(fmt.Sprintf("first%d/report.html", r)), want) {
			t.Errorf("the report of site %d has no %q", r, want)
		}
	}
	run(filepath.Join(c.dir, "first0", "settings.yaml"), "again")
	if file("first0/model.safetensors") != file("again1/model.safetensors") {
		t.Error("the model of the repeated run differs")
	}
}
