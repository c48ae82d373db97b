package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRepeat: the settings beside a report repeat the run, to the same model and the same predictions.
func TestRepeat(t *testing.T) {
	data := sites(t)
	for name, args := range map[string][]string{
		"auto":      {"--preset", "auto", "--budget", "3"},
		"layers":    {"--preset", "retexo", "--rounds", "4", "--policy", "by-column"},
		"fullbatch": {"--mode", "fullbatch", "--model", "sage", "--rounds", "3", "--peers", "2"},
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
			for _, want := range []string{"--config " + filepath.Join(first, "settings.yaml"), "What left each site", "Site by site"} {
				if !strings.Contains(page, want) {
					t.Errorf("the report has no %q", want)
				}
			}
			if named := strings.Contains(page, "site-1"); named != (name == "layers") && name != "auto" {
				t.Errorf("the report has the names of sites: %t", named)
			}
		})
	}
}
