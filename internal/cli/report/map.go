package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/svg"
)

// mostPlaces is how many sites a map has: of more, the table has all.
const mostPlaces = 24

// Map draws the sites of a federation on a circle, with a line between each two that are connected. It is empty for fewer
// than two sites and for too many to tell apart.
func Map(sites []federation.LiveSite) Chart {
	n := len(sites)
	if n < 2 || n > mostPlaces {
		return Chart{}
	}
	p := newPlot("", "")
	p.Bare = true
	at, said, here := make([]svg.Point, n), make([]string, n), 0
	for k, s := range sites {
		turn := math.Pi/2 - 2*math.Pi*float64(k)/float64(n)
		at[k] = svg.Point{X: math.Cos(turn), Y: math.Sin(turn)}
		said[k] = s.Name + " " + s.Status
		if !s.Here {
			continue
		}
		here++
		for q := range k {
			if sites[q].Here {
				p.Line(palette[0], 1, "", at[k], at[q])
			}
		}
	}
	for k, s := range sites {
		shape, color, out := svg.Disc, palette[0], 0.2 // the name is that far from the mark, away from the centre
		if !s.Here {
			shape, color = svg.Ring, palette[1]
		}
		if at[k].Y < 0 {
			out = -out
		}
		p.Mark(shape, color, 6, at[k])
		p.Text(svg.Point{X: at[k].X, Y: at[k].Y + out}, 0, 3.5, "middle", short(s.Name))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -1.9, 1.9, -1.4, 1.4
	return Chart{picture(p, "Federation: "+strings.Join(said, "; ")),
		fmt.Sprintf("%d of %d sites are connected; a ring is a site that is not.", here, n)}
}
