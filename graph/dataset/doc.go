// Package dataset reads and writes node classification graphs: NumPy archives (Read, Write), a
// user's own tables (Import, Encode; of several types package typed), and a generator of multi-site
// graphs (Sites).
//
// # The layout of a data set
//
// A directory has graph.npz, a zip archive of NumPy arrays in version 1.0 or 2.0 and row order,
// and may hold meta.json. N nodes, E entries of the edge list, F columns, C classes, S splits:
//
//	edge_index                        int32   [2, E]        sources, then targets, in 0..N-1
//	edge_weight                       float32 [E]           above 0; absent: all 1
//	edge_type                         int32   [E]           relation, from 0; absent: edges have no types
//	edge_attr                         float32 [L, G]        columns of edges; absent: edges have none
//	edge_row                          int32   [E]           row of edge_attr, or -1: zeros; absent: entry k has row k
//	node_type                         int32   [N]           type of the node, from 0; absent: nodes have no types
//	x_types                           int64   [T+1]         features of type t are columns x_types[t] to x_types[t+1];
//	                                                        absent: the types share all columns
//	x                                 float32 [N, F]        dense features, or:
//	x_indptr, x_indices               int64 [N+1], int32    sparse features as CSR, columns rising within a row
//	x_data, x_shape                   float32, int64 [2]
//	y                                 int64   [N]           classes, see below; required
//	                            or    text    [N]           classes; no label: a missing text (table.Missing)
//	                            or    bool    [N, C]        multi-label; also as numbers 0 and 1
//	                            or    float   [N] or [N, C] targets of a regression; NaN in all columns: no label
//	train_mask, val_mask, test_mask   bool    [N] or [N, S] disjoint; a mask that is there marks a node
//	client                            int32   [N]           the node's site
//	ids, ids_indptr                   uint8, int64 [N+1]    names of nodes, end to end in UTF-8, and the start of each
//
// Other integers are read if they fit, and float64 as float32. A last dimension of length 1 may be left out or added.
//
// The classes are the values of y, in ascending order (texts: as numbers if all are); other values than 0..C-1 are
// their names. Only if meta.json has classes or class_names, whole numbers must be 0..C-1, or -1: no label. Else -1 is
// no label next to 0..C-1, and a class next to only 1 or a number below -1. With only two classes 0 and 1, and with
// gaps in the numbers, it is a class if masks mark all such nodes, no label if they mark none, and refused otherwise.
// Task classification makes floats classes, NaN: no label; task regression makes all numbers targets.
//
// These fields of meta.json are read: name, nodes, classes, class_names, client_names,
// relation_names, node_type_names, directed (true: edge_index has all edges there are, and no reverse
// is added), and encoding (an Encoding). import.json may describe the tables that the data set
// was made of (table.Facts), and skipped.csv the rows that were left out.
package dataset
