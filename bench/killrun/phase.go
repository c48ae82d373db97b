package killrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/rng"
)

// A marker is a line of a peer's log that shows how far it is.
type marker struct {
	kind  string // one of the kinds
	stage string
	round int
}

// The kinds of markers, as peers log them if HEDDLE_LOG is debug.
const (
	meeting   = "meeting the other peers"
	begun     = "session begun"
	roundDone = "round done"
	stageDone = "stage done"
)

func (m marker) String() string {
	switch m.kind {
	case roundDone:
		return fmt.Sprintf("%s, %s, round %d", m.kind, m.stage, m.round)
	case stageDone:
		return fmt.Sprintf("%s, %s", m.kind, m.stage)
	}
	return m.kind
}

// parseMarker reads a line of slog's text handler; ok is false for any other line.
func parseMarker(line string) (m marker, ok bool) {
	for _, kind := range []string{meeting, begun, roundDone, stageDone} {
		if strings.Contains(line, fmt.Sprintf("msg=%q", kind)) {
			m.kind = kind
		}
	}
	if _, rest, found := strings.Cut(line, "stage="); found && strings.HasPrefix(rest, `"`) {
		m.stage, _, _ = strings.Cut(rest[1:], `"`)
	} else if found {
		m.stage, _, _ = strings.Cut(rest, " ")
	}
	if _, rest, found := strings.Cut(line, " round="); found {
		fmt.Sscan(rest, &m.round)
	}
	return m, m.kind != ""
}

// method is a way to train.
type method struct {
	name           string
	settings, join []string // of its plan, and flags of its members
	stages         []stage
	config         string // settings of its plan that have no flag, as YAML
}

// stage is a layer, or all of class means.
type stage struct {
	name   string
	rounds int
}

var (
	small = []string{"--hidden", "8", "--layers", "2", "--rounds", "12"}
	often = []string{"--checkpoint-every", "5"}

	// methods are all four; class-means, the default, has no settings here.
	methods = []method{
		{"layer-wise", append([]string{"--encoder", "raw"}, small...), often, []stage{{"layer 1", 12}, {"layer 2", 12}},
			""},
		{"class-means", nil, nil, []stage{{"closed form", 3}}, ""},
		{"full-batch", small, often, []stage{{"all layers", 12}}, // bits do not depend on which row arrives first
			"method: full-batch\nfull_batch: {experimental: {order: fixed}}\n"},
		{"mini-batch", small, often, []stage{{"all layers", 12}}, ""},
	}
)

func (m method) first() stage { return m.stages[0] }

func (m method) last() stage { return m.stages[len(m.stages)-1] }

// goesOn reports whether a round of a stage has others after it.
func (m method) goesOn(last marker) bool {
	return slices.ContainsFunc(m.stages, func(s stage) bool { return s.name == last.stage && last.round < s.rounds-1 })
}

// phase is when a peer is killed: a little after it has logged a marker.
type phase struct {
	name   string
	spread time.Duration                          // from the marker to the kill, at most
	marker func(method, rng.Key) marker           // to wait for (zero = none)
	in     func(m method, last marker) (yes bool) // whether a peer is in the phase that has logged this last
}

const between = "between stages"

func fixed(m marker) func(method, rng.Key) marker { return func(method, rng.Key) marker { return m } }

var phases = []phase{
	{"meeting", 400 * time.Millisecond, fixed(marker{kind: meeting}),
		func(_ method, last marker) bool { return last.kind == meeting }},
	{"mid-stage", 20 * time.Millisecond, func(m method, key rng.Key) marker {
		s := m.stages[key.Uint64(0)%uint64(len(m.stages))]
		return marker{kind: roundDone, stage: s.name, round: int(key.Uint64(1) % uint64(s.rounds-1))}
	}, func(m method, last marker) bool { return last.kind == roundDone && m.goesOn(last) }},
	{between, 20 * time.Millisecond,
		func(m method, _ rng.Key) marker { return marker{kind: stageDone, stage: m.first().name} },
		func(m method, last marker) bool { return last.kind == stageDone && last.stage != m.last().name }},
	{"last barrier", 25 * time.Millisecond,
		func(m method, _ rng.Key) marker { return marker{kind: stageDone, stage: m.last().name} },
		func(m method, last marker) bool { return last.kind == stageDone && last.stage == m.last().name }},
	{lastMoments, 0, fixed(marker{kind: begun}),
		func(_ method, last marker) bool { return last.kind != "" && last.kind != meeting }},
	{"random", 0, fixed(marker{}), func(_ method, last marker) bool { return last.kind != "" }},
}

// lastMoments is the phase of the last end of a run, by how long an undisturbed one takes.
const (
	lastMoments = "last 100 ms"
	lastSpread  = 100 * time.Millisecond
)

// fits reports whether a method has the phase.
func (p phase) fits(m method) bool { return p.name != between || len(m.stages) > 1 }

func (p phase) String() string { return p.name }

func (m method) String() string { return m.name }

// parse takes names of some of all with commas between (empty = all). what is what they are.
func parse[T fmt.Stringer](what string, all []T, s string) (out []T, err error) {
	if s == "" {
		return all, nil
	}
	for _, name := range strings.Split(s, ",") {
		i := slices.IndexFunc(all, func(one T) bool { return one.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("%s must be one of %v (got %q)", what, all, name)
		}
		out = append(out, all[i])
	}
	return out, nil
}
