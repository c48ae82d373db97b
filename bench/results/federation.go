package results

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
)

// dirichlet03 is the parameter by which the sites' labels are skewed.
const dirichlet03 = 0.3

// manySites are the numbers of sites, and whether their labels are skewed.
var manySites = []struct {
	sites  int
	skewed bool
}{{4, false}, {16, false}, {64, false}, {4, true}, {16, true}}

// sitesData are the data sets of the goals that have no sites.
var sitesData = []string{"cora", "citeseer", "dblp-citation", "coauthor-cs", "amazon-photo", "amazon-computers",
	"github-web-ml", "facebook-pages", "tolokers"}

// printSites prints what becomes of the plan with more sites, and with labels that differ between
// them.
func (o options) printSites(ctx context.Context, p *page.Page, b *book) error {
	p.Table("data set %s", "sites %d", "labels %s", "test %s", "validation %.2f", "halo MB %.3f", "sums MB %.3f",
		"total MB %.3f", "of a site, MB %.3f", "seconds %.1f", "runs %d")
	var refused []string
	for _, data := range sitesData {
		if !o.wantsData(data) {
			continue
		}
		n, err := b.runsOf(data, o.seeds)
		if err != nil {
			return err
		}
		for _, m := range manySites {
			e, err := planned("frugal", data, fmt.Sprintf("%s --peers=%d", o.plan, m.sites))
			if err != nil {
				return err
			}
			labels := "at random"
			if m.skewed {
				e.Skew, labels = dirichlet03, fmt.Sprintf("Dirichlet %g", dirichlet03)
			}
			s, err := b.run(ctx, e, n)
			var why refusal
			if errors.As(err, &why) {
				refused = append(refused, fmt.Sprintf("- %s, %d sites: refused: %s", data, m.sites, why))
				continue
			} else if err != nil {
				return err
			}
			halo, sums, _ := s.bytes()
			p.Row(data, m.sites, labels, s.test(), s.val(), halo, sums, s.megabytes(),
				s.megabytes()/float64(m.sites), s.seconds(), n)
		}
	}
	for _, line := range refused {
		p.Text("%s", line)
	}
	return nil
}

// printPays prints the gain of the plan over sites that train by themselves, and its loss compared with the data of all
// sites at one place. It does so with all training labels, and with fewLabelsKept of a class at each site.
func (o options) printPays(ctx context.Context, p *page.Page, b *book) error {
	p.Table("data set %s", "labels %s", "each site alone %s", "together %s", "pooled %s", pooledName+" %s",
		"together − alone %s", "together − pooled %s", "federation %s", "MB %.2f", "runs %d")
	var refused []string
	loses, sets := 0, 0
	for _, data := range slices.Concat(gridData, graphs.Unlike) {
		if !o.wantsData(data) {
			continue
		}
		n := o.seeds // of five splits, too: the labels that are kept are sampled anew
		for _, labels := range []int{0, fewLabelsKept} {
			f, err := b.payments(ctx, data, o.plan, labels, n, o.wants(pooledName))
			var why refusal
			if errors.As(err, &why) {
				refused = append(refused, fmt.Sprintf("- %s: refused: %s", data, why))
				continue
			} else if err != nil {
				return err
			}
			kept := "all"
			if labels > 0 {
				kept = fmt.Sprintf("%d a class and site", labels)
			}
			gain, off := difference(f.together, f.alone, testOf)
			lag, lagOff := difference(f.together, f.pooled, testOf)
			verdict := "neither"
			if sets++; gain > off {
				verdict = "pays"
			} else if gain < -off {
				verdict, loses = "loses", loses+1
			}
			gcn := "not run"
			if len(f.gcn.runs) > 0 {
				gcn = f.gcn.test()
			}
			p.Row(data, kept, f.alone.test(), f.together.test(), f.pooled.test(), gcn,
				fmt.Sprintf("%+.2f ± %.2f", gain, off), fmt.Sprintf("%+.2f ± %.2f", lag, lagOff), verdict,
				f.together.megabytes(), n)
		}
	}
	p.Text("Differences are between runs of the same seed, with the standard error of their mean; one standard error "+
		"decides the verdict. Together loses to each site alone in %d of %d rows.", loses, sets)
	for _, line := range refused {
		p.Text("%s", line)
	}
	return nil
}

// fewLabelsKept is how many training nodes of a class a site keeps if labels are few.
const fewLabelsKept = 5

// payments are the ways to use the data of the same sites.
type payments struct{ alone, together, pooled, gcn summary }

// pooledName is the column of -table pays that takes longest: it is left out unless -row names it.
const pooledName = "pooled GCN"

func (b *book) payments(ctx context.Context, data, plan string, labels, n int, pooledToo bool) (f payments, err error) {
	e, err := planned("together", data, plan)
	if err != nil {
		return f, err
	}
	e.Labels = labels
	if f.together, err = b.run(ctx, e, n); err != nil {
		return f, err
	}
	alone, pooled := e, e
	alone.Name, alone.Alone = "alone", true
	if f.alone, err = b.run(ctx, alone, n); err != nil {
		return f, err
	}
	pooled.Name, pooled.Pooled = "pooled", true
	if f.pooled, err = b.run(ctx, pooled, n); err != nil || !pooledToo {
		return f, err
	}
	gcn := pooledGCN(data)
	gcn.experiment = gcn.onData(data)
	gcn.Labels = labels
	best, err := b.tuned(ctx, gcn)
	if err != nil {
		return f, err
	}
	f.gcn, err = b.run(ctx, best, n)
	return f, err
}

// difference returns the mean difference of a figure of two experiments, run by run, in per cent, and
// the standard error of that mean.
func difference(a, b summary, figure func(record) float64) (mean, off float64) {
	var apart []float64
	for i := range a.runs {
		apart = append(apart, 100*(figure(a.runs[i])-figure(b.runs[i])))
	}
	mean, dev := spread(apart)
	return mean, dev / math.Sqrt(float64(len(apart)))
}
