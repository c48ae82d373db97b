package train

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// FuzzGreeting: no bytes make the reader panic, and what it accepts encodes to the same bytes.
func FuzzGreeting(f *testing.F) {
	g := Greeting{Rank: 2, Size: 5, Config: [32]byte{1}, Partition: [32]byte{31: 9}}
	f.Add(g.encode())
	g.Checkpoints = []uint64{3, 1<<32 | 7}
	f.Add(g.encode())
	f.Add(g.encode()[:75])
	f.Add(append(g.encode(), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b)
		if err != nil {
			return
		}
		if len(g.Checkpoints) > maxCheckpoints {
			t.Errorf("%d checkpoints", len(g.Checkpoints))
		}
		if again := g.encode(); !bytes.Equal(again, b) {
			t.Errorf("% x parses to %+v, which encodes to % x", b, g, again)
		}
	})
}

func TestGreeting(t *testing.T) {
	g := Greeting{Rank: 2, Size: 5, Config: [32]byte{1}, Partition: [32]byte{31: 9}, Generation: 7, Agreed: 6,
		Seq: 1<<32 | 7, State: [32]byte{4}, Checkpoints: []uint64{3, 1<<32 | 7}}
	got, err := parseGreeting(g.encode())
	if err != nil || !reflect.DeepEqual(got, g) {
		t.Errorf("%+v, %v, want %+v", got, err, g)
	}
	for _, n := range []int{0, greetingLen(0) - 1, greetingLen(0) + 1, greetingLen(maxCheckpoints) + 8} {
		if _, err := parseGreeting(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were taken for a greeting", n)
		}
	}
}

var shape = SnapshotShape{Stages: 3, Rounds: 5, Labels: 2, Params: 4, Heads: 2, Slab: 3}

func snapshot() Snapshot {
	s := Snapshot{At: Position{Stage: 1, Round: 2, Best: 0.5, BestLoss: 0.7, BestRound: 1}, Labels: []float64{3, 4},
		Params: []float32{1, 2, 3, 4}, Heads: []float32{6, 7}, Slab: []float32{5, 6, 7}, Best: []float32{8, 9, 1},
		Steps: 2, Moments: [][]float32{{1, 2}, {3, 4}}, Agreed: 3}
	for k := range 2 {
		s.Rounds = append(s.Rounds, 1, float64(k), 0.5, math.NaN(), 0.25, 0, 0, 0)
	}
	s.Stages = []float64{0, 4, 0.5, 0.5, 0.6, 0.6, 0, 0, 0}
	return s
}

// TestSnapshotTravelsWhole: a snapshot parses to what it was, and nothing else is accepted as one.
func TestSnapshotTravelsWhole(t *testing.T) {
	b := snapshot().encode()
	s, err := shape.parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := s.encode(); !bytes.Equal(b, again) {
		t.Error("parsed and encoded again the snapshot is another")
	}
	if s.Digest() != snapshot().Digest() {
		t.Error("parsed, the snapshot has another digest")
	}
	for n := range b {
		if _, err := shape.parse(b[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for a snapshot", n, len(b))
		}
	}
	if _, err := shape.parse(append(slices.Clone(b), 0)); err == nil {
		t.Error("a byte too many was taken")
	}
	for _, test := range []struct {
		spoil func(*Snapshot)
		want  string
	}{
		{func(s *Snapshot) { s.At.Stage = 77 }, "stage 77"},
		{func(s *Snapshot) { s.At.Round = 6 }, "round 6"},
		{func(s *Snapshot) { s.At.BestRound = 6 }, "best of round 6"},
		{func(s *Snapshot) { s.At.Best = math.NaN() }, "not a number"},
		{func(s *Snapshot) { s.Labels = s.Labels[1:] }, "2 label counts (got 1)"},
		{func(s *Snapshot) { s.Labels = []float64{3, -1} }, "whole numbers of at least 0"},
		{func(s *Snapshot) { s.Labels = []float64{math.NaN(), 1} }, "whole numbers of at least 0"},
		{func(s *Snapshot) { s.Params = s.Params[1:] }, "4 parameters (got 3)"},
		{func(s *Snapshot) { s.Heads = s.Params }, "at most 2 values of heads (got 4)"},
		{func(s *Snapshot) { s.Slab, s.Best = s.Params, s.Params }, "at most 3 parameters in training"},
		{func(s *Snapshot) { s.Moments = make([][]float32, 3) }, "2 moments (got 3, 3 and 3)"},
		{func(s *Snapshot) { s.Params[1] = float32(math.NaN()) }, "NaN among its values"},
		{func(s *Snapshot) { s.Moments[1][0] = float32(math.Inf(1)) }, "+Inf among its values"},
	} {
		s := snapshot()
		test.spoil(&s)
		if _, err := shape.parse(s.encode()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want a word on %q", err, test.want)
		}
	}
	full := Snapshot{Labels: make([]float64, 2), Params: make([]float32, 4), Heads: make([]float32, 2),
		Slab: make([]float32, 3), Best: make([]float32, 3), Moments: [][]float32{make([]float32, 3),
			make([]float32, 3)}, Rounds: make([]float64, 3*5*roundColumns), Stages: make([]float64, 3*stageColumns)}
	if n := len(full.encode()); n != shape.most() {
		t.Errorf("the largest snapshot has %d bytes, want the bound of %d", n, shape.most())
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(snapshot().encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := shape.parse(b)
		if err != nil {
			return
		}
		if again := s.encode(); !bytes.Equal(b, again) {
			t.Errorf("% x parses to % x", b, again)
		}
	})
}

// TestDecide: all that differ in a plan or a partition are refused by name; otherwise the newest checkpoint that all
// have counts or, where a state is anybody's, the furthest of the newest generation that most have.
func TestDecide(t *testing.T) {
	own := Participant{Size: 3, Config: [32]byte{1}, Partition: [32]byte{2}, Own: true}
	shared := own
	shared.Own = false
	at := func(agreed, seq uint64, state byte) Greeting {
		return Greeting{Agreed: agreed, Seq: seq, State: [32]byte{state}}
	}
	has := func(seqs ...uint64) Greeting { return Greeting{Checkpoints: seqs} }
	for _, test := range []struct {
		name string
		p    Participant
		all  []Greeting
		want Decision
	}{
		{"nobody has anything", shared, []Greeting{{}, {}, {}}, Decision{}},
		{"furthest", shared, []Greeting{at(1, 4, 1), at(1, 6, 2), {}}, Decision{Seq: 6, From: 1}},
		{"newest generation", shared, []Greeting{at(1, 9, 1), at(2, 6, 2), at(2, 5, 3)}, Decision{Seq: 6, From: 1}},
		{"most", shared, []Greeting{at(1, 6, 1), at(1, 6, 2), at(1, 6, 2)}, Decision{Seq: 6, From: 1}},
		{"a checkpoint of all", own, []Greeting{has(9, 6, 4), has(6, 4), has(9, 6)}, Decision{Seq: 6}},
		{"none of all", own, []Greeting{has(9), has(6), has(9, 6)}, Decision{}},
	} {
		for r := range test.all {
			test.all[r].Rank, test.all[r].Size, test.all[r].Config, test.all[r].Partition = r, 3, own.Config,
				own.Partition
		}
		if d, err := test.p.Decide(test.all); err != nil || !reflect.DeepEqual(d, test.want) {
			t.Errorf("%s: %+v, %v, want %+v", test.name, d, err, test.want)
		}
	}
	alike := func() []Greeting {
		all := make([]Greeting, 3)
		for r := range all {
			all[r] = Greeting{Rank: r, Size: 3, Config: own.Config, Partition: own.Partition}
		}
		return all
	}
	for want, spoil := range map[string]func(*Greeting){
		"peer 1 takes itself for rank 2 of 3":          func(g *Greeting) { g.Rank = 2 },
		"peer 1 takes itself for rank 1 of 4":          func(g *Greeting) { g.Size = 4 },
		"peer 1 has another plan":                      func(g *Greeting) { g.Config[0]++ },
		"peer 1 has a shard of another partition: its": func(g *Greeting) { g.Partition[0]++ },
	} {
		all := alike()
		spoil(&all[1])
		for _, p := range []Participant{own, shared} {
			if _, err := p.Decide(all); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	all := alike()
	all[1] = Greeting{}
	for _, p := range []Participant{own, shared} {
		if _, err := p.Decide(all); err == nil {
			t.Error("one is absent, and nobody can do without it")
		}
	}
}

// TestCheckpoint: what is saved is what is read; a checkpoint of another run, of another rank or of another version is
// refused by name, a damaged one is passed over, and newer ones are gone after a restore.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	p := Participant{Rank: 1, Size: 2, Config: [32]byte{1}, Model: [32]byte{2}, Partition: [32]byte{3}, Shape: shape,
		Checkpoints: &checkpoint.Store{Dir: dir}}
	if c, err := p.newest(); c != nil || err != nil {
		t.Fatalf("%v, %v, want none", c, err)
	}
	c := &Checkpoint{Snapshot: snapshot(), Sent: comm.Counts{Halo: 1, Reduce: 2, Control: 3},
		Header: json.RawMessage(`{"shapes":{}}`), F32: map[string][]float32{"full/z": {1, 2}},
		I64: map[string][]int64{"full/col": {3}}}
	saved := []uint64{c.At.Seq(), c.At.Seq() + 1}
	for range saved {
		if err := p.saveCheckpoint(c); err != nil {
			t.Fatal(err)
		}
		c.At.Round++
	}
	c.At.Round -= 2
	got, err := p.restore(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.encode(), c.encode()) || got.Agreed != c.Agreed || got.Sent != c.Sent ||
		!bytes.Equal(got.Header, c.Header) || !slices.Equal(got.F32["full/z"], c.F32["full/z"]) ||
		!slices.Equal(got.I64["full/col"], c.I64["full/col"]) {
		t.Errorf("%+v, want %+v", got, c)
	}
	if list, err := p.Checkpoints.List(); err != nil || !slices.Equal(list, saved[:1]) {
		t.Errorf("%v, %v are left after the restore, want %v", list, err, saved[:1])
	}
	for which, other := range map[string]func(*Participant){
		"config": func(p *Participant) { p.Config[0]++ }, "model": func(p *Participant) { p.Model[0]++ },
		"shard": func(p *Participant) { p.Partition[0]++ }, "shard ": func(p *Participant) { p.Rank-- },
	} {
		p := p
		other(&p)
		_, err := p.newest()
		if mismatch, ok := errors.AsType[*checkpoint.MismatchError](err); !ok ||
			!slices.Equal(mismatch.Which, []string{strings.TrimSpace(which)}) {
			t.Errorf("%v, want another %s", err, which)
		}
	}
	old := &checkpoint.State{Fingerprints: p.fingerprints(), Header: []byte(`{"position":{"stage":1,"round":4}}`)}
	if err := p.Checkpoints.Save(saved[1]+3, old); err != nil {
		t.Fatal(err)
	}
	if _, err := p.newest(); err == nil || !strings.Contains(err.Error(), "another version") ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want that %s is of another version", err, dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "state-*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v, want two states", files, err)
	}
	if err := os.WriteFile(files[1], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := p.newest(); err != nil || c == nil || c.At.Seq() != saved[0] {
		t.Errorf("%v, %v, want the checkpoint before the damaged one", c, err)
	}
}

// eachOfTwo runs do as each of two members of a group, and returns their errors.
func eachOfTwo(do func(rank int, g *comm.Group) error) (errs [2]error) {
	network := netsim.New(2, netsim.Config{})
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			g := comm.NewGroup(network.Transport(r), r, 2)
			defer g.Close()
			errs[r] = do(r, g)
		})
	}
	all.Wait()
	return errs
}

// TestGreetAndFetch: the generation is one above all in which the members took part, and is kept. A member with another
// state gets the furthest, with its own bytes for rounds in which it took part, and all that it has sent for the rest.
func TestGreetAndFetch(t *testing.T) {
	dir := t.TempDir()
	var fetched [2]*Snapshot
	errs := eachOfTwo(func(rank int, g *comm.Group) error {
		p := Participant{Rank: rank, Size: 2, Shape: shape,
			Checkpoints: &checkpoint.Store{Dir: filepath.Join(dir, string(rune('0'+rank)))}}
		mine := snapshot()
		if rank == 1 { // a round behind
			mine.At.Round--
			mine.Rounds = mine.Rounds[:roundColumns]
			copy(mine.Rounds[roundColumns-sentColumns:], []float64{10, 20, 30})
		}
		all, generation, err := p.greet(t.Context(), g, uint64(4+rank), &mine)
		if err != nil {
			return err
		}
		if kept, err := p.highest(0); generation != 6 || kept != 6 || err != nil {
			t.Errorf("peer %d: generation %d, kept %d, %v, want 6", rank, generation, kept, err)
		}
		d, err := p.Decide(all)
		if err != nil {
			return err
		}
		fetched[rank], err = p.fetch(t.Context(), g, all, d.From, mine, comm.Counts{Halo: 1, Reduce: 2, Control: 3})
		return err
	})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if fetched[0] != nil || fetched[1] == nil {
		t.Fatalf("%v, want that peer 1 alone fetches", fetched)
	}
	sent := func(row int) []float64 {
		return fetched[1].Rounds[(row+1)*roundColumns-sentColumns : (row+1)*roundColumns]
	}
	if !slices.Equal(sent(0), []float64{10, 20, 30}) || !slices.Equal(sent(1), []float64{1, 2, 3}) {
		t.Errorf("bytes %v and %v, want its own of the round it had a part in, and all so far of the other", sent(0),
			sent(1))
	}
}

// TestGenerationFarAhead: a generation number far beyond one's own is refused by the name of its sender, so that no
// member can use up all numbers.
func TestGenerationFarAhead(t *testing.T) {
	for lead, want := range map[uint64]bool{maxGenerationLead: true, maxGenerationLead + 1: false, 1<<64 - 2: false} {
		errs := eachOfTwo(func(rank int, g *comm.Group) error {
			_, _, err := Participant{Rank: rank, Size: 2, Shape: shape}.greet(t.Context(), g, lead*uint64(rank), nil)
			return err
		})
		at, ok := errors.AsType[*comm.PeerError](errs[0])
		if want && errs[0] != nil ||
			!want && (!ok || at.Rank != 1 || !strings.Contains(errs[0].Error(), "too far beyond")) {
			t.Errorf("lead %d: %v", lead, errs[0])
		}
	}
}

// TestGenerationIsKept: the highest of this process and of those before it counts, and a file that is not a number is
// named.
func TestGenerationIsKept(t *testing.T) {
	p := Participant{Checkpoints: &checkpoint.Store{Dir: t.TempDir()}}
	if n, err := p.highest(3); n != 3 || err != nil {
		t.Errorf("%d, %v, want 3", n, err)
	}
	for last, want := range map[uint64]uint64{3: 1<<63 + 5, 1<<63 + 6: 1<<63 + 6} {
		if err := p.keep(1<<63 + 5); err != nil {
			t.Fatal(err)
		}
		if n, err := p.highest(last); n != want || err != nil {
			t.Errorf("%d, %v, want %d", n, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(p.Checkpoints.Dir, generationNote), []byte("many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.highest(0); err == nil || !strings.Contains(err.Error(), `"many`) ||
		!strings.Contains(err.Error(), p.Checkpoints.Dir) {
		t.Errorf("a generation that is not a number: %v", err)
	}
}

// TestForgedState: a member that sends a state of another position than it announced is named.
func TestForgedState(t *testing.T) {
	errs := eachOfTwo(func(rank int, g *comm.Group) error {
		p := Participant{Rank: rank, Size: 2, Shape: shape}
		mine := snapshot()
		mine.At.Round -= rank
		all, _, err := p.greet(t.Context(), g, 0, &mine)
		if err != nil {
			return err
		}
		if rank == 0 {
			mine.At.Round = 1
		}
		_, err = p.fetch(t.Context(), g, all, 0, mine, comm.Counts{})
		return err
	})
	if at, ok := errors.AsType[*comm.PeerError](errs[1]); !ok || at.Rank != 0 ||
		!strings.Contains(errs[1].Error(), "announced was") {
		t.Errorf("%v, want an error that names peer 0", errs[1])
	}
	b := snapshot().encode()
	binary.LittleEndian.PutUint64(b, 0)
	if _, err := shape.parse(b); err == nil {
		t.Error("a state of no position was taken")
	}
}
