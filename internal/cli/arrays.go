package cli

import (
	"archive/zip"
	"errors"
	"io"

	"github.com/heddle-gnn/heddle/graph/npy"
	"github.com/heddle-gnn/heddle/graph/target"
)

// WriteNPZ writes NumPy arrays with a row a node, N of them in C classes; docs/reference/result.md lists them.
func WriteNPZ(w io.Writer, names []string, all []NodePredictions) error {
	if len(all) > 0 && all[0].Predictions.Kind() == target.Numbers {
		return NumbersOf(names, all, true).npz(w)
	}
	n, classes := 0, 0
	for _, g := range all {
		n, classes = n+g.Predictions.Logits.Rows, g.Predictions.Logits.Cols
	}
	several := len(all) > 0 && all[0].Predictions.Kind() == target.Several
	var ids, splits, sites []string
	var node, class, label []int64
	chosen, known := make([]bool, n*classes), make([]bool, n*classes)
	logits, probability := make([]float32, 0, n*classes), make([]float32, 0, n*classes)
	for g, i := range ordered(all) {
		at, split := len(ids)*classes, ""
		if g.Split != nil {
			split = splitNames[g.Split[i]]
		}
		ids, node = append(ids, g.Name(i)), append(node, g.number(i))
		splits, sites = append(splits, split), append(sites, g.Site)
		logits = append(logits, g.Predictions.Logits.Row(i)...)
		for _, p := range g.Predictions.Probabilities(i) {
			probability = append(probability, float32(p))
		}
		predicted := g.Predictions.Classes(i)
		if several {
			for _, k := range predicted {
				chosen[at+k] = true
			}
			for k := range classes {
				known[at+k] = g.Labels.Classes == classes && g.Labels.Multi() && g.Labels.Bits[i*classes+k] != 0
			}
			continue
		}
		class, label = append(class, int64(predicted[0])), append(label, -1)
		if g.Labels.Class != nil {
			label[len(label)-1] = int64(g.Labels.Class[i])
		}
	}
	z := zip.NewWriter(w)
	var err error
	put := func(name string, values any, shape ...int) {
		if err == nil {
			err = npy.Write(z, name, shape, values)
		}
	}
	put("node", node, n)
	put("id", ids, n)
	if several {
		put("class", chosen, n, classes)
		put("label", known, n, classes)
	} else {
		put("class", class, n)
		put("label", label, n)
	}
	put("probability", probability, n, classes)
	put("logits", logits, n, classes)
	put("split", splits, n)
	put("site", sites, n)
	var list []string
	for k := range classes {
		list = append(list, ClassName(names, k))
	}
	put("classes", list, classes)
	return errors.Join(err, z.Close())
}
