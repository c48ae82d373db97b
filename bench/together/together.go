// Package together runs all peers of a training in this process.
package together

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
)

// Run calls run as each member of the groups, which are connected. The first error ends all.
func Run(ctx context.Context, groups []*comm.Group, run func(ctx context.Context, group *comm.Group) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, group := range groups {
		all.Go(func() error { return run(ctx, group) })
	}
	return all.Wait()
}
