package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/retexo"
)

// row is one line of a table: an experiment, and the choices among which validation decides.
type row struct {
	experiment
	grid []func(*experiment) // every variant is tried with tuneSeeds seeds; none: as it is
}

// tuneSeeds is how many seeds (and splits) a variant is tried with; their mean validation metric decides.
const tuneSeeds = 2

type table struct {
	name string
	data []string
	rows func(data string) []row
}

func tables() []table {
	return []table{
		{"citation", []string{"cora", "citeseer"}, citation},
		{"curve", []string{"cora", "citeseer"}, curve},
		{"mlp", []string{"facebook-pages", "github-web-ml"}, withLabels},
		{"all", []string{"amazon-photo", "amazon-computers", "coauthor-cs", "dblp-citation", "facebook-pages", "github-web-ml", "twitch", "tolokers"}, everything},
		{"lastfm", []string{"lastfm-asia"}, featureless},
		{"unlike", []string{"actor", "squirrel-filtered", "chameleon-filtered"}, heterophilous},
		{"attention", []string{"coauthor-cs", "amazon-photo", "amazon-computers"}, attention},
	}
}

func tableNames() (names []string) {
	for _, t := range tables() {
		names = append(names, t.name)
	}
	return names
}

func printTable(ctx context.Context, name, only, part, root string, seeds int) error {
	all := tables()
	i := slices.IndexFunc(all, func(t table) bool { return t.name == name })
	if i < 0 {
		return fmt.Errorf("no table %q, want one of %s", name, strings.Join(tableNames(), ", "))
	}
	fmt.Println("| data set | what | test | validation | after each stage | halo MB | updates MB | runs |")
	fmt.Println("| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |")
	var settings []string
	for _, data := range all[i].data {
		if only != "" && data != only {
			continue
		}
		dir := filepath.Join(root, data)
		for _, r := range all[i].rows(data) {
			if !strings.Contains(r.Name, part) {
				continue
			}
			r.Data = data
			e, err := r.tuned(ctx, dir)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", data, r.Name, err)
			}
			runs := seeds
			if splits, err := countSplits(dir); err != nil {
				return err
			} else if splits == 5 { // the large sets come with five splits: one run each
				runs = min(runs, 5)
			}
			s, err := e.run(ctx, dir, runs)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", data, r.Name, err)
			}
			fmt.Println(s.line())
			settings = append(settings, fmt.Sprintf("- %s, %s: `%s`", data, r.Name, e.setting()))
		}
	}
	fmt.Printf("\n<details><summary>the settings that validation chose</summary>\n\n%s\n\n</details>\n", strings.Join(settings, "\n"))
	return nil
}

// tuned returns the variant with the best mean validation metric.
func (r row) tuned(ctx context.Context, dir string) (experiment, error) {
	if len(r.grid) == 0 {
		return r.experiment, nil
	}
	var best experiment
	top := -1.0
	for _, change := range r.grid {
		e := r.experiment
		change(&e)
		s, err := e.run(ctx, dir, tuneSeeds)
		if err != nil {
			return best, err
		}
		_, _, val := s.final()
		fmt.Fprintf(os.Stderr, "  %s, %s: validation %.2f with %s\n", r.Data, r.Name, 100*val, e.setting())
		if val > top {
			best, top = e, val
		}
	}
	return best, nil
}

// setting says what the experiment's flags are.
func (e experiment) setting() string {
	s := fmt.Sprintf("-mode %s -model %s -encoder %s -layers %d -hidden %d -hops %d -solver %s", e.Mode, e.Model, e.Encoder, e.Layers, e.Hidden, e.Hops, e.Solver)
	if e.Solver != "ridge" {
		s += fmt.Sprintf(" -lr %g -decay %g -dropout %g -rounds %d", e.LR, e.Decay, e.Dropout, e.Rounds)
	}
	if e.AttentionDropout > 0 {
		s += fmt.Sprintf(" -attention-dropout %g", e.AttentionDropout)
	}
	if e.Carry != "hidden" {
		s += " -carry " + e.Carry
	}
	if e.Mode == "retexo" {
		s += " -peers " + fmt.Sprint(e.Peers) + " -policy " + e.Policy
	}
	if e.Local > 1 {
		s += fmt.Sprintf(" -local %d", e.Local)
	}
	if e.Metric != "accuracy" {
		s += " -metric " + e.Metric
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{e.UnitSum, "unit-sum"}, {e.Residual, "residual"}, {e.Norm, "norm"}, {e.Balanced, "balanced"}} {
		if f.on {
			s += " -" + f.name
		}
	}
	return s
}

// line is the summary's line of a table.
func (s summary) line() string {
	mean, dev, val := s.final()
	halo, reduce, _ := s.bytes()
	var stages []string
	for _, v := range s.stages() {
		stages = append(stages, fmt.Sprintf("%.1f", 100*v))
	}
	return fmt.Sprintf("| %s | %s | %.2f ± %.2f | %.2f | %s | %.2f | %.2f | %d |", s.Data, s.Name, 100*mean, 100*dev, 100*val,
		strings.Join(stages, " / "), halo/1e6, reduce/1e6, len(s.runs))
}

// base returns an experiment of this mode and model with the defaults of the program.
func base(name, mode, model string) experiment {
	e := experiment{Name: name, Mode: mode, Peers: 4, Policy: "random", Metric: "accuracy", Rounds: 200, Local: 1, Every: 1,
		Solver: "adam", LR: 0.01, Decay: 5e-4, Passes: 1,
		Plan: retexo.Plan{Model: model, Encoder: "raw", Carry: "hidden", Layers: 2, Hidden: 64, Hops: 1, Heads: 8, Dropout: 0.5}}
	if model == "gat" {
		e.LR, e.Dropout, e.AttentionDropout = 0.005, 0.6, 0.6
	}
	return e
}

func each(change ...func(*experiment)) []func(*experiment) { return change }

// cross returns every pair of changes.
func cross(a, b []func(*experiment)) (all []func(*experiment)) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, func(e *experiment) { x(e); y(e) })
		}
	}
	return all
}

func decays(x ...float64) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Decay = v })
	}
	return all
}

func dropouts(x ...float32) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Dropout = v })
	}
	return all
}

func rates(x ...float64) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.LR = v })
	}
	return all
}

func widths(x ...int) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Hidden = v })
	}
	return all
}

func unitSums() []func(*experiment) {
	return each(func(e *experiment) { e.UnitSum = false }, func(e *experiment) { e.UnitSum = true })
}

// frugal is preset frugal: principal components, hops, one linear layer solved in one round.
func frugal(k, hops int) experiment {
	e := base(fmt.Sprintf("layer-wise, pca:%d, %d hops, ridge", k, hops), "retexo", "gcn")
	e.Encoder, e.Layers, e.Hops, e.Solver, e.Dropout, e.UnitSum, e.Hidden = fmt.Sprintf("pca:%d", k), 1, hops, "ridge", 0, true, 1
	return e
}

// reference is Retexo's own setting: raw features, two layers of 256, 200 rounds each, one local step.
func reference(model string) experiment {
	e := base("layer-wise, Retexo's setting, "+model, "retexo", model)
	e.Hidden, e.AttentionDropout = 256, 0
	return e
}

func citation(string) (rows []row) {
	for _, m := range []string{"gcn", "sage", "gat"} {
		e := base("standalone "+m, "standalone", m)
		e.UnitSum = true
		rows = append(rows, row{e, decays(5e-4, 2e-3)})
	}
	for _, m := range []string{"gcn", "sage", "gat"} {
		grid := cross(cross(rates(0.003, 0.01), decays(5e-4, 5e-3)), dropouts(0.3, 0.5))
		e := reference(m)
		e.UnitSum = true
		rows = append(rows, row{e, grid})
	}
	f := frugal(128, 4)
	f.Name = "preset frugal"
	return append(rows, row{experiment: f})
}

func curve(string) (rows []row) {
	for _, k := range []int{16, 32, 64, 96, 128} {
		for _, hops := range []int{2, 4, 5} {
			rows = append(rows, row{experiment: frugal(k, hops)})
		}
	}
	for _, local := range []int{1, 10} {
		e := base(fmt.Sprintf("layer-wise, pca:64, gcn 64, %d local steps", local), "retexo", "gcn")
		e.Encoder, e.UnitSum, e.Local, e.Rounds, e.Dropout = "pca:64", true, local, 200/local, 0.3
		rows = append(rows, row{e, decays(5e-4, 5e-3)})
	}
	return rows
}

func withLabels(string) (rows []row) {
	s := base("standalone gcn", "standalone", "gcn")
	s.Every = 4
	rows = append(rows, row{s, cross(unitSums(), decays(0, 5e-4))})
	for _, m := range []string{"gcn", "sage"} {
		e := base("layer-wise, encoder mlp, "+m, "retexo", m)
		e.Encoder, e.Hidden, e.Rounds, e.Every, e.LR, e.Dropout = "mlp", 128, 150, 4, 0.003, 0.3
		rows = append(rows, row{e, decays(0, 5e-4)})
	}
	return rows
}

func everything(data string) (rows []row) {
	fix := func(e experiment) experiment {
		if data == "twitch" {
			e.Peers, e.Policy = 7, "by-column"
		}
		e.Every = 4
		if e.Mode == "retexo" {
			e.Rounds = 150
		}
		if data == "tolokers" { // ten dense columns: there is little to overfit, and much to descend
			e.Metric, e.Dropout, e.Decay, e.Rounds = "auc", 0.2, 0, 4*e.Rounds
		}
		return e
	}
	for _, m := range []string{"gcn", "sage"} {
		e := fix(base("standalone "+m, "standalone", m))
		grid := unitSums()
		if data == "tolokers" {
			grid = cross(rates(0.01, 0.03), widths(64, 128))
		}
		rows = append(rows, row{e, grid})
	}
	for _, m := range []string{"gcn", "sage"} {
		for _, encoder := range []string{"raw", "pca", "mlp"} {
			e := base("layer-wise, encoder "+encoder+", "+m, "retexo", m)
			e.Encoder, e.Dropout = encoder, 0.3
			e = fix(e)
			if encoder == "pca" {
				e.Encoder = "pca:128"
				if data == "tolokers" {
					e.Encoder = "pca:10"
				}
			}
			grid := decays(5e-4, 5e-3)
			if data == "tolokers" {
				grid = rates(0.01, 0.03)
			}
			rows = append(rows, row{e, grid})
		}
	}
	f := fix(frugal(128, 4))
	if data == "tolokers" {
		f.Encoder = "pca:10"
	}
	return append(rows, row{f, each(func(e *experiment) { e.Hops = 2 }, func(e *experiment) { e.Hops = 4 })})
}

func featureless(string) (rows []row) {
	for _, m := range []string{"gcn", "sage"} {
		rows = append(rows, row{base("standalone "+m+", identity input", "standalone", m), decays(0, 5e-4)})
		e := base("layer-wise "+m+", identity input", "retexo", m)
		rows = append(rows, row{e, decays(0, 5e-4)})
	}
	return rows
}

// heterophilous is of graphs whose neighbours are mostly of another class.
func heterophilous(string) (rows []row) {
	for _, m := range []string{"gcn", "sage", "gat"} {
		e := base("standalone "+m, "standalone", m)
		e.Every = 2
		plain := func(*experiment) {}
		normed := func(e *experiment) { e.Residual, e.Norm = true, true } // Platonov et al., ICLR 2023
		rows = append(rows, row{e, cross(each(plain, normed), decays(5e-4, 5e-3))})
	}
	return rows
}

// attention is what the table of eight data sets leaves out.
func attention(string) []row {
	e := base("standalone gat", "standalone", "gat")
	e.Every = 4
	return []row{{e, unitSums()}}
}
