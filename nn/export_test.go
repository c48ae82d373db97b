package nn

// Operators that tests outside of the package hold to the laws by themselves.
type (
	Dropout  = dropout
	ELU      = elu
	HeadMean = headMean
	Max      = maximum
	ReLU     = relu
	Stack    = stack
)

var (
	NewAttention   = newAttention
	NewBatchNorm   = newBatchNorm
	NewBlockLinear = newBlockLinear
	NewEncoder     = newEncoder
	NewLayerNorm   = newLayerNorm
	NewLinear      = newLinear
	NewRelational  = newRelational
	Hops           = withHops
)
