package killrun

import (
	"testing"

	"github.com/heddle-gnn/heddle/rng"
)

func TestParseMarker(t *testing.T) {
	for line, want := range map[string]marker{
		`time=2026-11-22T11:29:16.432Z level=DEBUG msg="round done" stage="layer 2" round=10`:                             {roundDone, "layer 2", 10},
		`time=2026-11-22T11:29:16.534Z level=INFO msg="stage done" stage="layer 1" best_round=8 val=0.2 halo_bytes=35426`: {stageDone, "layer 1", 0},
		`time=2026-11-22T11:29:16.534Z level=INFO msg="stage done" stage=encoder best_round=8`:                            {stageDone, "encoder", 0},
		`time=2026-11-22T11:29:16.534Z level=DEBUG msg="meeting the other peers"`:                                         {meeting, "", 0},
		`time=2026-11-22T11:29:16.534Z level=DEBUG msg="session begun"`:                                                   {begun, "", 0},
		`time=2026-11-22T11:29:16.534Z level=INFO msg=round stage="layer 2" round=3`:                                      {},
		`peer: p2p: join: context deadline exceeded`:                                                                      {},
	} {
		got, ok := parseMarker(line)
		if ok != (want.kind != "") || ok && got != want {
			t.Errorf("%s: %+v, %t; must be %+v", line, got, ok, want)
		}
	}
}

// A peer is in at most one of the phases that a line of its log begins, whatever it has logged last. It is in its own
// phase when it has logged what the phase waits for.
func TestPhases(t *testing.T) {
	named := phases[:len(phases)-2]
	for _, m := range methods {
		for _, s := range m.stages {
			for round := range s.rounds {
				for _, kind := range []string{meeting, begun, roundDone, stageDone} {
					in := 0
					for _, p := range named {
						if p.in(m, marker{kind, s.name, round}) {
							in++
						}
					}
					if in > 1 {
						t.Errorf("%s: %s is in %d phases", m, marker{kind, s.name, round}, in)
					}
				}
			}
		}
		for _, p := range named {
			if !p.fits(m) {
				continue
			}
			for seed := range uint64(100) {
				if at := p.marker(m, rng.New(seed)); !p.in(m, at) {
					t.Errorf("%s, %s waits for %s, which is not in it", m, p, at)
				}
			}
		}
	}
	if _, err := parse("phase", phases, "meeting,lunch"); err == nil {
		t.Error("an unknown phase must be refused")
	}
}
