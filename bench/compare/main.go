// Command compare makes Retexo's own comparison anew (Kolluri, Choudhary, Hooi and Saxena, arXiv 2302.13053): accuracy
// against bytes sent, of full-batch training, exact and with a boundary that is sampled or stale, and of layer-wise
// training. It prints one table and writes one plot.
//
//	go build -o peer ./cmd/peer && go run ./bench/compare -peer ./peer -data data -seeds 3 -svg compare.svg
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// way is one way to train: what peer train is told besides the data, the peers and the seed, and what it takes of the
// settings of a graph.
type way struct {
	name, flags string
	of          func(settings) string
}

// End to end and layer by layer, the same two layers of GCN, width and number of steps: those of the reference.
const (
	endToEnd  = "--mode fullbatch --model gcn --hidden 256 --rounds 200 --eval-every 10 --lr 0.01 --dropout 0.5 --exchange halo --boundary "
	layerWise = "--preset retexo --model gcn --eval-every 10"
)

var ways = []way{
	{"full batch", endToEnd + "exact", settings.joint},
	{"sample:0.1", endToEnd + "sample:0.1", settings.joint},
	{"sample:0.01", endToEnd + "sample:0.01", settings.joint},
	{"stale:1", endToEnd + "stale:1", settings.joint},
	{"layer-wise, reference", layerWise, settings.layered},
	{"layer-wise, frugal", "--preset frugal --model gcn", settings.none},
}

// settings are what differs between graphs: decay and scaling, which validation nodes chose for docs/results.md, and how
// many splits there are; run k takes the k-th.
type settings struct {
	end, layer string
	splits     int
}

func (s settings) joint() string   { return s.end }
func (s settings) layered() string { return s.layer }
func (s settings) none() string    { return "" }

var tuned = map[string]settings{
	"cora":             {"--decay 0.002 --unit-sum", "--decay 0.005", 1},
	"amazon-computers": {"--decay 0.0005", "--decay 0.0005 --unit-sum=false", 10},
	"coauthor-cs":      {"--decay 0.0005 --unit-sum", "--decay 0.0005 --unit-sum=false", 10},
	"facebook-pages":   {"--decay 0", "--decay 0.005 --unit-sum=false", 5},
}

// figures are what a run has measured.
type figures struct {
	Test  float64 `json:"test_accuracy"`
	Bytes struct {
		Halo    float64 `json:"halo"`
		Reduce  float64 `json:"reduce"`
		Control float64 `json:"control"`
	} `json:"bytes"`
}

// mean is over the seeds of one way on one graph.
type mean struct {
	test, off, halo, reduce, all float64 // accuracy and its standard deviation in per cent; megabytes
	runs                         int
}

func main() {
	peer := flag.String("peer", "peer", "the program")
	data := flag.String("data", "data", "directory of the data sets")
	graphs := flag.String("graphs", "cora,amazon-computers,coauthor-cs,facebook-pages", "data sets")
	peers := flag.Int("peers", 4, "peers, by a random partition")
	seeds := flag.Int("seeds", 3, "runs of each, seeds from 1")
	svg := flag.String("svg", "compare.svg", "file of the plot")
	runs := flag.String("runs", "", "directory of the runs' figures; what is there is not run again (empty: a temporary one)")
	flag.Parse()
	if err := compare(*peer, *data, *runs, strings.Split(*graphs, ","), *peers, *seeds, *svg); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(peer, data, dir string, graphs []string, peers, seeds int, svg string) error {
	for _, graph := range graphs {
		if _, ok := tuned[graph]; !ok {
			return fmt.Errorf("graph %q has no settings here, want %s", graph, strings.Join(slices.Sorted(maps.Keys(tuned)), ", "))
		}
	}
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "compare"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	fmt.Println("| graph | training | test accuracy, % | halo, MB | updates, MB | all, MB | of full batch | runs |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	var plots [][]*plot.Plot
	for n, graph := range graphs {
		var means []mean
		for _, w := range ways {
			var runs []figures
			for seed := 1; seed <= seeds; seed++ {
				args := strings.Fields(w.flags + " " + w.of(tuned[graph]))
				args = append(args, "--data", filepath.Join(data, graph), "--split", fmt.Sprint((seed-1)%tuned[graph].splits),
					"--peers", fmt.Sprint(peers), "--policy", "random", "--transport", "memory", "--seed", fmt.Sprint(seed))
				f, err := run(peer, filepath.Join(dir, graph, fmt.Sprintf("%s-%d", strings.NewReplacer(":", "-", ", ", "-", " ", "-").Replace(w.name), seed)), args)
				if err != nil {
					return fmt.Errorf("%s, %s, seed %d: %w", graph, w.name, seed, err)
				}
				runs = append(runs, f)
			}
			m := average(runs)
			means = append(means, m)
			test := fmt.Sprintf("%.2f", m.test)
			if m.runs > 1 {
				test += fmt.Sprintf(" ± %.2f", m.off)
			}
			fmt.Printf("| %s | %s | %s | %.2f | %.1f | %.1f | %.4f | %d |\n", graph, w.name, test, m.halo, m.reduce, m.all, m.all/means[0].all, m.runs)
		}
		if n%2 == 0 {
			plots = append(plots, nil)
		}
		last := len(plots) - 1
		plots[last] = append(plots[last], panel(graph, means, n == 0))
	}
	return draws(plots, svg)
}

// run returns the figures of a run, whose results are in dir if it has been made.
func run(peer, dir string, args []string) (f figures, err error) {
	path := filepath.Join(dir, "result.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		c := exec.Command(peer, append([]string{"train", "-q", "--out", dir}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			return f, fmt.Errorf("%v: %w\n%s", c.Args, err, out)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(text, &f)
}

func average(runs []figures) (m mean) {
	n := float64(len(runs))
	for _, f := range runs {
		m.test += 100 * f.Test / n
		m.halo += f.Bytes.Halo / 1e6 / n
		m.reduce += f.Bytes.Reduce / 1e6 / n
		m.all += (f.Bytes.Halo + f.Bytes.Reduce + f.Bytes.Control) / 1e6 / n
	}
	for _, f := range runs {
		m.off += (100*f.Test - m.test) * (100*f.Test - m.test) / max(n-1, 1)
	}
	m.off, m.runs = math.Sqrt(m.off), len(runs)
	return m
}

// Okabe and Ito's palette: told apart by people who do not see all colours.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}}

// bar is one point with its standard deviation to either side, as gonum/plot wants it.
type bar struct {
	plotter.XYs
	plotter.YErrors
}

// panel draws the ways of one graph: megabytes sent, by powers of ten, and accuracy.
func panel(graph string, means []mean, legend bool) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = graph, "sent by all peers, MB", "test accuracy, %"
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		*f = font.From(sans, f.Size)
	}
	p.X.Scale, p.X.Tick.Marker, p.Legend.Left = plot.LogScale{}, plot.LogTicks{Prec: -1}, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	p.Add(grid)
	least, most := math.Inf(1), math.Inf(-1)
	for k, m := range means {
		at := plotter.XYs{{X: m.all, Y: m.test}}
		points, err := plotter.NewScatter(at)
		if err != nil {
			continue // no number: a graph without test labels
		}
		if off, err := plotter.NewYErrorBars(bar{at, plotter.YErrors{{Low: m.off, High: m.off}}}); err == nil && m.off > 0 {
			off.Color = palette[k%len(palette)]
			p.Add(off)
		}
		points.GlyphStyle = draw.GlyphStyle{Color: palette[k%len(palette)], Radius: vg.Points(5), Shape: shapes[k%len(shapes)]}
		p.Add(points)
		if legend {
			p.Legend.Add(ways[k].name, points)
		}
		least, most = min(least, m.all), max(most, m.all)
	}
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
	p.Y.Min, p.Y.Max = p.Y.Min-1, p.Y.Max+1
	return p
}

// draws writes the panels, two in a row, as one SVG file.
func draws(plots [][]*plot.Plot, path string) error {
	c := vgsvg.New(26*vg.Centimeter, vg.Length(len(plots))*9*vg.Centimeter)
	pad := vg.Points(8)
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: pad, PadY: pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}
	for i, row := range plots {
		for j, p := range row {
			p.Draw(tiles.At(draw.New(c), j, i))
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
