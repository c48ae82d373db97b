package retexo

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew; read the diff before you commit it")

// TestTranscripts plays testdata/*.txt. A transcript is blocks of a command, "----", and what the machines answer,
// with an empty line after each block:
//
//	peers N [key=value …]   N machines of one plan; keys are those of plan below
//	alter R key=value       machine R gets another plan
//	step [key=value …]      all report their work done: val, valloss, labels, digests, checkpoints, at (a position)
//	run [N]                 step until the machines finish, or N times, with nothing to report
//	ready                   say what is asked for
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var s script
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		fmt.Fprintln(&out, head)
		command := head
		for strings.HasPrefix(command, "#") {
			_, command, _ = strings.Cut(command, "\n")
		}
		if command != "" {
			fmt.Fprintf(&out, "----\n%s", s.do(t, command))
		}
		fmt.Fprintln(&out)
	}
	got := strings.TrimSpace(out.String()) + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(text) {
		t.Errorf("%s: the machines answer\n%s", file, got)
	}
}

// script is the machines of one transcript.
type script struct {
	machines []*machine
	failed   []error
}

func (s *script) do(t *testing.T, command string) string {
	words := strings.Fields(command)
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	switch words[0] {
	case "peers":
		n := number(t, words[1])
		s.machines, s.failed = nil, make([]error, n)
		for r := range n {
			m, err := newScripted(t, args, r, n)
			if err != nil {
				return err.Error() + "\n"
			}
			s.machines = append(s.machines, m)
		}
		return s.ready(t, event{})
	case "alter":
		r := number(t, words[1])
		m, err := newScripted(t, args, r, len(s.machines))
		if err != nil {
			return err.Error() + "\n"
		}
		m.Ready()
		s.machines[r] = m
		return "ok\n"
	case "step":
		return s.step(t, args)
	case "run":
		var all strings.Builder
		for i := 0; len(words) == 1 || i < number(t, words[1]); i++ {
			if s.machines[0].next.Work.Kind == doFinish {
				break
			}
			all.WriteString(s.step(t, args))
		}
		return all.String()
	}
	t.Fatalf("unknown command %q", command)
	return ""
}

func newScripted(t *testing.T, args map[string]string, rank, size int) (*machine, error) {
	get := func(key, other string) string {
		if v, ok := args[key]; ok {
			return v
		}
		return other
	}
	p := Design{Model: get("model", "gcn"), Encoder: get("encoder", "raw"), Components: 4,
		LayerOutput: get("layer_output", "hidden"), Layers: number(t, get("layers", "1")), Hidden: 8,
		Hops: number(t, get("hops", "1")), Heads: 2}
	spec, err := p.Spec("single", 16, 3)
	if err != nil {
		return nil, err
	}
	c := Defaults(spec)
	c.Rounds, c.LocalSteps = number(t, get("rounds", "2")), number(t, get("local", "1"))
	c.Patience, c.EvalEvery, c.Checkpoint = number(t, get("patience", "0")), number(t, get("every", "1")),
		number(t, get("checkpoint", "0"))
	_, c.Inductive = args["inductive"]
	c.Seed = uint64(number(t, get("seed", "1")))
	frozen := make([]bool, len(spec.Layers))
	for i, l := range spec.Layers {
		layer, err := nn.NewLayer("layer", l, 1)
		if err != nil {
			return nil, err
		}
		frozen[i] = layer.Frozen()
	}
	partition := [32]byte{byte(number(t, get("partition", "1")))}
	return newMachine(c, frozen, rank, size, partition)
}

func (s *script) step(t *testing.T, args map[string]string) string {
	e := event{Val: math.NaN(), ValLoss: math.NaN(), Labels: 10}
	for key, v := range args {
		switch key {
		case "val":
			e.Val = real(t, v)
		case "valloss":
			e.ValLoss = real(t, v)
		case "labels":
			e.Labels = real(t, v)
		case "digests":
			for _, x := range strings.Split(v, ",") {
				e.Digests = append(e.Digests, uint32(number(t, x)))
			}
		case "at": // stage,round[,best round]
			p := strings.Split(v, ",")
			e.Position = &train.Position{Stage: number(t, p[0]), Round: number(t, p[1]), BestRound: -1}
			if len(p) == 3 {
				e.Position.BestRound = number(t, p[2])
			}
		}
	}
	if s.machines[0].next.Work.Kind == doHello {
		sets := strings.Split(args["checkpoints"], ";")
		for r, m := range s.machines {
			g := train.Greeting{Rank: r, Size: len(s.machines), Config: m.who.Config, Partition: m.who.Partition}
			for _, x := range strings.Split(sets[min(r, len(sets)-1)], ",") {
				if x != "" {
					g.Checkpoints = append(g.Checkpoints, uint64(number(t, x)))
				}
			}
			e.Greetings = append(e.Greetings, g)
		}
	}
	return s.ready(t, e)
}

// ready reports e, if it is of work, to all machines and says what they ask for then: once, where all ask the same.
func (s *script) ready(t *testing.T, e event) string {
	answers := make([]string, len(s.machines))
	same := true
	for r, m := range s.machines {
		if m.waiting && s.failed[r] == nil {
			mine := e
			mine.Work = m.next.Work
			s.failed[r] = m.Step(mine)
		}
		if s.failed[r] != nil {
			answers[r] = "error: " + s.failed[r].Error()
		} else if ready, ok := m.Ready(); ok {
			answers[r] = ready.String()
		}
		same = same && answers[r] == answers[0]
	}
	if same {
		return answers[0] + "\n"
	}
	var out strings.Builder
	for r, a := range answers {
		fmt.Fprintf(&out, "peer %d: %s\n", r, a)
	}
	return out.String()
}

// String says what is asked for, in the words of transcripts.
func (r ready) String() string {
	w := r.Work
	s := w.Kind.String()
	switch w.Kind {
	case doExchange, doAggregate:
		s = fmt.Sprintf("stage %d hop %d: %s", w.Stage, w.Hop, s)
	case doRound, doApply, doSync, doEvaluate:
		s = fmt.Sprintf("stage %d round %d: %s", w.Stage, w.Round, s)
	case doFreeze:
		s = fmt.Sprintf("stage %d: %s", w.Stage, s)
	case doRestore:
		s += fmt.Sprintf(" %d", w.Seq)
	}
	if w.Kind == doSync {
		s += fmt.Sprintf(" from %d", w.From)
	}
	if w.Eval {
		s += ", eval"
	}
	if w.Keep {
		s += ", keep"
	}
	if r.Save {
		s = "save, then " + s
	}
	return s
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func real(t *testing.T, s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
