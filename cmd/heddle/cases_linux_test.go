package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// notYet lists cases that fail, with the reason. One that passes must be taken from the list.
var notYet = map[string]string{}

// A fieldCase is a kind of fault that people met with other software: a table, a graph, a network or a small machine.
// Its test gives what a person would expect: an exit code and words or figures, never only that something fails.
type fieldCase struct {
	name  string
	needs string // "long", "root" or "shared", what it cannot do without
	try   func(c *trial)
}

// TestCases runs each case in a folder of its own. Cases of formats that Python reads (GraphML, ONNX, networkx, PyTorch
// Geometric) are in python/tests.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, k := range slices.Concat(tableCases, graphCases, processCases, networkCases) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := &trial{T: t, dir: t.TempDir()}
			switch k.needs {
			case "long":
				testenv.OnlyLong(t)
			case "root":
				if os.Getuid() != 0 ||
					exec.Command("unshare", "-n", "-m", "ip", "link", "add", "type", "veth").Run() != nil {
					t.Skip("SKIPPED: the case needs root, namespaces and iproute2")
				}
			case "shared":
				folders, err := filepath.Glob("../../../shared/cases/" + k.name[:3] + "*")
				if err != nil || len(folders) != 1 {
					t.Skip("SKIPPED: the files of the case are not here")
				}
				c.shared, _ = filepath.Abs(folders[0])
			}
			k.try(c)
			c.end(k.name)
		})
	}
}

// A trial runs one case, and keeps what is wrong in its faults.
type trial struct {
	*testing.T
	dir, shared string
	faults      []string
}

// prelude gives a line the program, and two sites that meet or join: what they print, then "SITE exits CODE".
const prelude = `
heddle() { "$PEER" "$@"; }
log() { cat $1.log; echo "$1 exits $2"; }
met() { # SITE FLAG...
  local x=$1; shift
  timeout 30 "$PEER" match --plan plan.yaml --identity $x.key --nodes $x-nodes.csv --edges $x-edges.csv \
    --label-column outcome --target-site-column target_site --out $x-part "$@"
}
meet() { # PLAN FLAG...: tables SITE-nodes.csv and SITE-edges.csv, parts SITE-part
  local x plan=$1 pids=(); shift; rm -rf *-part
  for x in north south; do
    met $x --plan $plan --wait ${WAIT:-15s} "$@" > $x.log 2>&1 & pids+=($!)
  done
  wait ${pids[0]}; log north $?; wait ${pids[1]}; log south $?
}
`

// any is an exit code that a case leaves open.
const either = -1

// run runs a line of bash, which must end with a code and print what the patterns match; for "!PATTERN", nothing that
// does.
func (c *trial) run(exit int, line string, patterns ...string) string {
	c.Helper()
	program := exec.CommandContext(c.Context(), "bash", "-c", prelude+line)
	program.Dir = c.dir
	program.Env = append(os.Environ(), asPeer+"=1", "PEER="+os.Args[0], "HOME="+c.dir, "GOTRACEBACK=single")
	out, err := program.CombinedOutput()
	if program.ProcessState == nil {
		c.Fatal(err)
	}
	text := string(out)
	if got := program.ProcessState.ExitCode(); exit != either && got != exit {
		c.fault("%s\nexit code %d must be %d\n%s", line, got, exit, text)
		return text
	}
	for _, p := range patterns {
		pattern, absent := strings.CutPrefix(p, "!")
		if regexp.MustCompile("(?is)"+pattern).MatchString(text) == absent {
			c.fault("%s\nmust match %q\n%s", line, p, text)
		}
	}
	return text
}

// end reports the faults of a case, or its reason in notYet.
func (c *trial) end(name string) {
	reason, listed := notYet[name]
	switch {
	case listed && len(c.faults) == 0:
		c.Errorf("passes: it must not be in notYet (%s)", reason)
	case listed:
		c.Skipf("SKIPPED: fails as listed (%s):\n%s", reason, c.faults[0])
	}
	for _, f := range c.faults {
		c.Error(f)
	}
}

func (c *trial) fault(format string, values ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, values...))
}

func (c *trial) write(name, text string) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// row is a row of a table, by column.
type row map[string]string

// asCSV returns a table as CSV; columns are separated by |.
func asCSV(columns string, rows []row) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	names := strings.Split(columns, "|")
	w.Write(names)
	for _, r := range rows {
		cells := make([]string, len(names))
		for k, name := range names {
			cells[k] = r[name]
		}
		w.Write(cells)
	}
	w.Flush()
	return b.String()
}

const patientColumns = "id|age|dose|ward|outcome"

// patients returns nodes whose age, dose and ward follow their class, and three edges of each, mostly within a class.
func patients(n, classes int, seed uint64) (nodes []row, edges [][2]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"well", "ill", "worse"}
	seen := map[[2]int]bool{}
	for i := range n {
		c := i % classes
		nodes = append(nodes, row{"id": fmt.Sprint(i + 1),
			"age":  fmt.Sprintf("%.1f", 50+14*float64(c)+9*r.NormFloat64()),
			"dose": fmt.Sprintf("%.2f", 2+1.6*float64(c)+0.8*r.NormFloat64()), "ward": string("ABCDEF"[2*c+r.IntN(2)]),
			"outcome": names[c]})
		for range 3 {
			j, same := r.IntN(n), r.Float64() < 0.8
			for j == i || (j%classes == c) != same {
				j = r.IntN(n)
			}
			seen[[2]int{min(i, j), max(i, j)}] = true
		}
	}
	edges = slices.SortedFunc(maps.Keys(seen), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return nodes, edges
}

// ends returns the rows of a table of edges.
func ends(nodes []row, edges [][2]int) (rows []row) {
	for _, e := range edges {
		rows = append(rows, row{"source": nodes[e[0]]["id"], "target": nodes[e[1]]["id"]})
	}
	return rows
}

// patients writes n.csv and e.csv and returns their rows; change changes a row of nodes before.
func (c *trial) patients(n, classes int, columns string, change func(k int, x row)) (nodes, edges []row) {
	c.Helper()
	nodes, pairs := patients(n, classes, 1)
	for k, x := range nodes {
		if change != nil {
			change(k, x)
		}
	}
	edges = ends(nodes, pairs)
	c.write("n.csv", asCSV(columns, nodes))
	c.write("e.csv", asCSV("source|target", edges))
	return nodes, edges
}

// sites writes the tables of north and south; change changes a row of nodes before. Every edge to the other
// site is known to both.
func (c *trial) sites(n int, columns map[string]string, change func(site string, k int, x row)) {
	c.Helper()
	nodes, edges := patients(2*n, 2, 1)
	names := []string{"north", "south"}
	for k, x := range nodes {
		x["id"] = names[k/n][:1] + x["id"]
	}
	rows := map[string][]row{}
	for _, e := range edges {
		for _, p := range [][2]int{e, {e[1], e[0]}} {
			own, other := names[p[0]/n], names[p[1]/n]
			r := row{"source": nodes[p[0]]["id"], "target": nodes[p[1]]["id"]}
			if own != other {
				r["target_site"] = other
			} else if p != e {
				continue
			}
			rows[own] = append(rows[own], r)
		}
	}
	for k, name := range names {
		for i, x := range nodes[k*n : (k+1)*n] {
			if change != nil {
				change(name, i, x)
			}
		}
		list := patientColumns
		if columns[name] != "" {
			list = columns[name]
		}
		c.write(name+"-nodes.csv", asCSV(list, nodes[k*n:(k+1)*n]))
		c.write(name+"-edges.csv", asCSV("source|target|target_site", rows[name]))
	}
}

// plan writes keys and plan.yaml of the two sites.
func (c *trial) plan(flags string) {
	c.Helper()
	c.run(0, fmt.Sprintf(`for x in north south; do [ -e $x.id ] || heddle init --identity $x.key > $x.id; done
heddle plan %s --port %d --out plan.yaml {north=$(cat north.id),south=$(cat south.id)}@127.0.0.1`,
		flags, testenv.FreePorts(c, 2)))
}

// An array is one of an .npz file: its type as NumPy names it, its shape and a slice of its values.
type array struct {
	kind   string
	shape  []int
	values any
}

// npz writes a data set of arrays by name. An array without a kind is left out.
func (c *trial) npz(name string, arrays map[string]array) {
	c.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, k := range slices.Sorted(maps.Keys(arrays)) {
		a := arrays[k]
		if a.kind == "" {
			continue
		}
		shape := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(a.shape)), ", "), "[]") + ","
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", a.kind, shape)
		head += strings.Repeat(" ", 128-(len(head)+11)%64) + "\n"
		w, err := z.Create(k + ".npy")
		if err != nil {
			c.Fatal(err)
		}
		fmt.Fprint(w, "\x93NUMPY\x01\x00", string(binary.LittleEndian.AppendUint16(nil, uint16(len(head)))), head)
		if err := binary.Write(w, binary.LittleEndian, a.values); err != nil {
			c.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		c.Fatal(err)
	}
	c.write(name+"/graph.npz", b.String())
}

// list returns n values.
func list[T any](n int, value func(k int) T) []T {
	v := make([]T, n)
	for k := range v {
		v[k] = value(k)
	}
	return v
}

const oneMachine = " --method full-batch --peers 1 -q "
