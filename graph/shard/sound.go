package shard

import (
	"errors"
	"fmt"
)

// Sound returns the first fault of the parts of a graph, which a program may have made by itself.
func Sound(shards ...*Shard) error {
	if len(shards) == 0 {
		return errors.New("there must be at least one shard (got none)")
	}
	for r, s := range shards {
		if s == nil {
			return fmt.Errorf("shard %d must be a part of a graph (got nil)", r)
		}
		if err := s.Valid(); err != nil {
			return err
		}
	}
	return nil
}
