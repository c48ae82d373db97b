// Package size measures how large the packages of a module are.
package size

import (
	"context"
	"flag"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/bench/page"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "size",
	Title: "Size of the packages",
	Text: `Lines, Go tokens without comments, exported names and the lines of the longest function of each
package, without tests and generated files, before and after.`,
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	before := f.String("before", "", "folder of the older revision; empty: none")
	after := f.String("after", ".", "folder of the newer revision")
	return func(_ context.Context, p *page.Page) error {
		old := map[string]Size{}
		var err error
		if *before != "" {
			if old, err = Measure(*before); err != nil {
				return err
			}
		}
		now, err := Measure(*after)
		if err != nil {
			return err
		}
		print(p, old, now)
		return nil
	}
}

func print(p *page.Page, old, now map[string]Size) {
	p.Table("package %s", "lines before %d", "after %d", "tokens before %d", "after %d", "exported before %d",
		"after %d",
		"longest before %d", "after %d", "function %s")
	folders := slices.Sorted(maps.Keys(now))
	for folder := range old {
		if _, ok := now[folder]; !ok {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	row := func(name string, a, b Size) {
		p.Row(name, a.Lines, b.Lines, a.Tokens, b.Tokens, a.Exported, b.Exported, a.Longest().Lines,
			b.Longest().Lines, b.Longest().Name)
	}
	for _, folder := range folders {
		row(folder, old[folder], now[folder])
	}
	row("all", sum(old), sum(now))
	delete(old, kernels)
	delete(now, kernels)
	row("all but kernels", sum(old), sum(now))
}

// kernels is counted apart: assembly decides how long its functions are.
const kernels = "kernels"

func sum(sizes map[string]Size) (all Size) {
	for _, s := range sizes {
		all.Lines += s.Lines
		all.Tokens += s.Tokens
		all.Exported += s.Exported
		all.Functions = append(all.Functions, s.Functions...)
	}
	return all
}
