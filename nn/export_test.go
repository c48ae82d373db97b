package nn

// Operators that tests outside of the package hold to the laws by themselves.
type (
	Dropout  = dropout
	HeadMean = headMean
	Stack    = stack
)

var (
	NewBlockLinear = newBlockLinear
	NewEncoder     = newEncoder
	NewLinear      = newLinear
	NewActivation  = newActivation
	Hops           = withHops
)
