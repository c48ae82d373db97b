package results

import "github.com/heddle-gnn/heddle/plan"

// fewBytes is layer-wise GCN over components with ever fewer bytes: narrow rows, updates in fixed
// point, local steps, and then narrower layers over fewer components. Validation over all splits
// chooses among the last that send at most 1/30 of what the first row does.
func fewBytes(data string) (rows []row) {
	add := func(name string, e experiment) {
		e.Name = name
		rows = append(rows, row{experiment: e})
	}
	e := base("", plan.LayerWise, "gcn")
	e.Encoder, e.Rounds, e.EvalEvery, e.Decay, e.Dropout = pca(128), 150, 4, 5e-3, 0.3
	add("float32, as in the tables above", e)
	e.Rows = "int8"
	add("rows int8", e)
	e.Sums, e.Updates = "int8", "int8"
	add("rows, sums and updates int8", e)
	local := func(steps, rounds int) func(*experiment) {
		return func(e *experiment) { e.LocalSteps, e.Rounds, e.EvalEvery = steps, rounds, 1 }
	}
	local(4, 40)(&e)
	add("4 local steps", e)
	local(16, 15)(&e)
	add("16 local steps", e)
	exact := e
	exact.Updates = "float32"
	add("16 local steps, updates float32", exact)

	e.Rows, e.Compress, e.Exchange, e.Hidden = "int4", "zstd", "auto", 32
	var components []func(*experiment)
	for _, k := range []int{32, 64, 96} {
		components = append(components, func(e *experiment) { e.Encoder = pca(k) })
	}
	grid := cross(components, dropouts(0, 0.1, 0.3))
	e.Name = "layers of 32 columns, rows int4 and zstd"
	most := map[string]float64{"amazon-photo": 53.0 / 30, "amazon-computers": 66.7 / 30}[data]
	return append(rows, row{experiment: e, grid: grid, try: 10, most: most})
}
