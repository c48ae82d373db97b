package attack

import (
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestComponentsInEveryFormat: rounded rows of components reveal as much as exact ones: nearly all rows of Cora, and
// half or more of CiteSeer. In int4 they reveal half of the rows of Cora, and nearly all columns. The short form takes
// Cora's rows in int4.
func TestComponentsInEveryFormat(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: some seconds long")
	}
	least, limit := map[string]map[string]float64{"cora": {"int4": 0.4}}, 2*time.Second
	if testenv.LongForm(t) {
		least["cora"] = map[string]float64{"float32": 0.8, "bf16": 0.8, "int8": 0.8, "int4": 0.4}
		least["citeseer"] = map[string]float64{"float32": 0.4, "int8": 0.4}
		limit = 10 * time.Second
	}
	for name, least := range least {
		g, err := dataset.Read(testenv.DataDir(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		for format, least := range least {
			shards, p := split(t, g, 3, map[string]string{"method": "layer-wise", "encoder": "pca:128", "rows": format})
			r, err := Check(t.Context(), p, shards[1], limit)
			t.Log(name, format, r, err)
			if share := float64(r.Exact) / float64(max(1, r.Tried)); err != nil || r.Tried < 25 || share < least ||
				float64(r.Named) < 0.8*float64(r.Values) {
				t.Errorf("%s, %s: %v (%v)", name, format, r, err)
			}
		}
	}
}
