package external

import (
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/vertexcut"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Replicas returns the quality of a vertex cut, of which nothing is written: job says the number of
// parts, the seed, the memory that it may take and who watches. It holds the parts in which each
// node lies, K/8 bytes a node, and what the cut looks at, 4 to 24. All of the file is read first,
// and compared with its checksums.
func (s *Stored) Replicas(cut vertexcut.Cut, job Job) (vertexcut.Replicas, error) {
	if err := shard.CheckParts(s.nodes, job.Parts); err != nil {
		return vertexcut.Replicas{}, err
	}
	passes, each := cut.Needs(job.Parts)
	if need := each*int64(s.nodes) + 1<<25 + readAhead; job.Memory > 0 && need > job.Memory {
		return vertexcut.Replicas{}, fmt.Errorf("external: a vertex cut of %d nodes in %d parts needs about %d MiB of memory, with %d allowed: allow more", s.nodes, job.Parts, need>>20, job.Memory>>20)
	}
	if err := s.digest(io.Discard); err != nil {
		return vertexcut.Replicas{}, err
	}
	src := &passing{s, job.Watch, Progress{Phase: "assign", Steps: passes, Total: s.edges}}
	return vertexcut.Measure(src, cut, job.Parts, partition.Key(job.Meta.Seed))
}

// passing is a stored graph as a source each of whose passes over the edges is a step of progress.
type passing struct {
	*Stored
	watch func(Progress) error
	at    Progress
}

// Runs implements partition.Source.
func (p *passing) Runs(edges bool, f func(*partition.Run) error) error {
	p.at.Done = 0
	err := p.Stored.Runs(edges, func(r *partition.Run) error {
		if err := f(r); err != nil || !edges || p.watch == nil {
			return err
		}
		p.at.Done += int64(len(r.Col))
		return p.watch(p.at)
	})
	if edges {
		p.at.Step++
	}
	return err
}
