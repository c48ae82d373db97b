package killrun

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/rng"
)

// About is what the page of this experiment begins with.
var About = page.About{Name: "killrun", Title: "Kill runs", Text: `Three processes of heddle join
train by each method over QUIC or TCP; one is killed (kill -9) in a named phase and started again up to 1.5 s
later. A run counts only if the process was alive and, by its own log, in the named phase. All three
processes of every run, counted or not, must end within the limit, with the tensors of an
undisturbed run to the bit.

- meeting: before its session has begun
- mid-stage: between two rounds of a stage
- between stages: after a stage, before a round of the next (only layer-wise has several)
- last barrier: after the last stage, before the process has ended
- last 100 ms: at any time of them, by how long an undisturbed run takes
- random: at any time`}

// most is how many runs in a row may fail to count before a phase is given up.
const most = 20

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	runs := f.Int("runs", 300, "runs that count, over phases, carriers and methods in turn")
	seed := f.Uint64("seed", 0, "random seed; 0: from the clock")
	only := f.String("phases", "", "phases with commas between; default: all")
	by := f.String("methods", "", "methods with commas between; default: all")
	peer := f.String("peer", "", "program under test; default: built from ./cmd/heddle")
	log := f.String("log", "", "file for a line of JSON per run")
	limit := f.Duration("limit", 90*time.Second, "time after which a run counts as hung")
	return func(ctx context.Context, p *page.Page) (err error) {
		x := &experiment{peer: *peer, seed: cmp.Or(*seed, uint64(time.Now().UnixNano())%1e9), limit: *limit,
			log: io.Discard}
		chosen, err := parse("phase", phases, *only)
		if err != nil {
			return err
		}
		ways, err := parse("method", methods, *by)
		if err != nil {
			return err
		}
		if x.peer != "" {
			if x.peer, err = filepath.Abs(x.peer); err != nil {
				return err
			}
		}
		if *log != "" {
			to, err := os.Create(*log)
			if err != nil {
				return err
			}
			defer to.Close()
			x.log = to
		}
		if x.dir, err = os.MkdirTemp("", "heddle-killrun-"); err != nil {
			return err
		}
		defer os.RemoveAll(x.dir)
		fmt.Fprintf(os.Stderr, "kill runs with -seed %d\n", x.seed)
		all, err := x.all(ctx, *runs, chosen, ways)
		if len(all) > 0 {
			p.Text("Seed %d.", x.seed)
			for _, m := range ways {
				p.Text("An undisturbed run by %s takes %.1f s.", m, x.took[m.name].Seconds())
			}
			tabulate(p, all)
		}
		if err != nil {
			return err
		}
		return verdict(all)
	}
}

// all makes runs until enough have counted, or one phase cannot be met.
func (x *experiment) all(ctx context.Context, runs int, chosen []phase, ways []method) (all []record, err error) {
	if err := x.prepare(ctx, ways); err != nil {
		return nil, err
	}
	type kind struct {
		m       method
		carrier string
		ph      phase
	}
	var kinds []kind
	for _, m := range ways {
		for _, carrier := range carriers {
			for _, ph := range chosen {
				if ph.fits(m) {
					kinds = append(kinds, kind{m, carrier, ph})
				}
			}
		}
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("phases must be some that the methods have (got %v of %v)", chosen, ways)
	}
	order := rng.New(x.seed).FoldString("kinds").Perm(len(kinds)) // so that a few runs are of all methods
	missed := 0
	for counted := 0; counted < runs; {
		k := kinds[order[counted%len(kinds)]]
		rec, err := x.run(ctx, len(all), k.m, k.carrier, k.ph)
		if err != nil {
			return all, err
		}
		all = append(all, rec)
		if err := x.note(rec); err != nil {
			return all, err
		}
		fmt.Fprintf(os.Stderr, "%d: %s, %s, %s, peer %d killed after %q, counted %t: %s in %.1f s\n",
			rec.Run, rec.Method, rec.Carrier, rec.Phase, rec.Victim, rec.Proof, rec.Counted, rec.Outcome, rec.Seconds)
		if rec.Outcome != same {
			fmt.Fprintln(os.Stderr, rec.Detail)
		}
		if missed++; rec.Counted {
			counted, missed = counted+1, 0
		}
		if missed == most {
			return all, fmt.Errorf("%d runs in a row did not meet the phase %q", most, k.ph)
		}
	}
	return all, nil
}

func tabulate(p *page.Page, all []record) {
	p.Table("method %s", "carrier %s", "phases %d", "runs counted %d", "not counted %d", "same model %d",
		"other model %d", "failed %d", "hung %d", "median s %.1f", "longest s %.1f")
	for _, m := range methods {
		for _, carrier := range carriers {
			summarise(p, m, carrier, all)
		}
	}
}

// summarise adds the row of a method and carrier, if there are runs of it.
func summarise(p *page.Page, m method, carrier string, all []record) {
	counted, rest := 0, 0
	outcomes, in := map[string]int{}, map[string]bool{}
	var took []float64
	for _, rec := range all {
		if rec.Method != m.name || rec.Carrier != carrier {
			continue
		}
		in[rec.Phase] = true
		outcomes[rec.Outcome]++
		took = append(took, rec.Seconds)
		if rec.Counted {
			counted++
		} else {
			rest++
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		p.Row(m.name, carrier, len(in), counted, rest, outcomes[same], outcomes[other], outcomes[failed],
			outcomes[hung], took[len(took)/2], took[len(took)-1])
	}
}

// verdict is the error of runs that did not end as they must.
func verdict(all []record) error {
	bad := 0
	for _, rec := range all {
		if rec.Outcome != same {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d runs did not end with the same model", bad, len(all))
	}
	return nil
}
