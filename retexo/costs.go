package retexo

import (
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/train"
)

// costs returns the computing costs of the components of encoder pca.
func (t *Trainer) costs() (all []linear.Cost) {
	spec := t.config.Spec
	if spec.Encoder.Kind == "pca" {
		all = append(all, linear.ComponentsCost(spec.Features, spec.Encoder.Components(spec.Classes),
			t.config.PCAPasses))
	}
	return all
}

// manyRowBytes is how many bytes of rows a peer may send before a warning.
const manyRowBytes = 256 << 20

// warnOfCosts warns once, before anything is sent, of slow closed forms and of rows that take many bytes.
func (t *Trainer) warnOfCosts() {
	if t.warned {
		return
	}
	t.warned = true
	if why := t.config.WithoutClasses; why != "" {
		t.Log(train.Note, "the layers see only components, without columns of classes: %s", why)
	}
	boundary, bytes := 0, 0
	for _, rows := range t.shard.Boundary {
		boundary += len(rows)
	}
	for k, l := range t.config.Spec.Layers {
		hops := l.Hops
		if k == 0 && t.input.Sparse != nil && t.config.Spec.Encoder.Kind == "raw" {
			hops-- // the first rows have few values; each aggregation adds more
		}
		bytes += hops * boundary * t.sender.RowLen(l.In)
	}
	if bytes >= manyRowBytes {
		t.Log(train.Warning, "this peer will send up to %d MB of rows, of %d nodes: encoder pca makes them narrower",
			bytes/1e6, boundary)
	}
	for _, c := range t.costs() {
		if text := c.Warning(); text != "" {
			t.Log(train.Warning, "%s", text)
		}
	}
}
