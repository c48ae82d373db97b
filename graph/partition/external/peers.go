package external

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Team is the peers that partition one stored graph together, one part each, every one with the
// file in reach (CuSP; Hoang et al., IPDPS 2019). A peer reads the table of nodes and, of edges and
// features, those of its own slice of nodes, a run of IDs with as many edges as any other peer's, and of its part.
type Team struct {
	Rank, Size int
	// Rounds is how often in a pass the peers tell each other what they assigned: nodes that others
	// have edges from, and what the parts hold. Nobody is ever more than one round ahead of what
	// the others know. At least 1; CuSP has 100.
	Rounds int
	// Swap sends out[q], of at most limit bytes, to every peer q and returns what each sent here.
	Swap func(what string, out [][]byte, limit int) (in [][]byte, err error)
}

// WriteShare partitions the graph into a part for each peer of the team, by job's policy and goal,
// and writes this peer's part and the manifest into dir, as WriteOwn does. Nodes go where the
// policy's rule puts them by what is known, no part beyond its bounds; of the passes of restream:N
// those that cluster only assign. For the same graph, team size, rounds and seed the parts are the
// same bytes.
func (s *Stored) WriteShare(dir string, job Job, team Team) (*shard.Manifest, error) {
	if job.Parts == 0 {
		job.Parts = team.Size
	}
	if job.Parts != team.Size || team.Rounds < 1 {
		return nil, fmt.Errorf("each peer needs a part and there must be at least 1 round (got %d parts, "+
			"%d peers, %d rounds)", job.Parts, team.Size, team.Rounds)
	}
	if err := shard.CheckParts(s.nodes, job.Parts); err != nil {
		return nil, err
	}
	p := &sharing{Stored: s, job: job, team: team}
	if err := p.agree(); err != nil {
		return nil, err
	}
	if err := p.slice(); err != nil {
		return nil, err
	}
	if err := p.ask(); err != nil {
		return nil, err
	}
	if err := p.assign(); err != nil {
		return nil, err
	}
	own, err := p.deal()
	if err != nil {
		return nil, err
	}
	return shard.WriteOwn(dir, own, job.Meta, func(b []byte) ([][]byte, error) {
		return p.tell("manifest", b, 1<<26)
	})
}

// sharing is one peer's part in the work of a team.
type sharing struct {
	*Stored
	job   Job
	team  Team
	first []int32 // [K+1] slice p is nodes first[p] to first[p+1]
	owner []int32 // [N] −1: not known
	// Of every other peer's slice the nodes that edges of ours come from; of
	// ours those that edges of theirs come from. All ascend.
	wants    [][]int32
	wantedBy [][]int32
}

// tell sends b to all and returns what each told, with b in its place.
func (p *sharing) tell(what string, b []byte, limit int) ([][]byte, error) {
	out := make([][]byte, p.team.Size)
	for q := range out {
		out[q] = b
	}
	return p.swap(what, out, limit)
}

// swap is Team.Swap with out[Rank] among what comes.
func (p *sharing) swap(what string, out [][]byte, limit int) ([][]byte, error) {
	own := out[p.team.Rank]
	if p.team.Size == 1 {
		return [][]byte{own}, nil
	}
	in, err := p.team.Swap(what, out, limit)
	if err == nil {
		in[p.team.Rank] = own
	}
	return in, err
}

func fault(peer int, what string, format string, args ...any) error {
	return &comm.PeerError{Rank: peer, Op: what, Err: fmt.Errorf(format, args...)}
}

// agree makes sure that all peers have the same file and mean the same work.
func (p *sharing) agree() error {
	h := sha256.New()
	fmt.Fprintf(h, "share %s %d %d %d %+v", p.job.Meta.Policy, p.job.Meta.Seed, p.team.Size, p.team.Rounds,
		partition.GoalOf(p.job.Policy))
	if err := p.file.Table(h); err != nil {
		return err
	}
	all, err := p.tell("what to partition", h.Sum(nil), sha256.Size)
	if err != nil {
		return err
	}
	for q, b := range all {
		if !bytes.Equal(b, all[p.team.Rank]) {
			// All see that they differ, and none leaves before all have: who does is lost to the
			// others, for another reason.
			_, _ = p.tell("settle", nil, 1)
			return fault(q, "partition", "has another graph, policy, bounds, seed or number of rounds")
		}
	}
	return nil
}

// slice cuts the nodes into slices of equally many nodes and edges.
func (p *sharing) slice() (err error) {
	k, total := p.team.Size, int64(p.nodes)+p.edges
	p.first = make([]int32, k+1)
	for q := range p.first {
		at := sort.Search(p.nodes, func(v int) bool {
			var ptr [1]int64
			if fault := section.ReadRange(p.file, "adj/0/row_ptr", int64(v), ptr[:]); fault != nil {
				err = fault
			}
			return float64(ptr[0]+int64(v))*float64(k) >= float64(total)*float64(q)
		})
		p.first[q] = int32(at)
	}
	p.first[k] = int32(p.nodes)
	for q := range k {
		p.first[q+1] = max(p.first[q+1], p.first[q]) // a file that is no graph is refused when it is read
	}
	return err
}

func (p *sharing) mine() (lo, hi int32) { return p.first[p.team.Rank], p.first[p.team.Rank+1] }

// ask tells every peer of which of its nodes this one wants to know the owner.
func (p *sharing) ask() error {
	lo, hi := p.mine()
	seen := make([]uint64, (p.nodes+63)/64)
	err := p.runsIn(int(lo), int(hi), true, func(r *partition.Run) error {
		for _, u := range r.Col {
			seen[u/64] |= 1 << (u % 64)
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.wants, p.wantedBy = make([][]int32, p.team.Size), make([][]int32, p.team.Size)
	out := make([][]byte, p.team.Size)
	for q := range out {
		if q == p.team.Rank {
			continue
		}
		var places []int32
		for v := p.first[q]; v < p.first[q+1]; v++ {
			if seen[v/64]>>(v%64)&1 == 1 {
				p.wants[q], places = append(p.wants[q], v), append(places, v-p.first[q])
			}
		}
		out[q] = appendCounted(nil, places)
	}
	in, err := p.swap("nodes that edges come from", out, 16+5*p.nodes)
	if err != nil {
		return err
	}
	for q, b := range in {
		if q == p.team.Rank {
			continue
		}
		if p.wantedBy[q], err = countedGaps(b, int(hi-lo)); err != nil {
			return fault(q, "nodes that edges come from", "%w", err)
		}
		for k := range p.wantedBy[q] {
			p.wantedBy[q][k] += lo
		}
	}
	return nil
}

// appendCounted appends the length of an ascending list to b, and the list.
func appendCounted(b []byte, list []int32) []byte {
	return shard.AppendGaps(binary.AppendUvarint(b, uint64(len(list))), list)
}

// countedGaps reads a list in [0, limit) with its length before it, which is all that b holds.
func countedGaps(b []byte, limit int) ([]int32, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return nil, errors.New("its length is missing")
	}
	list, rest, err := shard.ParseGaps(b[size:], n, limit)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes follow the list", len(rest))
	}
	return list, err
}
