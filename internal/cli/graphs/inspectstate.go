package graphs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// inspectState describes the checkpoints of an interrupted run: of all its peers, of one, or in the directory of its
// results.
func inspectState(w io.Writer, path string) error {
	stores, err := checkpoint.Find(path)
	if err != nil {
		return err
	}
	if len(stores) == 0 {
		return fmt.Errorf("%s must hold a data set, a partition or checkpoints", path)
	}
	record, err := recordNear(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: interrupted run", path)
	if record != nil {
		var said []string
		for _, name := range []string{"data", "shards", "shard", "method", "model", "seed", "seeds"} {
			if value := record.Value(name); value != "" && value != `""` && !(name == "seeds" && value == "1") {
				said = append(said, name+" "+value)
			}
		}
		fmt.Fprintf(w, " (%s)", strings.Join(said, ", "))
	}
	fmt.Fprintln(w)
	for _, s := range stores {
		if err := inspectStore(w, s, record); err != nil {
			return err
		}
	}
	if record == nil {
		fmt.Fprintln(w, "  to continue: the command that began it, with --resume (heddle train) or the same --state "+
			"(heddle join)")
		return nil
	}
	fmt.Fprintf(w, "  settings: %s\n  to continue: %s\n", record.Path, record.Again)
	return nil
}

// recordNear returns the record of the checkpoints in path: it is there, in its directory of checkpoints, or above the
// directory of one peer; nil if there is none.
func recordNear(path string) (*cli.Record, error) {
	near := []string{path, filepath.Join(path, "checkpoints")}
	for above, k := filepath.Dir(filepath.Clean(path)), 0; k < 3; above, k = filepath.Dir(above), k+1 {
		near = append(near, above)
	}
	for _, dir := range near {
		if r, err := cli.ReadRecord(dir); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// inspectStore prints the newest state of one peer.
func inspectStore(w io.Writer, s *checkpoint.Store, record *cli.Record) error {
	seqs, err := s.List()
	if err != nil {
		return err
	}
	info, err := os.Stat(s.Path(seqs[0]))
	if err != nil {
		return err
	}
	at, round := int(seqs[0]>>32), seqs[0]&(1<<32-1)-1 // as train.Position numbers them
	stage := fmt.Sprintf("stage %d", at)
	if record != nil {
		switch record.Value("method") {
		case plan.LayerWise:
			stage += " (" + train.StageName(at) + ")"
		case plan.FullBatch, plan.MiniBatch:
			stage = "all layers"
		}
	}
	fmt.Fprintf(w, "  %s: %s, before round %d; %s, saved %s\n", s.Dir, stage, round, cli.Bytes(info.Size()),
		info.ModTime().UTC().Format(time.DateTime+" UTC"))
	return nil
}
