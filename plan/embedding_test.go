package plan

import "testing"

// TestEmbeddingLayerwise: learned rows of nodes are refused layer by layer by one fault, which names the modes that have them.
func TestEmbeddingLayerwise(t *testing.T) {
	p := Defaults(Plan{Mode: "retexo"})
	p.Encoder = Encoder{Kind: "embedding", K: 16}
	const must = "encoder must be raw, mlp, pca:K or classes in mode retexo (got embedding:16): the learned rows of nodes are trained in modes fullbatch and standalone"
	if err := p.Validate(); err == nil || err.Error() != must {
		t.Errorf("error is %v, must be %q", err, must)
	}
}
