package killrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// A marker is a line of a peer's log that tells how far it is.
type marker struct {
	kind  string // one of the kinds
	stage string
	round int
}

// The kinds of markers, as peers log them where HEDDLE_LOG is debug.
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

// parseMarker reads a line of slog's text handler; not ok, it is another line.
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

// phase is when a peer is killed: a little after it has logged a marker.
type phase struct {
	name   string
	spread time.Duration                // from the marker to the kill, at most
	marker func(rng.Key) marker         // to wait for; the zero marker: none
	in     func(last marker) (yes bool) // whether a peer is in the phase that has logged this last
}

func fixed(m marker) func(rng.Key) marker { return func(rng.Key) marker { return m } }

func stageName(layer int) string { return fmt.Sprintf("layer %d", layer) }

var phases = []phase{
	{"meeting", 400 * time.Millisecond, fixed(marker{kind: meeting}),
		func(last marker) bool { return last.kind == meeting }},
	{"mid-stage", 20 * time.Millisecond, func(key rng.Key) marker {
		return marker{kind: roundDone, stage: stageName(1 + int(key.Uint64(0)%layers)),
			round: int(key.Uint64(1) % (rounds - 1))}
	}, func(last marker) bool { return last.kind == roundDone && last.round < rounds-1 }},
	{"between stages", 20 * time.Millisecond, fixed(marker{kind: stageDone, stage: stageName(1)}),
		func(last marker) bool {
			return last.kind == stageDone && last.stage != stageName(layers)
		}},
	{"last barrier", 25 * time.Millisecond, fixed(marker{kind: stageDone, stage: stageName(layers)}),
		func(last marker) bool {
			return last.kind == stageDone && last.stage == stageName(layers)
		}},
	{"random", 0, fixed(marker{}), func(last marker) bool { return last.kind != "" }},
}

func phaseNames() (names []string) {
	for _, p := range phases {
		names = append(names, p.name)
	}
	return names
}

// parsePhases takes names with commas between; empty: all.
func parsePhases(s string) (out []phase, err error) {
	if s == "" {
		return phases, nil
	}
	for _, name := range strings.Split(s, ",") {
		i := slices.IndexFunc(phases, func(p phase) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("phase must be one of %s (got %q)", strings.Join(phaseNames(), ", "), name)
		}
		out = append(out, phases[i])
	}
	return out, nil
}
