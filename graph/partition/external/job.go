package external

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// Job says how a stored graph is partitioned.
type Job struct {
	Policy partition.Policy
	Parts  int        // 0: as many as the graph has natural owners
	Memory int64      // bytes that the work may take, 0: any; what it needs more it refuses to begin
	Meta   shard.Meta // Seed is the policy's
	// Watch hears how far it is, from the goroutine that works. An error that it returns ends the
	// work, which a later call of the same job goes on with.
	Watch func(Progress) error
}

// Progress is how far a job is.
type Progress struct {
	Phase       string // "check", "cluster", "join clusters", "assign", "keep bounds", "deal", "halo", "write"
	Step, Steps int    // of all
	Done, Total int64  // edges of the step; of phases that have no edges, parts or bytes
}

// work is the directory within the incomplete partition that holds what is resumed; its name lets
// shard.Discard know it.
const work = "part-work"

// journal is what of a job is done.
type journal struct {
	Format int          // 1
	Job    string       // what the job depends on
	Graph  string       // graph.Graph.Digest in hexadecimal; "": not checked yet
	Step   int          // assignments done, whose owners are in the file of that number
	Dealt  []string     // sections that are dealt to the parts
	Halo   [][]int64    // [parts done][K+1] halo pointers
	Cut    []int64      // [parts done] edges from halo nodes
	Parts  []shard.Part // written
	Took   []PhaseTimes // seconds of each phase
	// Sums are the checksums of the files that going on needs: they are not synced, so that a
	// machine that fails may lose of them what a process that is killed does not.
	Sums map[string]uint32
}

// PhaseTimes is how long a phase of a job took, of all calls that it took.
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
	done  journal
	step  Progress
	began time.Time
	owner []int32
	print [32]byte
	to    []int32 // [N] source in the part that is written
}

// Write partitions the graph into dir as shard.WriteDir does of what Partition makes of the graph
// in memory by the same policy and seed: the same bytes. It takes 9 bytes of memory a node and some
// for buffers; only partition.Multilevel reads all edges into memory. Until all is written the
// directory is called dir.incomplete, and holds what is needed to go on after an interruption: the
// same job goes on there, another begins anew. It returns the manifest and how long the phases
// took.
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
	dir = filepath.Clean(dir)
	if err := shard.Vacant(dir); err != nil {
		return nil, nil, err
	}
	r := &runner{Stored: s, Job: job, dir: shard.Incomplete(dir)}
	if err := r.resume(); err != nil {
		return nil, nil, err
	}
	m, err := r.run()
	if err != nil {
		return nil, r.done.Took, err
	}
	if err := os.RemoveAll(filepath.Join(r.dir, work)); err != nil {
		return nil, nil, err
	}
	return m, r.done.Took, shard.Publish(r.dir, dir)
}

// fits returns an error where the job takes more memory than it may.
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

// bufferOf returns the bytes of a buffer of which there is one a part.
func bufferOf(parts int) int64 { return int64(min(1<<16, max(1<<12, 1<<26/parts))) }

func (r *runner) path(name string) string { return filepath.Join(r.dir, work, name) }

// resume reads the journal of the same job, or begins anew.
func (r *runner) resume() error {
	id := sha256.New()
	fmt.Fprintf(id, "%s %d %d %+v", r.Meta.Policy, r.Meta.Seed, r.Parts, partition.GoalOf(r.Policy))
	if err := r.file.Table(id); err != nil {
		return err
	}
	job := hex.EncodeToString(id.Sum(nil))
	b, err := os.ReadFile(r.path("journal"))
	if err == nil && json.Unmarshal(b, &r.done) == nil && r.done.Format == 1 && r.done.Job == job && r.intact() {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := shard.Discard(r.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.dir, work), 0o777); err != nil {
		return err
	}
	r.done = journal{Format: 1, Job: job, Sums: make(map[string]uint32)}
	return r.save()
}

func (r *runner) save() error { return writeJournal(r.path("journal"), r.done) }

// writeJournal writes what is done of some work beside its files.
func writeJournal(path string, done any) error {
	b, err := json.Marshal(done)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// seal notes the checksum of a file in the work directory.
func (r *runner) seal(path string) error {
	sum, err := checksum(path)
	r.done.Sums[filepath.Base(path)] = sum
	return err
}

// intact reports whether the files that the journal needs are as they were sealed.
func (r *runner) intact() bool {
	for name, want := range r.done.Sums {
		if sum, err := checksum(r.path(name)); err != nil || sum != want {
			return false
		}
	}
	return r.done.Sums != nil
}

// forget takes files that are no longer needed out of the journal, and returns what removes them
// once it is saved.
func (r *runner) forget(paths ...string) (remove func()) {
	for _, path := range paths {
		delete(r.done.Sums, filepath.Base(path))
	}
	return func() {
		for _, path := range paths {
			os.Remove(path) // where it is there: not everything was dealt
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	_, err = io.Copy(h, f)
	return h.Sum32(), err
}

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
func (r *runner) end(edges int64) error {
	r.step.Step++
	at := slices.IndexFunc(r.done.Took, func(t PhaseTimes) bool { return t.Phase == r.step.Phase })
	if at < 0 {
		at = len(r.done.Took)
		r.done.Took = append(r.done.Took, PhaseTimes{Phase: r.step.Phase})
	}
	r.done.Took[at].Seconds += time.Since(r.began).Seconds()
	r.done.Took[at].Edges += edges
	return r.save()
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

func (r *runner) run() (*shard.Manifest, error) {
	kinds, sections := partition.Steps(r.Policy), r.dealt()
	r.step.Steps = 1 + len(kinds) + len(sections) + 2*r.Parts
	if r.done.Graph == "" {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	r.step.Step = 1
	if err := r.assign(kinds); err != nil {
		return nil, err
	}
	digest, err := hex.DecodeString(r.done.Graph)
	if err != nil || len(digest) != 32 {
		return nil, fmt.Errorf("%s: graph %q", r.path("journal"), r.done.Graph)
	}
	r.print = shard.Fingerprint([32]byte(digest), r.owner, r.Parts)
	r.step.Step = 1 + len(kinds)
	for _, s := range sections {
		if slices.Contains(r.done.Dealt, s.name) {
			r.step.Step++
			continue
		}
		if err := s.do(r); err != nil {
			return nil, err
		}
	}
	for _, of := range []struct {
		done int
		do   func(p int) error
	}{{len(r.done.Halo), r.halo}, {len(r.done.Parts), r.part}} {
		r.step.Step += of.done
		for p := of.done; p < r.Parts; p++ {
			if err := of.do(p); err != nil {
				return nil, err
			}
		}
	}
	return r.manifest()
}

// check reads the whole file, compares it with its checksums and computes the graph's digest.
func (r *runner) check() error {
	total := int64(0)
	for _, s := range r.file.Sections() {
		total += s.Bytes()
	}
	if err := r.phase("check", total); err != nil {
		return err
	}
	h := sha256.New()
	if err := r.digest(&meter{h, r}); err != nil {
		return err
	}
	r.done.Graph = hex.EncodeToString(h.Sum(nil))
	return r.end(r.edges)
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

// assign does the steps that are not done, and keeps the owners after each.
func (r *runner) assign(kinds []string) error {
	if err := r.phase(kinds[min(r.done.Step, len(kinds)-1)], r.edges); err != nil {
		return err
	}
	work, err := partition.Begin(r.Policy, watched{r}, r.Parts, partition.Key(r.Meta.Seed), r.read)
	if err != nil {
		return err
	}
	r.owner = work.Owner
	if k := r.done.Step; k > 0 {
		if k > len(kinds) {
			return fmt.Errorf("%s: %d assignments of %d", r.path("journal"), k, len(kinds))
		}
		if err := r.readOwners(k); err != nil {
			return err
		}
	}
	r.step.Step += r.done.Step
	for k := r.done.Step; k < len(kinds); k++ {
		if err := r.phase(kinds[k], r.edges); err != nil {
			return err
		}
		if err := work.Step(k); err != nil {
			return err
		}
		if err := r.keepOwners(k + 1); err != nil {
			return err
		}
		remove := r.forget(r.path(ownersAfter(k)))
		r.done.Step = k + 1
		if err := r.end(r.step.Done); err != nil {
			return err
		}
		remove()
	}
	return nil
}

// keepOwners writes what step k left.
func (r *runner) keepOwners(k int) error {
	f, err := os.Create(r.path(ownersAfter(k)))
	if err != nil {
		return err
	}
	if err := errors.Join(section.WriteArray(f, r.owner), f.Close()); err != nil {
		return err
	}
	return r.seal(f.Name())
}

func ownersAfter(k int) string { return fmt.Sprintf("owners-%d", k) }

// readOwners reads what step k left. Clusters are named by nodes, parts are fewer.
func (r *runner) readOwners(k int) error {
	f, err := os.Open(r.path(ownersAfter(k)))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := section.ReadArray(f, r.owner); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	for v, p := range r.owner {
		if p < -1 || int(p) >= r.nodes {
			return fmt.Errorf("%s: owner of node %d is %d: remove %s", f.Name(), v, p, r.dir)
		}
	}
	return nil
}
