package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
)

// mostName bounds the name of a graph, in bytes.
const mostName = 255

// Number gives the nodes of own, which no edge connects to nodes of other members, their numbers in the graph of all
// members, and own the name that the first member has for it. names are the members', by rank; tell passes
// bytes to all and returns theirs, by rank. What a member sends about its part is the number of its nodes and of its
// features, its classes and its name. It returns the number of each member's first node, and of all nodes. The error
// is a comm.PeerError where a member's part does not fit.
func Number(own *Shard, names []string, tell func([]byte) ([][]byte, error)) (first []int64, err error) {
	shape := binary.LittleEndian.AppendUint64(nil, uint64(own.X.Cols()))
	shape = binary.LittleEndian.AppendUint64(shape, uint64(own.Labels.Classes))
	classes := sha256.Sum256([]byte(strings.Join(own.Labels.Names, "\x00") + fmt.Sprint(own.Labels.Multi())))
	shape = append(shape, classes[:]...)
	mine := binary.LittleEndian.AppendUint64(shape[:len(shape):len(shape)], uint64(own.Owned))
	all, err := tell(append(mine, own.Name[:min(len(own.Name), mostName)]...))
	if err != nil {
		return nil, err
	}
	const most = 1 << 40 // nodes of a member
	head := len(mine)
	own.Nodes = 0
	for q, b := range all {
		fault := func(format string, args ...any) error {
			return &comm.PeerError{Rank: q, Name: names[q], Op: "gather", Err: fmt.Errorf(format, args...)}
		}
		if len(b) < head || len(b) > head+mostName {
			return nil, fault("the description of its part must have %d to %d bytes (got %d)", head, head+mostName,
				len(b))
		}
		if string(b[:len(shape)]) != string(shape) {
			return nil, fault("its graph must have %d features and the same %d classes (got %d and %d)", own.X.Cols(),
				own.Labels.Classes, binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]))
		}
		n := binary.LittleEndian.Uint64(b[len(shape):])
		if n > most {
			return nil, fault("its graph must have at most %d nodes (got %d)", int64(most), n)
		}
		first = append(first, own.Nodes)
		own.Nodes += int64(n)
	}
	own.Name = string(all[0][head:]) // a model's card has one name of the data
	for i := range own.Global {
		own.Global[i] = first[own.Rank] + int64(i)
	}
	return append(first, own.Nodes), nil
}
