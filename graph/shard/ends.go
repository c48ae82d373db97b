package shard

// NewLink is a link that the data of its node's owner lack.
type NewLink struct {
	Node, Relation int32 // an own node, and a relation of the model's decoder
	Other          int64 // global ID
	Owner          int   // rank
	Score          float32
}

// BorderNodes are the member's nodes that have edges to nodes of other members: rows of the member's graph, and how
// many such edges each has.
type BorderNodes struct {
	Rows   []int32
	Degree []float32
}
