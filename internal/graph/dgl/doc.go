// Package dgl reads partitions that the Deep Graph Library wrote (dgl.distributed.partition_graph),
// and writes ours so that DGL opens them (dgl.distributed.load_partition).
//
// A partition is NAME.json next to part0/, part1/, …, each with graph.dgl (the part's graph),
// node_feat.dgl and edge_feat.dgl (its columns). Its global IDs are DGL's own: they ascend by part,
// then by type inside the part, then by the node; every part owns one run of them.
//
// Numbers are little-endian and unaligned. Text: u64 length, bytes. Vector: u64 count, elements. Columns: vector of
// (text, array). An array: u64 dd5e40f096b4a13f, u64 0, i32 device (1 is the processor), i32 0, i32 rank, u8 kind (0
// int, 1 uint, 2 float, 4 bfloat), u8 bits, u16 1, an i64 for each extent, i64 bytes, the elements row by row.
//
// node_feat.dgl and edge_feat.dgl: u64 dd5a9fbe3fa2443f, u64 count, columns. A column is called TYPE/NAME; its rows are
// the part's own nodes by ID, or its own edges in the order of graph.dgl.
//
// graph.dgl, always one type and one relation:
//
//	0     u64 dd2e4ff046b4a13f, u64 2 (version), u64 2 (kind), u64 1 (graphs)
//	4096  u64 4112, the place of the graph; columns of labels, none
//	4112  u64 dd589fbe35224abf; metagraph; u64 1 (relations)
//	then  u64 dd2e60f0f6b4a127; u64 saved formats, bit 32 and some of 1 pairs, 2 rows, 4 columns; u64 allowed formats;
//	      for each saved format a metagraph and a matrix
//	then  vectors of one element each: count of nodes, table of node columns, table of edge columns, _N, _E
//	end   u64 16, vector of the one place 4112, u64 16
//
// Metagraph: u64 dd3c5ffe20046abf, rows. Pairs: u64 dd61ffd305dff127, i64 columns, i64 rows, arrays of sources,
// destinations and edge numbers (empty if in order), two bytes. Rows: u64 dd6cd31205dff127, i64 columns, i64 rows,
// arrays of pointers, columns and edge numbers, one byte; columns are the rows of the reversed edges.
//
// Node columns: _ID the global ID, inner_node, part_id, of typed graphs _TYPE; own nodes first, by ID. Edge columns:
// _ID, inner_edge, of typed graphs _TYPE; own edges end at own nodes.
//
// Read opens all parts with their types and columns; Partition.Shards makes Heddle's shards of
// them, with DGL's owners. WriteDir goes the other way.
//
// Partitions for GraphBolt are pickled Python objects, and refused.
package dgl
