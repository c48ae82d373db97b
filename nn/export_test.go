package nn

// Operators that tests outside of the package hold to the laws by themselves.
type (
	Dropout  = dropout
	ELU      = elu
	HeadMean = headMean
	ReLU     = relu
	Stack    = stack
)

var (
	NewBlockLinear = newBlockLinear
	NewEncoder     = newEncoder
	NewLinear      = newLinear
	Hops           = withHops
)
