package dataset

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// Alike returns c, with its defaults, with the roles of columns that the encoding Like gives them, and that encoding.
func (c ImportConfig) Alike() (ImportConfig, *Encoding, error) {
	c = c.withDefaults()
	e, err := parseEncoding(c.Like)
	if err != nil {
		return c, nil, err
	}
	c.ID, c.Label, c.Multi, c.Regression, c.Split, c.Site = e.ID, e.Label, e.Multi, e.Regression, e.Split, e.Site
	c.Source, c.Target, c.Weight, c.Merge, c.Relation = e.Source, e.Target, e.Weight, e.Merge, e.Relation
	c.Directed, c.SplitTime = e.Directed, e.SplitTime
	return c, e, nil
}

// Dated returns e with the dates of other tables in the order of day and month that dates gives, as in ImportConfig.
func (e *Encoding) Dated(dates []string) (*Encoding, error) {
	list, err := (&ImportConfig{Date: dates}).asked()
	here := *e
	here.Columns = slices.Clone(e.Columns)
	for _, one := range list {
		k := slices.IndexFunc(e.Columns, func(c table.Column) bool {
			return c.Name == one.Name && (c.Kind == table.Date || c.Kind == table.Age)
		})
		if k < 0 {
			return nil, fmt.Errorf("date must be a column of dates of the model (got %q)", one.Name)
		}
		if one.MonthFirst || one.DayFirst {
			here.Columns[k].MonthFirst = one.MonthFirst
		}
	}
	return &here, err
}

// readAlike reads tables by the encoding Like. Labels may be absent.
func (c ImportConfig) readAlike() (*graph.Graph, *table.Facts, error) {
	c, e, err := c.Alike()
	if err != nil {
		return nil, nil, err
	}
	here, err := e.Dated(c.Date)
	if err != nil {
		return nil, nil, err
	}
	g, r, err := here.read([]string{c.Nodes}, []string{c.Edges}, c.Format)
	if err != nil {
		return nil, nil, err
	}
	if g.Name = c.Name; c.Split == "" && c.SplitTime == "" && c.Label != "" {
		c.DrawSplit(g)
	}
	if g.Encoding, err = json.Marshal(e); err != nil {
		return nil, nil, err
	}
	f, err := (*Profile)(nil).Facts(e, g, r)
	return g, f, err
}
