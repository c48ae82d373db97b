package minibatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/train"
)

// directory says who owns which node, and which nodes train.
type directory struct {
	*train.Directory
	train []int32 // IDs of the labelled training nodes of all peers, ascending
}

// learnDirectory tells the other peers the IDs of own nodes, and which of them train.
func learnDirectory(ctx context.Context, g *comm.Group, s *shard.Shard, training []int32) (*directory, error) {
	trains := make([]uint8, s.Owned)
	for _, i := range training {
		trains[i] = 1
	}
	all, err := train.LearnOwners(ctx, g, s, trains, 2)
	if err != nil {
		return nil, err
	}
	d := &directory{Directory: all}
	for id, is := range all.Mark {
		if is == 1 {
			d.train = append(d.train, int32(id))
		}
	}
	return d, nil
}
