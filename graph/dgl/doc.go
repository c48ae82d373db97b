// Package dgl reads partitions that the Deep Graph Library wrote (dgl.distributed.partition_graph),
// and writes ours so that DGL opens them (dgl.distributed.load_partition).
//
// A partition is NAME.json beside part0/, part1/, …, each with graph.dgl (the part's graph),
// node_feat.dgl and edge_feat.dgl (its columns). Its global IDs are DGL's own: they ascend by part,
// then by type inside the part, then by the node; every part owns one run of them.
// docs/reference/graph-formats.md has the bytes.
//
// Read opens all parts with their types and columns; Partition.Shards makes Heddle's shards of
// them, with DGL's owners. WriteDir goes the other way.
//
// Partitions for GraphBolt are pickled Python objects, and refused.
package dgl
