package shard

// NewLink is a link that is missing in the data of its node's owner.
type NewLink struct {
	Node, Relation int32 // an own node, and a relation of the model's decoder
	Other          int64 // global ID
	Owner          int   // rank
	Score          float32
}

// BorderNodes are the member's nodes with edges to nodes of other members: rows of the member's graph, and the number
// of such edges of each.
type BorderNodes struct {
	Rows   []int32
	Degree []float32
}
