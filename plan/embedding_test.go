package plan

import "testing"

// TestEmbeddingLayerwise: learned rows of nodes are refused layer by layer by one fault, which names the method that has them.
func TestEmbeddingLayerwise(t *testing.T) {
	p := Defaults(Plan{Method: LayerWise})
	p.Encoder = Encoder{Kind: "embedding", K: 16}
	const must = "encoder must be raw, mlp or pca:K with method layer-wise (got embedding:16): the learned rows of nodes are trained by full-batch"
	if err := p.Validate(); err == nil || err.Error() != must {
		t.Errorf("error is %v, must be %q", err, must)
	}
}
