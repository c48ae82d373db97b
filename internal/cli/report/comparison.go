package report

import (
	_ "embed"
	"html/template"
	"io"
	"math"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// Comparison is what the page of a comparison of ways of training shows.
type Comparison struct {
	Title, Kicker     string
	Sentence          string // whether joining paid
	Metric            string
	Ways, Sites       cli.Table // a page shows Sites only if it has rows
	WayBars, SiteBars []Bar     // test metrics
	Notes             []string  // what one must know of the figures
	Settings, Command string    // by which the models were trained, and what repeats it
}

//go:embed comparison.html
var comparisonPage string

var comparisonLayout = template.Must(template.Must(template.New("comparison").Parse(partsPage)).Parse(comparisonPage))

// WriteComparison writes the page of c as HTML.
func WriteComparison(w io.Writer, c Comparison) error {
	ways := barsOf("Test "+c.Metric+" of each way of training", c.Metric, c.WayBars, math.NaN(), "")
	sites := barsOf("Test "+c.Metric+" of each site, alone and together", c.Metric, c.SiteBars, math.NaN(), "")
	c.Ways.Name, c.Sites.Name = "Ways of training", "Sites"
	return comparisonLayout.Execute(w, struct {
		Comparison
		Style     template.CSS
		WayChart  Chart
		SiteChart Chart
	}{c, template.CSS(Style), ways, sites})
}
