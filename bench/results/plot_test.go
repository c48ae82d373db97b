package results

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/bench/chart"
	"github.com/heddle-gnn/heddle/bench/page"
)

func TestPanelsOf(t *testing.T) {
	read := func(rows ...string) ([]string, []chart.Panel, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "lines.jsonl")
		text := ""
		for _, r := range rows {
			text += `{"table":"ways to train","command":"c","commit":"0","machine":"m","date":"d","row":` + r + "}\n"
		}
		text += strings.ReplaceAll(text, "ways to train", "other")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		lines, err := page.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		return panelsOf(lines)
	}
	names, panels, err := read(
		`{"data set":"cora","what":"class means","test":{"mean":81.61,"spread":0.26},"total MB":0.38}`,
		`{"data set":"cora","what":"GCN on one machine","test":{"mean":81.28,"spread":0.53},"total MB":0}`,
		`{"data set":"twitch","what":"class means","test":{"mean":67.25,"spread":0.51},"total MB":3.33}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []chart.Panel{
		{Title: "cora", X: "MB sent", Y: "test, %", Points: []chart.Point{{X: 0.38, Y: 81.61, Off: 0.26}},
			Level: 81.28},
		{Title: "twitch", X: "MB sent", Y: "test, %", Points: []chart.Point{{X: 3.33, Y: 67.25, Off: 0.51}}},
	}
	if !reflect.DeepEqual(names, []string{"class means", "GCN on one machine"}) || !reflect.DeepEqual(panels, want) {
		t.Errorf("names and panels must be of %v (got %v, %v)", want, names, panels)
	}
	for _, faulty := range []string{
		`{"data set":"cora","what":"class means","test":81.6}`,
		`{"data set":"cora","what":"magic","test":81.6,"total MB":0.38}`,
		`{"data set":"cora","what":"class means","test":81.6,"total MB":"little"}`,
	} {
		if _, _, err := read(faulty); err == nil {
			t.Errorf("%s: no error", faulty)
		}
	}
	if _, _, err := read(); err == nil {
		t.Error("no lines: no error")
	}
}
