package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// ResultFile is the object of --json. Fields are added and never removed.
type ResultFile struct {
	Method  string   `json:"method"`
	Model   string   `json:"model"`
	Encoder string   `json:"encoder"` // of the features
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

	Metric   string        `json:"metric"`             // of test and val, such as accuracy
	Positive string        `json:"positive,omitempty"` // of two classes, the one that AUC, AP and the threshold are of
	Stages   []stageResult `json:"stages"`
	Kernels  string        `json:"kernels"`
	Links    []prediction  `json:"predicted,omitempty"` // duration of the run over other connections

	Messages int64   `json:"messages"`       // sent by the peers of this process together
	Trips    int64   `json:"trips"`          // messages that followed one another
	Waited   float64 `json:"seconds_waited"` // of the seconds, in operations with other peers

	Sums    plan.SumTerms  `json:"sums"`              // which party sees what of the sums over the peers
	Privacy *train.Privacy `json:"privacy,omitempty"` // what the run kept private, and how

	Figures  *figures.Figures  `json:"figures"`         // null: a peer failed before they were summed
	Warnings []string          `json:"warnings"`        // what a reader of the figures must know first
	Ranks    *eval.RankedLinks `json:"ranks,omitempty"` // for links, instead of figures
	Data     dataFacts         `json:"data"`
	Versions versions          `json:"versions"`
	Date     time.Time         `json:"date"` // when this was written

	Runs     []RunOfAll `json:"runs,omitempty"` // of --seeds
	TestRuns *overRuns  `json:"test_over_runs,omitempty"`
	ValRuns  *overRuns  `json:"val_over_runs,omitempty"`

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

// Number returns x for JSON, which has no NaN.
func Number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func resultOf(o *heddle.Result, p heddle.Plan, first *shard.Shard) ResultFile {
	r := ResultFile{Method: p.Method, Model: o.Plan.Gradient().Model, Encoder: o.Plan.Encoder().String(),
		Dataset: first.Name,
		Peers:   first.Parts, Seed: p.Seed, Test: Number(o.Test), Val: Number(o.Val), Seconds: o.Seconds,
		Rounds: o.Rounds,
		Metric: string(o.Metric), Positive: o.Card.Positive, Kernels: kernels.Name(), PeakRSS: []int64{},
		Loss: []*float64{}, Links: predictions(o), Sums: o.Sums, Privacy: o.Privacy, Ranks: o.Links, Figures: o.Figures,
		Warnings: append([]string{}, o.Warnings()...), Date: time.Now().UTC().Truncate(time.Second),
		Versions: versions{Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, kernels.Name()},
		Data:     factsOf(o, first), AllBytes: allBytesOf(o)}
	sum := o.Total()
	r.Messages, r.Trips, r.Waited = sum.Messages, o.Load.Trips, o.Waited
	r.Bytes.Halo, r.Bytes.Reduce, r.Bytes.Control, r.Bytes.Wire = sum.Halo, sum.Reduce, sum.Control, sum.Wire
	if peak := PeakMemory(); peak > 0 {
		r.PeakRSS = append(r.PeakRSS, peak)
	}
	if f := o.Fetched; f.Rows > 0 {
		r.Fetched = &remoteFeatures{f.Group, f.Rows, f.Cached, float64(f.Cached) / float64(f.Rows)}
	}
	for _, st := range o.Stages {
		r.Stages = append(r.Stages, stageResult{st.Name, st.BestRound, len(st.Curve), Number(st.Val), Number(st.Test)})
		for _, q := range st.Curve {
			r.Loss = append(r.Loss, Number(q.Loss))
		}
	}
	return r
}

// Pages writes what the program with all commands adds to the files of a run: HTML and Parquet.
type Pages interface {
	WriteRun(io.Writer, RunPage) error
	WriteParquet(w io.Writer, names []string, all []NodePredictions) error
	WriteHidden(io.Writer, []HiddenRows) error
}

// RunPage is what the page of a run shows.
type RunPage struct {
	Result   *heddle.Result
	Plan     heddle.Plan    // on which the sites agreed
	Shards   []*shard.Shard // of this process
	Names    []string       // of all sites by rank (nil = none)
	Date     time.Time      // of its end
	Runs     *Table         // all runs, if this is the one that validates best, or nil
	Links    *Table         // duration of the run over other connections, or nil
	Settings string         // settings that trained the model, as a file
	Command  string         // that repeats the run
	Data     []string       // warnings of the data
}

// Output is where a run's model, report and figures go.
type Output struct {
	Dir    string
	Rows   string     // file for the nodes' last hidden rows (empty = none)
	JSON   string     // one more file for the figures (empty = none)
	Runs   []RunOfAll // of --seeds, the written one among them
	Stdout io.Writer  // standard output
	Pages  Pages      // nil = neither HTML nor Parquet
	Again  bool       // the files of nodes are written
}

// Bind adds the flags of the files besides the directory.
func (out *Output) Bind(f *pflag.FlagSet) {
	f.StringVar(&out.Rows, "embeddings", "", EmbeddingsHelp)
	f.StringVar(&out.JSON, "json", "", "JSON file for the results (- = standard output)")
}

func (out Output) model() string  { return filepath.Join(out.Dir, "model.safetensors") }
func (out Output) report() string { return filepath.Join(out.Dir, "report.html") }

// Settings is the file of the settings that trained the model.
func (out Output) Settings() string { return filepath.Join(out.Dir, "settings.yaml") }

// predictions is the file of the predictions for own nodes, csv, npz or parquet.
func (out Output) predictions(format string) string {
	return filepath.Join(out.Dir, "predictions."+format)
}

// own checks that none of the run's files in dir is a link that leads out of it.
func (out Output) own() error {
	return KeepsWithin(out.Dir, "model.safetensors", "report.html", "settings.yaml", "result.json", "checkpoints",
		"predictions.csv", "predictions.npz", "predictions.parquet", "compare.html", "compare.json")
}

// Check makes the directories and checks that they are writable, so that a run does not fail at its
// end.
func (out Output) Check() error {
	return cmp.Or(WritableDir(out.Dir),
		errors.Join(out.own(), Writable(out.JSON), CheckEmbeddings(out.Rows, out.Pages)))
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

// Write writes the files of a run by p. shards are the parts of this process; page has what o lacks.
func (out Output) Write(o *heddle.Result, p heddle.Plan, shards []*shard.Shard, page RunPage) error {
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
	r.runsOf(out.Runs)
	page.Result, page.Plan, page.Shards, page.Date = o, p, shards, time.Now()
	page.Settings = string(setting) + page.Settings
	page.Links = predicted(r.Links)
	if o.Members != nil {
		page.Names = o.Members
	}
	err = WriteText(out.Stdout, out.Settings(), page.Settings)
	if out.Pages != nil {
		err = errors.Join(err, WriteFile(out.Stdout, out.report(),
			func(w io.Writer) error { return out.Pages.WriteRun(w, page) }))
	}
	if err == nil && !out.Again {
		err = out.writePredictions(o, shards)
	}
	for _, path := range []string{filepath.Join(out.Dir, "result.json"), out.JSON} {
		if path != "" && err == nil {
			err = WriteJSON(out.Stdout, path, r)
		}
	}
	return err
}

// writePredictions writes the predictions for the nodes of this process in every format, and their hidden rows.
func (out Output) writePredictions(o *heddle.Result, shards []*shard.Shard) error {
	for _, s := range shards {
		s.Forget() // predictions are no longer in the shards' files
	}
	all, names := guessedBy(o, shards), shards[0].Labels.Names
	if len(all) == 0 {
		if o.Links != nil {
			all = nodesOf(o, shards)
		}
		return WriteEmbeddings(out.Rows, all, out.Pages)
	}
	var parts sync.WaitGroup
	for k, g := range all {
		if g.Predictions.Kind() != graph.Numbers {
			parts.Go(func() { all[k].known = g.allProbabilities() })
		}
	}
	parts.Wait()
	fills := map[string]func(io.Writer, []string, []NodePredictions) error{"csv": WriteCSV, "npz": WriteNPZ}
	if out.Pages != nil {
		fills["parquet"] = out.Pages.WriteParquet
	}
	var files errgroup.Group
	for format, fill := range fills {
		files.Go(func() error {
			path := out.predictions(format)
			return WriteFile(out.Stdout, path, func(w io.Writer) error { return fill(w, names, all) })
		})
	}
	if err := files.Wait(); err != nil {
		return err
	}
	return WriteEmbeddings(out.Rows, all, out.Pages)
}

// PrintAll prints all runs, the figures of o and what they spent.
func (out Output) PrintAll(w io.Writer, o *heddle.Result, shards []*shard.Shard, l gate.Ledger) error {
	if t := RunsTable(o.Metric, out.Runs); t != nil {
		t.Print(w)
		fmt.Fprintln(w, "the model and what follows are of the run that validates best")
	}
	if err := out.Print(w, o, shards); err != nil {
		return err
	}
	return printLedger(w, l, shards...)
}

// Print prints the figures of a run, and the files that it wrote. shards are the parts of this process.
func (out Output) Print(w io.Writer, o *heddle.Result, shards []*shard.Shard) error {
	sum := o.Total()
	fmt.Fprintf(w, "%s: %s %s test, %s validation, %.1f s\n", shards[0].Name, o.Metric,
		Within(o.Metric, o.Test, o.TestBound),
		Within(o.Metric, o.Val, o.ValBound), o.Seconds)
	if line := worth(o); line != "" {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "sent: halo %s, reduce %s, control %s", Bytes(sum.Halo), Bytes(sum.Reduce),
		Bytes(sum.Control))
	if sum.Wire > 0 {
		fmt.Fprintf(w, "; on the wire %s", Bytes(sum.Wire))
	}
	if o.Privacy != nil {
		fmt.Fprintf(w, "\nprivacy: %s", o.Privacy)
	}
	fmt.Fprintf(w, "\nmodel:  %s\n", out.model())
	if out.Pages != nil {
		fmt.Fprintf(w, "report: %s\n", out.report())
	}
	if o.Plan.Task.Links() {
		return printRanks(w, o, out.model())
	}
	if len(guessedBy(o, shards)) == 0 {
		_, err := fmt.Fprintln(w, "predictions: none, since this peer received the model from another peer; heddle "+
			"predict --shard computes them")
		return err
	}
	fmt.Fprintf(w, "predictions: %s", out.predictions("csv"))
	if len(shards) == 1 && shards[0].Parts > 1 { // else the figure is the one above
		score, nodes, err := o.Own[0].Score(o.Metric, shards[0].Alone())
		if err != nil {
			return err
		}
		if nodes > 0 {
			fmt.Fprintf(w, ", %s %s of own test nodes (%d)", o.Metric, Measure(o.Metric, score), nodes)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
