package track

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const events = `{"kind":"candidate","candidate":"labels"}
{"kind":"round","done":1,"loss":0.5,"val":0.25,"val_loss":null,"sent":{"halo":3,"reduce":4,"control":5}}
{"kind":"note","text":"nothing to show"}
{"kind":"round","done":2,"loss":0.25,"val":0.75,"val_loss":null,"sent":{"halo":6,"reduce":8,"control":5}}
{"kind":"stage","stage_name":"closed form","test":0.7}
`

// TestMasked is the checksum of a record for the CRC-32C check value of RFC 3720.
func TestMasked(t *testing.T) {
	if got := binary.LittleEndian.Uint32(masked([]byte("123456789"))); got != 0xc78ab0e5 {
		t.Errorf("%x", got)
	}
}

// TestTrack: the files hold each figure of each round. Python tests read them with TensorBoard's and MLflow's own readers.
func TestTrack(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	for name, text := range map[string]string{"settings.yaml": "model: gcn\nrounds: 2\n", "result.json": `{"test":0.5,"val":null}`} {
		if err := put(filepath.Join(run, name), text); err != nil {
			t.Fatal(err)
		}
	}
	k := tracking{board: filepath.Join(dir, "logs"), mlflow: filepath.Join(dir, "mlruns"), run: run}
	if n, err := k.read(strings.NewReader(events), "events"); err != nil || n != 2 {
		t.Fatalf("%d rounds, %v", n, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "logs", "run", "labels", "events.out.tfevents.*"))
	if len(files) != 1 {
		t.Fatalf("TensorBoard has %q", files)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for ; len(b) > 0; records++ {
		n := binary.LittleEndian.Uint64(b)
		if !bytes.Equal(b[8:12], masked(b[:8])) || !bytes.Equal(b[12+n:16+n], masked(b[12:12+n])) {
			t.Fatalf("record %d has a wrong checksum", records)
		}
		b = b[16+n:]
	}
	if records != 1+2*5+1 { // the version, five figures a round, the test figure
		t.Errorf("%d records", records)
	}
	one := func(name ...string) string {
		paths, _ := filepath.Glob(filepath.Join(append([]string{dir, "mlruns", experimentID, "*"}, name...)...))
		if len(paths) != 1 {
			t.Fatalf("MLflow has %q for %q", paths, name)
		}
		text, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var steps []string
	for line := range strings.Lines(one("metrics", "labels.val")) {
		f := strings.Fields(line)
		steps = append(steps, f[1]+"@"+f[2])
	}
	if !slices.Equal(steps, []string{"0.25@1", "0.75@2"}) || one("params", "model") != "gcn" || !strings.Contains(one("metrics", "final_test"), " 0.5 2\n") ||
		!strings.Contains(one("meta.yaml"), "status: 3") || one("tags", "mlflow.runName") != "run" {
		t.Errorf("%q", steps)
	}
	if paths, _ := filepath.Glob(filepath.Join(dir, "mlruns", experimentID, "*", "metrics", "final_val")); len(paths) > 0 {
		t.Error("a figure that is not there must not be written")
	}
}

// TestBadLine: a line that is not an event is named.
func TestBadLine(t *testing.T) {
	k := tracking{board: t.TempDir()}
	if _, err := k.read(strings.NewReader(events+"oops\n"), "events.jsonl"); err == nil || !strings.Contains(err.Error(), "events.jsonl: line 6 must be an event") {
		t.Errorf("%v", err)
	}
	if err := (tracked{dir: t.TempDir()}).add(k.began, 1, "none", math.NaN()); err != nil {
		t.Error(err)
	}
}
