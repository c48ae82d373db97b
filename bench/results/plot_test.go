package results

import (
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/bench/chart"
)

func TestPanelsOf(t *testing.T) {
	const text = `## Other

| data set | MB |
|---|---:|
| cora | 3 |

## Accuracy against bytes

| data set | what | test | validation | halo MB | updates MB | total MB | seconds | runs |
|---|---|---|---:|---:|---:|---:|---:|---:|
| cora | frugal | 81.61 ± 0.26 | 80.28 | 0.14 | 0.22 | 0.38 | 0.1 | 10 |
| cora | one machine, GCN | 81.28 ± 0.53 | 81.08 | 0.00 | 0.00 | 0.00 | 0.3 | 10 |
| twitch | frugal | 67.25 ± 0.51 | 67.81 | 0.00 | 3.29 | 3.33 | 3.2 | 5 |

Version of the runs.
`
	names, panels, err := panelsOf(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []chart.Panel{
		{Title: "cora", X: "MB sent", Y: "test, %", Points: []chart.Point{{X: 0.38, Y: 81.61, Off: 0.26}}, Level: 81.28},
		{Title: "twitch", X: "MB sent", Y: "test, %", Points: []chart.Point{{X: 3.33, Y: 67.25, Off: 0.51}}},
	}
	if !reflect.DeepEqual(names, []string{"frugal", "one machine, GCN"}) || !reflect.DeepEqual(panels, want) {
		t.Errorf("names and panels must be of %v (got %v, %v)", want, names, panels)
	}
	const heads = "| data set | what | test | validation | halo MB | updates MB | total MB | seconds | runs |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n"
	for name, faulty := range map[string]string{
		"no table":   "# Page\n",
		"few cells":  heads + "| cora | frugal | 81.61 ± 0.26 |\n",
		"other way":  heads + "| cora | magic | 81.61 ± 0.26 | 80.28 | 0.14 | 0.22 | 0.38 | 0.1 | 10 |\n",
		"no numbers": heads + "| cora | frugal | 81.61 ± 0.26 | 80.28 | 0.14 | 0.22 | little | 0.1 | 10 |\n",
	} {
		if _, _, err := panelsOf(faulty); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
