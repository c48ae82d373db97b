package main

import (
	"bytes"
	"encoding/csv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/plan"
)

// TestPredictionsAreThoseOfTheMetric: with every method and every model that it trains, the lines of predictions.csv
// give the same test and validation accuracy as the run reports. The short form tries every model with one method only.
func TestPredictionsAreThoseOfTheMetric(t *testing.T) {
	every := testenv.LongForm(t)
	t.Parallel()
	var flags [][]string
	for _, method := range choices(t, "method") {
		for _, model := range choices(t, "model") {
			of := []string{"--method", method, "--model", model, "--rounds", "3", "--hidden", "16"}
			switch method {
			case plan.ClassMeans: // has no convolution
				continue
			case plan.LayerWise, plan.MiniBatch:
				if !every && !slices.Contains([]string{"gcn", "sage-pool", "gat"}, model) {
					continue
				}
			case plan.FullBatch:
				flags = append(flags, append(slices.Clone(of), "--peers", "1"))
			}
			flags = append(flags, of)
		}
	}
	for _, more := range []string{"--method class-means", "--method class-means --inductive",
		"--method class-means --class-rounds 1 --leave-one-out true", "--method layer-wise --rounds 5 --inductive",
		"--method layer-wise --rounds 5 --keep-last", "--method layer-wise --rounds 5 --encoder mlp --hidden 8",
		"--method full-batch --rounds 5 --inductive", "--method layer-wise --rounds 5 --local-steps 3"} {
		flags = append(flags, strings.Fields(more))
	}
	for _, of := range flags {
		t.Run(strings.Join(of, " "), func(t *testing.T) {
			t.Parallel()
			out, data := filepath.Join(t.TempDir(), "out"), sites
			if slices.ContainsFunc(of,
				func(flag string) bool { return slices.Contains([]string{"rgcn", "rsage", "rgat"}, flag) }) {
				data = typedSites
			}
			args := append([]string{"train", "--data", data(t), "--transport", "memory", "--out", out}, of...)
			if exit, _, text := call(t.Context(), args...); exit == 2 && strings.Contains(text, "model must be") &&
				!slices.Contains(of, "gcn") {
				return // the method trains other models
			} else if exit != 0 {
				t.Fatalf("exit %d: %s", exit, text)
			}
			result := figures(t, filepath.Join(out, "result.json"))
			right, all := map[string]float64{}, map[string]float64{}
			for _, line := range lines(t, filepath.Join(out, "predictions.csv")) {
				if line["label"] == "" {
					continue
				}
				if all[line["split"]]++; line["label"] == line["class"] {
					right[line["split"]]++
				}
			}
			for split, reported := range map[string]*float64{"test": result.Test, "val": result.Val} {
				if all[split] == 0 || right[split]/all[split] != *reported {
					t.Errorf("%v of %v %s nodes are right, must be the reported %v of them", right[split], all[split],
						split, *reported)
				}
			}
		})
	}
}

// choices returns what a setting may be.
func choices(t *testing.T, name string) []string {
	setting, ok := plan.Lookup("", name)
	if !ok || setting.Choices == nil {
		t.Fatalf("the plan must list the choices of %s", name)
	}
	return setting.Choices
}

// lines returns the lines of a CSV file by column.
func lines(t *testing.T, path string) (all []map[string]string) {
	rows, err := csv.NewReader(bytes.NewReader(contents(t, path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		line := map[string]string{}
		for k, name := range rows[0] {
			line[name] = row[k]
		}
		all = append(all, line)
	}
	return all
}
