package track

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// experiment is a folder of runs as MLflow keeps them in files: runs of all names are in the experiment heddle.
type experiment struct{ dir string }

// experimentID is any number that MLflow does not give itself.
const experimentID = "486564646c6521"

// open makes the folder of an experiment in root unless it is there.
func openExperiment(root string) (experiment, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return experiment{}, err
	}
	x := experiment{filepath.Join(root, experimentID)}
	if _, err := os.Stat(filepath.Join(x.dir, "meta.yaml")); err == nil {
		return x, nil
	}
	now := time.Now().UnixMilli()
	return x, put(filepath.Join(x.dir, "meta.yaml"), map[string]any{"artifact_location": link(x.dir), "creation_time": now,
		"experiment_id": experimentID, "last_update_time": now, "lifecycle_stage": "active", "name": "heddle"})
}

// tracked is a run of an experiment.
type tracked struct {
	dir, id, name, artifacts string
	began                    time.Time
}

// begin makes the folder of a run. artifacts is the directory of its files.
func (x experiment) begin(name, artifacts string, began time.Time) (tracked, error) {
	sum := sha256.Sum256(fmt.Append(nil, name, began.UnixNano(), os.Getpid()))
	r := tracked{id: hex.EncodeToString(sum[:16]), name: name, artifacts: artifacts, began: began}
	r.dir = filepath.Join(x.dir, r.id)
	if r.artifacts == "" {
		r.artifacts = filepath.Join(r.dir, "artifacts")
	}
	var all error
	for _, one := range []string{"metrics", "params", "tags", "artifacts"} {
		all = errors.Join(all, os.MkdirAll(filepath.Join(r.dir, one), 0o755))
	}
	return r, errors.Join(all, r.state(1, nil), put(filepath.Join(r.dir, "tags", "mlflow.runName"), name))
}

// state writes what MLflow lists: 1 is running, 3 finished.
func (r tracked) state(status int, end *time.Time) error {
	at, err := filepath.Abs(r.artifacts)
	if err != nil {
		return err
	}
	meta := map[string]any{"artifact_uri": link(at), "end_time": nil, "entry_point_name": "", "experiment_id": experimentID,
		"lifecycle_stage": "active", "run_id": r.id, "run_name": r.name, "run_uuid": r.id, "source_name": "", "source_type": 4,
		"source_version": "", "start_time": r.began.UnixMilli(), "status": status, "tags": []string{}, "user_id": "heddle"}
	if end != nil {
		meta["end_time"] = end.UnixMilli()
	}
	return put(filepath.Join(r.dir, "meta.yaml"), meta)
}

// add appends a value of a metric.
func (r tracked) add(at time.Time, step int64, name string, v float64) error {
	if math.IsNaN(v) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(r.dir, "metrics", name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %v %d\n", at.UnixMilli(), v, step)
	return errors.Join(err, f.Close())
}

// param writes a setting.
func (r tracked) param(name, v string) error { return put(filepath.Join(r.dir, "params", name), v) }

// put writes a text, or anything else as YAML.
func put(path string, v any) error {
	text, ok := v.(string)
	if !ok {
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// link is the address of an absolute path.
func link(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/runs
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
