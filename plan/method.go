package plan

// Auto is the value of settings that are chosen by what else is known.
const Auto = "auto"

// The methods of training. The tag when also asks for kinds of them: trained (by gradient steps) and federated (made for
// sites that may not pool their data).
const (
	ClassMeans = "class-means"
	LayerWise  = "layer-wise"
	FullBatch  = "full-batch"
	MiniBatch  = "mini-batch"
)

// kindsOfMethod returns p's method and what kinds it is of.
func (p Plan) kindsOfMethod() []string {
	switch {
	case p.Method == ClassMeans:
		return []string{ClassMeans, "federated"}
	case p.Method == LayerWise:
		return []string{LayerWise, "federated", "trained"}
	}
	return []string{p.Method, "trained"}
}

// Federated reports whether p's method is made for sites that may not pool their data.
func (p Plan) Federated() bool { return p.Method == ClassMeans || p.Method == LayerWise }

// MethodNames writes Setting.Methods in the words of a plan.
func MethodNames(kinds []string) string {
	var all []string
	for _, one := range kinds {
		switch one {
		case "trained":
			all = append(all, LayerWise, FullBatch, MiniBatch)
		case "federated":
			all = append(all, ClassMeans, LayerWise)
		default:
			all = append(all, one)
		}
	}
	return either(all)
}
