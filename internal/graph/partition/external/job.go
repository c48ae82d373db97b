package external

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Job sets how a stored graph is partitioned.
type Job struct {
	Policy partition.Policy
	Parts  int        // 0 = as many as the graph has natural owners
	Memory int64      // bytes that the work may take (0 = any); a job that needs more is refused
	Meta   shard.Meta // Seed is the policy's
	// Watch is called with the progress by the goroutine that works. An error that it returns ends the work.
	Watch func(Progress) error
}

// Progress is how far a job is.
type Progress struct {
	Phase       string // "check", "cluster", "join clusters", "assign", "keep bounds", "deal", "halo", "write"
	Step, Steps int    // of all
	Done, Total int64  // edges of the step; of phases that have no edges, parts or bytes
}

// spills is the folder for what belongs to each part until its file is written; shard.Discard knows its name.
const spills = "part-work"

// PhaseTimes is how long a phase of a job took.
type PhaseTimes struct {
	Phase   string
	Seconds float64
	Edges   int64 // read
}

// runner is a job at work.
type runner struct {
	*Stored
	Job
	dir   string // incomplete partition
	step  Progress
	began time.Time
	took  []PhaseTimes
	owner []int32
	print [32]byte // fingerprint of the partition
	dealt []dealing
	to    []int32      // [N] source in the part that is written
	halo  [][]int64    // [K][K+1] halo pointers
	cut   []int64      // [K] edges from halo nodes
	parts []shard.Part // written
}

// Write partitions the graph into dir. The files are as shard.WriteDir makes them for the graph in memory, the same
// policy and seed, to the bit. It takes 9 bytes of memory a node and some for buffers; only partition.Multilevel reads
// all edges into memory. Until all is written the directory is called dir.incomplete; on an error nothing is left. It
// returns the manifest and how long the phases took.
func (s *Stored) Write(dir string, job Job) (*shard.Manifest, []PhaseTimes, error) {
	if job.Parts == 0 {
		job.Parts = s.sites
	}
	if err := shard.CheckParts(s.nodes, job.Parts); err != nil {
		return nil, nil, err
	}
	if err := s.fits(job); err != nil {
		return nil, nil, err
	}
	r := &runner{Stored: s, Job: job}
	var m *shard.Manifest
	err := shard.WriteWhole(dir, func(tmp string) (err error) {
		r.dir = tmp
		m, err = r.writeParts()
		return err
	})
	return m, r.took, err
}

// fits returns an error if the job takes more memory than it may.
func (s *Stored) fits(job Job) error {
	n, k := int64(s.nodes), int64(job.Parts)
	need := 8*n + n/8 + 1<<25 + readAhead + k*bufferOf(job.Parts)*2
	if more, whole := partition.Needs(job.Policy, n, s.edges); whole {
		need = more
	} else {
		need += more
	}
	if job.Memory > 0 && need > job.Memory {
		return fmt.Errorf("%d nodes and %d edges in %d parts need about %d MiB of memory, with %d allowed: "+
			"allow more, or take another policy", n, s.edges, k, need>>20, job.Memory>>20)
	}
	return nil
}

// bufferOf returns the bytes of a buffer if there is one for each part.
func bufferOf(parts int) int64 { return int64(min(1<<16, max(1<<12, 1<<26/parts))) }

// phase begins a step of the job; the seconds until end is called are its.
func (r *runner) phase(name string, total int64) error {
	r.step.Phase, r.step.Done, r.step.Total = name, 0, total
	r.began = time.Now()
	return r.advance(0)
}

// advance counts what of the step is done.
func (r *runner) advance(n int64) error {
	r.step.Done += n
	if r.Watch == nil {
		return nil
	}
	return r.Watch(r.step)
}

// end notes that the step is done.
func (r *runner) end(edges int64) {
	r.step.Step++
	at := slices.IndexFunc(r.took, func(t PhaseTimes) bool { return t.Phase == r.step.Phase })
	if at < 0 {
		at = len(r.took)
		r.took = append(r.took, PhaseTimes{Phase: r.step.Phase})
	}
	r.took[at].Seconds += time.Since(r.began).Seconds()
	r.took[at].Edges += edges
}

// read returns the graph in memory for a policy that looks at it as a whole.
func (r *runner) read(edges bool) (*graph.Graph, error) {
	g, err := r.hollow()
	if err != nil || !edges {
		return g, err
	}
	return g, r.fill(g, watched{r})
}

// watched is the graph as a source whose runs are counted as progress.
type watched struct{ *runner }

// Runs implements partition.Source.
func (w watched) Runs(edges bool, f func(*partition.Run) error) error {
	return w.Stored.Runs(edges, func(r *partition.Run) error {
		if err := f(r); err != nil {
			return err
		}
		if !edges {
			return w.advance(0)
		}
		return w.advance(int64(len(r.Col)))
	})
}

// writeParts does all steps of the job.
func (r *runner) writeParts() (*shard.Manifest, error) {
	kinds := partition.Steps(r.Policy)
	r.dealt = r.dealings()
	r.step.Steps = 1 + len(kinds) + len(r.dealt) + 2*r.Parts
	if err := os.Mkdir(filepath.Join(r.dir, spills), 0o777); err != nil {
		return nil, err
	}
	digest, err := r.check()
	if err != nil {
		return nil, err
	}
	if err := r.assign(kinds); err != nil {
		return nil, err
	}
	r.print = shard.Fingerprint(digest, r.owner, r.Parts)
	for _, s := range r.dealt {
		if err := s.do(r); err != nil {
			return nil, err
		}
	}
	for _, do := range []func(p int) error{r.findHalo, r.part} {
		for p := range r.Parts {
			if err := do(p); err != nil {
				return nil, err
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(r.dir, spills)); err != nil {
		return nil, err
	}
	return r.manifest()
}

// check reads the whole file, compares it with its checksums and returns the graph's digest.
func (r *runner) check() (digest [32]byte, err error) {
	total := int64(0)
	for _, s := range r.file.Sections() {
		total += s.Bytes()
	}
	if err := r.phase("check", total); err != nil {
		return digest, err
	}
	h := sha256.New()
	if err := r.digest(&meter{h, r}); err != nil {
		return digest, err
	}
	r.end(r.edges)
	return [32]byte(h.Sum(nil)), nil
}

// meter counts bytes as progress.
type meter struct {
	io.Writer
	r *runner
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Writer.Write(b)
	return n, errors.Join(err, m.r.advance(int64(n)))
}

// assign finds the owners of all nodes.
func (r *runner) assign(kinds []string) error {
	if err := r.phase(kinds[0], r.edges); err != nil {
		return err
	}
	work, err := partition.Begin(r.Policy, watched{r}, r.Parts, partition.Key(r.Meta.Seed), r.read)
	if err != nil {
		return err
	}
	for k, kind := range kinds {
		if err := r.phase(kind, r.edges); err != nil {
			return err
		}
		if err := work.Step(k); err != nil {
			return err
		}
		r.end(r.step.Done)
	}
	r.owner = work.Owner
	return nil
}
