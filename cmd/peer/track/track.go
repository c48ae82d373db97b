// Package track has the command that turns the events of a run into files of TensorBoard and MLflow.
package track

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
)

// Command returns peer track.
func Command() *cobra.Command {
	var t tracking
	c := &cobra.Command{
		Use:   "track EVENTS (--tensorboard DIR | --mlflow DIR)",
		Short: "Turn a run's events into TensorBoard or MLflow files",
		Long: `Turn the events of a run (--events of peer train, peer join and others) into files that TensorBoard and MLflow show. - reads
standard input, so that the files grow while the run lasts. Nothing leaves this machine.

Each plan that preset auto tries is a run of its own in TensorBoard. In MLflow, --run adds the settings and the final
figures of a finished run, whose files become its artifacts.`,
		Example: `  peer track runs/events.jsonl --tensorboard logs
  peer train --data data/cora --events - | peer track - --tensorboard logs --mlflow mlruns`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if t.board == "" && t.mlflow == "" {
				return cli.Invalidf("give --tensorboard DIR, --mlflow DIR or both")
			}
			in := c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return cli.Invalid(err)
				}
				defer f.Close()
				in = f
			}
			n, err := t.read(in, args[0])
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s: %d rounds\n", args[0], n)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&t.board, "tensorboard", "", "log directory of TensorBoard to add to")
	f.StringVar(&t.mlflow, "mlflow", "", "tracking directory of MLflow to add to")
	f.StringVar(&t.name, "name", "", "name of the run (default: of the directory --run, or heddle)")
	f.StringVar(&t.run, "run", "", "directory of the finished run, for --mlflow")
	cli.Reads(f, "run")
	return c
}

// tracking has the flags, and the files of a run that is read.
type tracking struct {
	board, mlflow, name, run string

	began     time.Time
	candidate string              // of preset auto that is tried; empty: none
	files     map[string]*os.File // of TensorBoard, by candidate
	in        tracked             // of MLflow
}

// event is what is read of a line; null figures are absent.
type event struct {
	Kind      string   `json:"kind"`
	Candidate string   `json:"candidate"`
	Stage     string   `json:"stage_name"`
	Done      int64    `json:"done"`
	Loss      *float64 `json:"loss"`
	Val       *float64 `json:"val"`
	ValLoss   *float64 `json:"val_loss"`
	Test      *float64 `json:"test"`
	Sent      *struct{ Halo, Reduce, Control float64 }
}

// figures are those of an event, by name, in ascending order of names.
func (e event) figures() (names []string, values map[string]float64) {
	values = map[string]float64{}
	for name, v := range map[string]*float64{"loss": e.Loss, "val": e.Val, "val_loss": e.ValLoss, "test": e.Test} {
		if v != nil && (e.Kind == "round" || name == "test") {
			values[name] = *v
		}
	}
	if e.Sent != nil && e.Kind == "round" {
		values["sent_halo"], values["sent_reduce"], values["sent_control"] = e.Sent.Halo, e.Sent.Reduce, e.Sent.Control
	}
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, values
}

// read reads events until they end and returns the number of rounds.
func (t *tracking) read(r io.Reader, path string) (rounds int, err error) {
	t.began, t.files = time.Now(), map[string]*os.File{}
	if t.name == "" && t.run != "" {
		t.name = filepath.Base(t.run)
	}
	if t.name == "" {
		t.name = "heddle"
	}
	defer func() {
		for _, f := range t.files {
			err = errors.Join(err, f.Close())
		}
	}()
	if t.mlflow != "" {
		x, err := openExperiment(t.mlflow)
		if err == nil {
			t.in, err = x.begin(t.name, t.run, t.began)
		}
		if err != nil {
			return 0, err
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	var done int64
	for n := 1; lines.Scan(); n++ {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return rounds, cli.Invalidf("%s: line %d must be an event: %w", path, n, err)
		}
		switch e.Kind {
		case "candidate":
			t.candidate, done = e.Candidate, 0
		case "candidate_end":
			t.candidate = ""
		case "round":
			rounds++
			done = e.Done
		case "stage":
		default:
			continue
		}
		if err := t.add(e, done); err != nil {
			return rounds, err
		}
	}
	if err := lines.Err(); err != nil {
		return rounds, fmt.Errorf("%s: %w", path, err)
	}
	return rounds, t.end(done)
}

// add writes the figures of an event after so many rounds.
func (t *tracking) add(e event, done int64) error {
	now := time.Now()
	names, values := e.figures()
	if t.board != "" && len(names) > 0 {
		w, err := t.file(now)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := w.add(seconds(now), done, name, values[name]); err != nil {
				return err
			}
		}
	}
	if t.mlflow == "" {
		return nil
	}
	prefix := ""
	if t.candidate != "" {
		prefix = t.candidate + "."
	}
	for _, name := range names {
		if err := t.in.add(now, done, prefix+name, values[name]); err != nil {
			return err
		}
	}
	return nil
}

// file returns TensorBoard's file of the candidate that is tried, or of the run.
func (t *tracking) file(now time.Time) (scalars, error) {
	if f, ok := t.files[t.candidate]; ok {
		return scalars{f}, nil
	}
	dir := filepath.Join(t.board, t.name, t.candidate)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return scalars{}, err
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.heddle.%d", now.Unix(), now.UnixNano())))
	if err != nil {
		return scalars{}, err
	}
	t.files[t.candidate] = f
	w := scalars{f}
	return w, w.begin(seconds(now))
}

// end adds what a finished run's directory has, and the end.
func (t *tracking) end(done int64) error {
	if t.mlflow == "" {
		return nil
	}
	now := time.Now()
	if t.run != "" {
		if err := t.finished(now, done); err != nil {
			return cli.Invalid(err)
		}
	}
	return t.in.state(3, &now)
}

// finished adds settings and final figures.
func (t *tracking) finished(now time.Time, done int64) error {
	settings := map[string]any{}
	text, err := os.ReadFile(filepath.Join(t.run, "settings.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &settings)
	}
	if err != nil {
		return err
	}
	for name, v := range settings {
		if v == nil || strings.ContainsAny(name, `/\`) {
			continue
		}
		if err := t.in.param(name, fmt.Sprint(v)); err != nil {
			return err
		}
	}
	var result struct{ Test, Val *float64 }
	if text, err = os.ReadFile(filepath.Join(t.run, "result.json")); err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err != nil {
		return err
	}
	value := func(v *float64) float64 {
		if v == nil {
			return math.NaN()
		}
		return *v
	}
	return errors.Join(t.in.add(now, done, "final_test", value(result.Test)), t.in.add(now, done, "final_val", value(result.Val)))
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
