package plan

// The methods of training. The tag when also asks for kinds of them: trained (by gradient steps), federated (made for sites
// that may not pool their data), single and contest (class-means with one closed form, or several).
const (
	ClassMeans = "class-means"
	LayerWise  = "layer-wise"
	FullBatch  = "full-batch"
	MiniBatch  = "mini-batch"
)

// kindsOfMethod returns p's method and what kinds it is of.
func (p Plan) kindsOfMethod() []string {
	switch {
	case p.Method == ClassMeans && p.Single:
		return []string{ClassMeans, "federated", "single"}
	case p.Method == ClassMeans:
		return []string{ClassMeans, "federated", "contest"}
	case p.Method == LayerWise:
		return []string{LayerWise, "federated", "trained"}
	}
	return []string{p.Method, "trained"}
}

// Contest reports whether p compares several closed forms by validation and takes the best.
func (p Plan) Contest() bool { return p.Method == ClassMeans && !p.Single }

// InClosedForm reports whether p trains one closed form of class means.
func (p Plan) InClosedForm() bool { return p.Method == ClassMeans && p.Single }

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
		case "single":
			all = append(all, ClassMeans)
		case "contest":
			all = append(all, ClassMeans+" without single")
		default:
			all = append(all, one)
		}
	}
	return either(all)
}
