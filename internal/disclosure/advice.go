package disclosure

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
)

// Advice warns of what a plan allows and its author probably did not mean.
func Advice(p plan.Plan, own *shard.Shard) (advice []string) {
	f := own.X.Cols()
	if most := p.Halved(f); most > 0 {
		advice = append(advice, fmt.Sprintf("encoder %s keeps %d components, half of the %d columns: more would "+
			"give back features", p.LayerWise.Encoder, most, f))
	}
	conv, _ := nn.ConvolutionNamed(p.Gradient().Model)
	if n := own.EdgeX.Cols; n > 0 && !conv.EdgeColumns {
		readers := nn.Convolutions(func(c nn.Convolution) bool { return c.EdgeColumns })
		advice = append(advice, fmt.Sprintf("the %d columns of the edges of %s are not read: method full-batch with "+
			"model %s reads them", n, own.Name, strings.Join(readers, " or ")))
	}
	if own.Typed.Count() > 0 && !conv.Typed {
		advice = append(advice, fmt.Sprintf("the %d relations of the edges of %s are taken for one: "+
			"method full-batch with model rgcn distinguishes them", own.Typed.Count(), own.Name))
	}
	if _, bare := own.X.Numbers(); bare && int64(f) == own.Nodes && own.Parts > 1 && p.Method == plan.FullBatch &&
		p.FullBatch.Encoder.Kind == "raw" && !p.Task.Links() {
		advice = append(advice, fmt.Sprintf("nodes have no features, so each step sums weights for %d "+
			"nodes over all sites: with encoder: embedding:16 each site keeps the rows of its nodes", own.Nodes))
	}
	if p.Method == plan.LayerWise && !p.Task.Links() {
		means := plan.Defaults(plan.ClassMeans, "")
		means.Federation().SecureSums, means.Inductive = p.Federation().SecureSums, p.Inductive
		of, err := Of(means, own)
		this, fault := Of(p, own)
		if err == nil && fault == nil && 0 < of.Bytes && of.Bytes < this.Bytes/50 {
			advice = append(advice, fmt.Sprintf("this site sends up to %.0f MB; with method: class-means it would "+
				"send up to %.2g MB", float64(this.Bytes)/1e6, float64(of.Bytes)/1e6))
		}
	}
	if own.Labels.Kind() == graph.Numbers && !p.Task.Links() && conv.Aggregates && !conv.OwnRow &&
		!p.Gradient().Residual && p.Method != plan.ClassMeans {
		keep := nn.Convolutions(func(c nn.Convolution) bool {
			return c.Aggregates && c.OwnRow && (c.LayerWise || p.Method != plan.LayerWise) &&
				(!c.Typed || own.Typed.Count() > 0)
		})
		advice = append(advice, fmt.Sprintf("model %s mixes the features of a node with its neighbours', which costs "+
			"most with a numeric target: %s keep them apart", p.Gradient().Model, strings.Join(keep, ", ")))
	}
	return advice
}

// InferenceText returns what a site approves before it computes predictions by a plan file and the model of that
// fingerprint: the text of the file, and a line that names the model.
func InferenceText(plan []byte, model [32]byte) []byte {
	return fmt.Appendf(append([]byte{}, plan...), "predict: %q\n", hex.EncodeToString(model[:]))
}
