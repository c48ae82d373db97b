// Package figures measures a final model over the labelled nodes of all peers, by one exchange of sums at the end of a
// run, and reports how good it is: compared with a baseline, with intervals, after calibration.
package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Exchange is one peer's part in the sums that end a run. The same sums come out at every peer.
type Exchange struct {
	Metric eval.Metric
	Goal   eval.Goal
	Draw   train.Draw
	Shard  *shard.Shard
	Store  *checkpoint.Store // keeps the sums for a restart (nil = nowhere)

	// Publish is how many test nodes this site must have to send the others its own figures (Published); with 0 it
	// never sends them.
	Publish int
	By      *Groups // test nodes are also measured by the values of a column (nil = not)

	used   comm.Counts
	fault  error     // of the last Run
	logits mat.Dense // of own nodes, once a trainer has computed them
	sums   *sums     // (nil = none yet)
	sheets []int64   // this site's part of sums.Sheets (nil = it was not computed in this process)
}

// sums are those over all peers.
type sums struct {
	Digest      uint32  `json:"digest"` // of the model
	Labels      []int64 `json:"labels"` // train.LabelNumbers, then totals
	Likelihoods []int64 `json:"likelihoods"`
	Sheets      []int64 `json:"sheets"`           // of validation and test nodes
	Groups      []int64 `json:"groups,omitempty"` // of test nodes, with By

	Told []Published `json:"told,omitempty"` // figures of single sites, including this one's
}

// note is the name under which sums are kept next to checkpoints.
const note = "figures"

// What the reductions are of.
const (
	ofLabels      = "figures: label counts"
	ofLikelihoods = "figures: likelihoods of validation nodes"
	ofSheets      = "figures: validation and test nodes"
	ofHeld        = "figures of earlier sums"
	ofSites       = "figures of single sites"
)

// totals are the bytes that a peer sent, by purpose, the in-edges of its nodes, and whether it publishes its figures
// (parts).
const totals = 4 + standings

// Numbers returns how many numbers a peer's part of the three sums has, and how many of these are wide
// (comm.Contribution). g is what thresholds are chosen for.
func Numbers(k graph.TargetKind, classes int, g eval.Goal) (parts, wide [3]int64) {
	s := eval.NewSheet(graph.Labels{Classes: classes}.None(k, 0), g)
	likelihoods, wideOfThem := eval.Likelihoods(k, classes)
	parts = [3]int64{int64(1 + train.LabelsLen(k, classes) + totals), int64(likelihoods), 2 * int64(s.Size())}
	wide = [3]int64{int64(train.LabelReals(k, classes) + totals), int64(wideOfThem)}
	for i := range 2 * s.Size() {
		if s.Wide(i) {
			wide[2]++
		}
	}
	return parts, wide
}

// Run sums over the nodes of all peers of g, through r, what the final model m predicts. logits are the logits of own
// nodes, [Owned × C], or empty at a peer that fetched the model from another one and adds nothing. sent is what this
// peer has sent in the run. Every peer must call Run when its model is final. Peers that kept the sums, as after a
// failure at the end of a run, give them to the others.
func (e *Exchange) Run(ctx context.Context, g *comm.Group, r comm.Reducer, m *nn.Model, logits mat.Dense,
	sent comm.Counts) error {
	e.Take(logits)
	e.fault = e.runExchange(ctx, g, r, m, sent)
	return e.fault
}

// Fault returns the error of the last Run, which is why there are no figures, or nil.
func (e *Exchange) Fault() error { return e.fault }

// runExchange is Run without the logits. The first number of the first sum counts the sites that have the sums already:
// a restarted site learns from it whether to sum anew, at no message more. Each sum needs the totals of the one before:
// likelihoods need the label counts, sheets the temperatures, groups the thresholds. A reduction writes totals over
// this site's part, so it keeps a copy of its sheets.
func (e *Exchange) runExchange(ctx context.Context, g *comm.Group, r comm.Reducer, m *nn.Model,
	sent comm.Counts) error {
	before := g.Bytes()
	defer func() {
		now := g.Bytes()
		e.used = e.used.Plus(comm.Counts{Halo: now.Halo - before.Halo, Reduce: now.Reduce - before.Reduce,
			Control: now.Control - before.Control})
	}()
	mine := sums{Digest: digestOf(m)}
	e.sheets = nil
	if err := e.recall(mine.Digest); err != nil {
		return err
	}
	reduce := func(kind string, counts []int64, bits int, wide func(int) bool) error {
		rest := float64(e.Shard.Nodes) - float64(e.Shard.Owned)
		c := &comm.Contribution{ID: comm.ReduceID{Kind: kind}, Counts: counts, CountBits: bits, Wide: wide}
		if bits > 0 {
			c.CountLimit = func(i int) comm.Limit {
				l := comm.Limit{What: "a number of the figures", Least: 0, Most: max(rest, float64(g.Size()))}
				if wide(i) {
					l.Most = 1 << 62
				}
				return l
			}
		}
		_, err := r.Reduce(ctx, c)
		return err
	}
	kind, classes := e.Shard.Labels.Kind(), e.Shard.Labels.Classes
	bits, counted, reals := comm.CountBits(max(e.Shard.Nodes, int64(g.Size()))), 1+train.LabelsLen(kind, classes),
		1+train.LabelReals(kind, classes)
	first := append([]int64{0}, train.LabelNumbers(e.Shard, e.Draw)...)
	if e.sums != nil {
		first[0] = 1
	}
	first = append(first, sent.Halo, sent.Reduce, sent.Control, int64(e.Shard.Adj.NumEdges()))
	stands, err := e.standing()
	if err != nil {
		return err
	}
	first = append(first, stands[:]...)
	if err := reduce(ofLabels, first, bits,
		func(i int) bool { return i >= counted || i > 0 && i < reals }); err != nil {
		return err
	}
	if held := first[0]; held > 0 {
		return e.share(held, mine, func(v []int64) error { return reduce(ofHeld, v, 0, nil) })
	}
	mine.Labels = first[1:]
	own, _ := e.split(&mine)
	likelihoods, wideOfThem := eval.Likelihoods(kind, classes)
	mine.Likelihoods = make([]int64, likelihoods)
	val := own.NodesIn(graph.Val)
	if !e.logits.Empty() {
		eval.WriteLikelihoods(mine.Likelihoods, e.logits.Select(val), own.Labels.Select(val))
	}
	if err := reduce(ofLikelihoods, mine.Likelihoods, bits, func(i int) bool { return i < wideOfThem }); err != nil {
		return err
	}
	sheet := eval.NewSheet(own.Labels, e.Goal)
	mine.Sheets = make([]int64, 2*sheet.Size())
	writeSheets(sheet, mine.Sheets, own, e.logits, eval.FitTemperatures(mine.Likelihoods, kind, classes))
	e.sheets = slices.Clone(mine.Sheets)
	if err := reduce(ofSheets, mine.Sheets, bits, sheet.Wide); err != nil {
		return err
	}
	if err := e.sumGroups(&mine, g.Size(), reduce); err != nil {
		return err
	}
	if _, _, err := e.readTables(&mine); err != nil {
		return comm.Refused("%v", err)
	}
	if mayTell([standings]int64(mine.Labels[len(mine.Labels)-standings:])) {
		if mine.Told, err = e.tell(ctx, g, &mine, stands[publishing] > 0); err != nil {
			return err
		}
	}
	e.sums = &mine
	return e.keep()
}

// Take sets the logits of own nodes, unless logits are empty.
func (e *Exchange) Take(logits mat.Dense) {
	if !logits.Empty() {
		e.logits = logits
	}
}

// Used returns the bytes that Run has sent.
func (e *Exchange) Used() comm.Counts { return e.used }

// writeSheets writes to v the sheets of the validation and of the test nodes of s.
func writeSheets(sheet eval.Sheet, v []int64, s *shard.Shard, logits mat.Dense, temperatures eval.Temperatures) {
	for k, split := range []graph.Split{graph.Val, graph.Test} {
		if rows := s.NodesIn(split); !logits.Empty() {
			sheet.Write(v[k*sheet.Size():], logits.Select(rows), s.Labels.Select(rows), temperatures)
		}
	}
}

// share gives the sums that `held` peers have to all.
func (e *Exchange) share(held int64, like sums, reduce func([]int64) error) error {
	parts, _ := Numbers(e.Shard.Labels.Kind(), e.Shard.Labels.Classes, e.Goal)
	ends := []int64{parts[0] - 1, parts[0] - 1 + parts[1], parts[0] - 1 + parts[1] + parts[2]}
	v := make([]int64, ends[2]+cells*int64(e.By.Len()))
	if e.sums != nil {
		copy(v, slices.Concat(e.sums.Labels, e.sums.Likelihoods, e.sums.Sheets, e.sums.Groups))
	}
	if err := reduce(v); err != nil {
		return err
	}
	for i := range v {
		v[i] /= held // all peers that have them have the same
	}
	like.Labels, like.Likelihoods, like.Sheets = v[:ends[0]], v[ends[0]:ends[1]], v[ends[1]:ends[2]]
	like.Groups = v[ends[2]:]
	if _, _, err := e.readTables(&like); err != nil {
		return comm.Refused("%v", err)
	}
	if e.sums != nil {
		like.Told = e.sums.Told
	}
	e.sums = &like
	return e.keep()
}

// split returns this peer's part with the nodes that validate, and the label counts of all. They settle the metric.
func (e *Exchange) split(s *sums) (*shard.Shard, train.LabelCounts) {
	numbers := make([]float64, train.LabelsLen(e.Shard.Labels.Kind(), e.Shard.Labels.Classes))
	for i := range numbers {
		numbers[i] = float64(s.Labels[i])
	}
	counts := train.ReadLabels(numbers, e.Shard.Labels.Kind(), e.Draw)
	e.Metric, _ = counts.Metric(e.Metric, nil)
	return counts.HoldOut(e.Shard), counts
}

// recall takes the sums of that model that were kept, if there are any.
func (e *Exchange) recall(digest uint32) error {
	if e.sums != nil {
		return nil
	}
	b, err := e.Store.Note(note)
	if b == nil || err != nil {
		return err
	}
	var kept sums
	if err := json.Unmarshal(b, &kept); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(e.Store.Dir, note), err)
	}
	if kept.Digest != digest {
		return nil
	}
	if _, _, err := e.readTables(&kept); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(e.Store.Dir, note), err)
	}
	e.sums = &kept
	return nil
}

func (e *Exchange) keep() error {
	b, err := json.Marshal(e.sums)
	if err != nil {
		return err
	}
	return e.Store.KeepNote(note, b)
}

// digestOf is a checksum of a model's parameters.
func digestOf(m *nn.Model) uint32 {
	var all []float32
	for _, p := range m.Params() {
		all = append(all, p.Value.Clone().Data...)
	}
	return train.Digest(all)
}

// AddMessages adds the sums that measure the final model. Thresholds are chosen by validation nodes if l.Cuts.
func AddMessages(l *train.Messages, k graph.TargetKind, classes int) {
	var goal eval.Goal
	if l.Cuts {
		goal.Best = "f1" // sums are the same for all goals
	}
	parts, wide := Numbers(k, classes, goal)
	first, last := "label counts, bytes sent", "confusion, ranking and reliability of validation and test nodes"
	if k == graph.Numbers {
		first = "label counts, sums and squares of targets, bytes sent"
		last = "sums of errors of validation and test nodes, and of their squares"
	}
	l.Count(ofLabels, first, 1, parts[0], wide[0])
	l.Sum(ofHeld, "sums that a site has from before a failure", 1, 0,
		parts[0]-1+parts[1]+parts[2]+cells*int64(l.Groups))
	l.Count(ofLikelihoods, "log-likelihoods of validation nodes", 1, parts[1], wide[1])
	l.Count(ofSheets, last, 1, parts[2], wide[2])
	if l.Groups > 0 {
		l.Count(ofValues, "sites that have test nodes of each value of a column (figures_by)", 1, int64(l.Groups), 0)
		l.Count(ofValueCounts, "right and wrong test nodes of each value of a column (figures_by)", 1,
			cells*int64(l.Groups), 0)
	}
	l.Publish(ofSites, "figures of single sites", PublishedBytes) // if any publishes them
}
