package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/links"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/dp"
	trainlinks "github.com/heddle-gnn/heddle/train/links"
)

// ResultFile is the object of --json. Fields are added and never removed.
type ResultFile struct {
	Method  string   `json:"method"`
	Model   string   `json:"model"`
	Encoder string   `json:"encoder"`
	Dataset string   `json:"dataset"`
	Peers   int      `json:"peers"`
	Seed    uint64   `json:"seed"`
	Test    *float64 `json:"test"` // the metric named below; null: no test nodes
	Val     *float64 `json:"val"`
	Seconds float64  `json:"seconds"` // in sessions, from the first connection to the last parameter
	Rounds  int      `json:"rounds"`
	Bytes   struct { // sent by the peers of this process together
		Halo    int64 `json:"halo"`
		Reduce  int64 `json:"reduce"`
		Control int64 `json:"control"`
		Wire    int64 `json:"wire"` // as the network carried them; 0 in memory
	} `json:"bytes"`
	AllBytes *allBytes  `json:"bytes_all_peers"` // null: the figures were not summed
	PeakRSS  []int64    `json:"peak_rss_bytes"`  // of this process
	Loss     []*float64 `json:"loss"`            // of each round, stage by stage

	Metric   string        `json:"metric"`
	Positive string        `json:"positive,omitempty"` // of two classes, the one that AUC, AP and the threshold are of
	Stages   []stageResult `json:"stages"`
	Kernels  string        `json:"kernels"`
	Links    []prediction  `json:"predicted,omitempty"` // duration of the run over other connections

	Messages int64   `json:"messages"`       // sent by the peers of this process together
	Trips    int64   `json:"trips"`          // messages that followed one another
	Waited   float64 `json:"seconds_waited"` // of the seconds, in operations with other peers

	Sums    plan.SumTerms `json:"sums"`              // who sees what of the sums over the peers
	Privacy *dp.Statement `json:"privacy,omitempty"` // what the run kept private, and how

	Figures  *heddle.Figures    `json:"figures"`         // null: a peer failed before they were summed
	Warnings []string           `json:"warnings"`        // what whoever reads the figures must know first
	Ranks    *trainlinks.Ranked `json:"ranks,omitempty"` // of task links, in place of figures
	Data     dataFacts          `json:"data"`
	Versions versions           `json:"versions"`
	Date     time.Time          `json:"date"` // when this was written

	Runs     []oneRun  `json:"runs,omitempty"` // of --seeds
	TestRuns *overRuns `json:"test_over_runs,omitempty"`
	ValRuns  *overRuns `json:"val_over_runs,omitempty"`

	Fetched *remoteFeatures `json:"remote_features,omitempty"` // of method mini-batch over several peers
}

// remoteFeatures is how peer 0, or the one of this process, came to features of other peers' nodes.
type remoteFeatures struct {
	Group   int     `json:"group"`    // batches whose features were fetched at once, in the end
	Rows    int64   `json:"rows"`     // that groups of batches read, each once a group
	Cached  int64   `json:"cached"`   // of them, those in the cache
	HitRate float64 `json:"hit_rate"` // of the cache
}

type stageResult struct {
	Name      string   `json:"name"`
	BestRound int      `json:"best_round"`
	Rounds    int      `json:"rounds"`
	Val       *float64 `json:"val"`
	Test      *float64 `json:"test"`
}

// number returns x for JSON, which has no NaN.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func resultOf(o *heddle.Result, p heddle.Plan, first *shard.Shard) ResultFile {
	r := ResultFile{Method: p.Method, Model: o.Plan.Model, Encoder: o.Plan.Encoder.String(), Dataset: first.Name, Peers: first.Parts,
		Seed: p.Seed, Test: number(o.Test), Val: number(o.Val), Seconds: o.Seconds, Rounds: o.Rounds,
		Metric: string(o.Metric), Positive: o.Card.Positive, Kernels: kernels.Name(), PeakRSS: []int64{},
		Loss: []*float64{}, Links: predictions(o)}
	r.Sums, r.Privacy = o.Sums, o.Privacy
	r.Ranks = o.Links
	r.Figures, r.Warnings, r.Versions, r.Date = o.Figures, append([]string{}, o.Warnings()...), thisVersion(), time.Now().UTC().Truncate(time.Second)
	r.Data, r.AllBytes = factsOf(o, first), allBytesOf(o)
	sum := o.Total()
	r.Messages, r.Trips, r.Waited = sum.Messages, o.Load.Trips, o.Waited
	r.Bytes.Halo, r.Bytes.Reduce, r.Bytes.Control, r.Bytes.Wire = sum.Halo, sum.Reduce, sum.Control, sum.Wire
	if peak := cli.PeakMemory(); peak > 0 {
		r.PeakRSS = append(r.PeakRSS, peak)
	}
	if f := o.Fetched; f.Rows > 0 {
		r.Fetched = &remoteFeatures{f.Group, f.Rows, f.Cached, float64(f.Cached) / float64(f.Rows)}
	}
	for _, st := range o.Stages {
		r.Stages = append(r.Stages, stageResult{st.Name, st.BestRound, len(st.Curve), number(st.Val), number(st.Test)})
		for _, q := range st.Curve {
			r.Loss = append(r.Loss, number(q.Loss))
		}
	}
	return r
}

// output is where a run's model, report and figures go.
type output struct {
	dir    string
	rows   string    // file for the nodes' last hidden rows; empty: none
	json   string    // one more file for the figures; empty: none
	runs   []oneRun  // of --seeds, the written one among them
	stdout io.Writer // standard output
}

func (out output) model() string  { return filepath.Join(out.dir, "model.safetensors") }
func (out output) report() string { return filepath.Join(out.dir, "report.html") }

// settings is the file of the settings that trained the model.
func (out output) settings() string { return filepath.Join(out.dir, "settings.yaml") }

// predictions is the file of the predictions for own nodes, csv, npz or parquet.
func (out output) predictions(format string) string {
	return filepath.Join(out.dir, "predictions."+format)
}

// own checks that none of the run's files in dir is a link that leads out of it.
func (out output) own() error {
	return cli.Within(out.dir, "model.safetensors", "report.html", "settings.yaml", "result.json", "checkpoints",
		"predictions.csv", "predictions.npz", "predictions.parquet", "compare.html", "compare.json")
}

// check makes the directories and checks that they are writable, so that a run does not fail at its
// end.
func (out output) check() error {
	return errors.Join(cli.WritableDir(out.dir), out.own(), cli.Writable(out.json), checkEmbeddings(out.rows))
}

// name gives the parts of a local run the names of the sites that they are of.
func name(o *heddle.Result, shards []*shard.Shard, sites []string) {
	if o.Members != nil || len(sites) != len(shards) {
		return
	}
	o.Members = sites
	for k, site := range sites {
		o.Peers[k].Name = site
		if o.Figures != nil {
			o.Figures.Sites[k].Name = site
		}
		if o.Links != nil {
			o.Links.Sites[k].Name = site
		}
	}
}

// write writes the files of a run by p. shards are those of this process; page has what o lacks.
func (out output) write(o *heddle.Result, p heddle.Plan, shards []*shard.Shard, page report.Run) error {
	first := shards[0]
	name(o, shards, page.Names)
	if err := out.own(); err != nil {
		return err
	}
	if err := o.Save(out.model()); err != nil {
		return err
	}
	setting, err := o.Plan.MarshalYAML()
	if err != nil {
		return err
	}
	r := resultOf(o, p, first)
	r.Warnings = append(append([]string{}, page.Data...), r.Warnings...)
	r.runsOf(out.runs)
	page.Result, page.Plan, page.Shards, page.Date = o, p, shards, time.Now()
	page.Settings = string(setting) + page.Settings
	page.Links = predicted(r.Links)
	if o.Members != nil {
		page.Names = o.Members
	}
	if err := errors.Join(
		cli.WriteFile(out.stdout, out.report(), func(w io.Writer) error { return report.Write(w, page) }),
		cli.WriteFile(out.stdout, out.settings(), func(w io.Writer) error { _, err := io.WriteString(w, page.Settings); return err }),
	); err != nil {
		return err
	}
	if all := guessedBy(o, shards); len(all) > 0 {
		names := first.Labels.Names
		if err := errors.Join(
			cli.WriteFile(out.stdout, out.predictions("csv"), func(w io.Writer) error { return writeCSV(w, names, all) }),
			cli.WriteFile(out.stdout, out.predictions("npz"), func(w io.Writer) error { return writeNPZ(w, names, all) }),
			cli.WriteFile(out.stdout, out.predictions("parquet"), func(w io.Writer) error { return writeParquet(w, names, all) }),
			writeEmbeddings(out.rows, all),
		); err != nil {
			return err
		}
	} else if o.Links != nil {
		if err := writeEmbeddings(out.rows, nodesOf(o, shards)); err != nil {
			return err
		}
	}
	for _, path := range []string{filepath.Join(out.dir, "result.json"), out.json} {
		if path == "" {
			continue
		}
		if err := cli.WriteFile(out.stdout, path, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}); err != nil {
			return err
		}
	}
	return nil
}

// print prints the figures of a run, and the files that it wrote. shards are those of this process.
func (out output) print(w io.Writer, o *heddle.Result, shards []*shard.Shard) error {
	sum := o.Total()
	fmt.Fprintf(w, "%s: %s %s test, %s validation, %.1f s\n", shards[0].Name, o.Metric,
		report.Within(o.Metric, o.Test, o.TestBound),
		report.Within(o.Metric, o.Val, o.ValBound), o.Seconds)
	if line := worth(o); line != "" {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "sent: halo %s, reduce %s, control %s", report.Bytes(sum.Halo), report.Bytes(sum.Reduce),
		report.Bytes(sum.Control))
	if sum.Wire > 0 {
		fmt.Fprintf(w, "; on the wire %s", report.Bytes(sum.Wire))
	}
	if o.Privacy != nil {
		fmt.Fprintf(w, "\nprivacy: %s", o.Privacy)
	}
	fmt.Fprintf(w, "\nmodel:  %s\nreport: %s\n", out.model(), out.report())
	if o.Plan.Task.Links() {
		return links.Print(w, o, out.model())
	}
	if len(guessedBy(o, shards)) == 0 {
		_, err := fmt.Fprintln(w, "predictions: none, since this peer received the model from another peer; peer predict --shard computes them")
		return err
	}
	fmt.Fprintf(w, "predictions: %s", out.predictions("csv"))
	if len(shards) == 1 && shards[0].Parts > 1 { // else the figure is the one above
		score, nodes, err := o.Own[0].Score(o.Metric, shards[0].Alone())
		if err != nil {
			return err
		}
		if nodes > 0 {
			fmt.Fprintf(w, ", %s %s of own test nodes (%d)", o.Metric, report.Measure(o.Metric, score), nodes)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
