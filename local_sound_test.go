package heddle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// parts are the fields that a graph and a part of it have in common.
type parts struct {
	adj    *graph.CSR
	x      *graph.Features
	labels *graph.Labels
	split  *[]graph.Split
}

// unsound are ways to spoil a graph and a part of it.
var unsound = map[string]func(p parts){
	"no row pointers":        func(p parts) { p.adj.RowPtr = nil },
	"row pointers that fall": func(p parts) { p.adj.RowPtr = append([]int64{9}, p.adj.RowPtr[1:]...) },
	"row pointers too far": func(p parts) {
		p.adj.RowPtr = append(slices.Clone(p.adj.RowPtr[:len(p.adj.RowPtr)-1]), 1<<40)
	},
	"an edge below 0":         func(p parts) { p.adj.Col = append([]int32{-1}, p.adj.Col[1:]...) },
	"few edges":               func(p parts) { p.adj.Col = p.adj.Col[:len(p.adj.Col)-1] },
	"more nodes":              func(p parts) { p.adj.NumDst++ },
	"nodes below 0":           func(p parts) { p.adj.NumDst = -1 },
	"other sources":           func(p parts) { p.adj.NumSrc-- },
	"few weights":             func(p parts) { p.adj.Weight = []float32{1} },
	"few labels":              func(p parts) { p.labels.Class = p.labels.Class[:1] },
	"a class too large":       func(p parts) { p.labels.Class = append([]int32{99}, p.labels.Class[1:]...) },
	"a class below none":      func(p parts) { p.labels.Class = append([]int32{-9}, p.labels.Class[1:]...) },
	"classes below 0":         func(p parts) { p.labels.Classes = -1 },
	"few names of classes":    func(p parts) { p.labels.Names = []string{"a"} },
	"few marks of splits":     func(p parts) { *p.split = (*p.split)[:1] },
	"another mark of a split": func(p parts) { *p.split = append([]graph.Split{77}, (*p.split)[1:]...) },
	"few rows":                func(p parts) { p.x.Sparse = &mat.Sparse{Rows: 1, Cols: 3, RowPtr: []int64{0, 0}} },
	"a column too far": func(p parts) {
		x := *p.x.Sparse
		x.Col = append([]int32{int32(x.Cols)}, x.Col[1:]...)
		p.x.Sparse = &x
	},
	"a column below 0": func(p parts) {
		x := *p.x.Sparse
		x.Col = append([]int32{-1}, x.Col[1:]...)
		p.x.Sparse = &x
	},
	"few values": func(p parts) {
		x := *p.x.Sparse
		x.Val = x.Val[:1]
		p.x.Sparse = &x
	},
	"few dense values": func(p parts) {
		*p.x = graph.Features{Dense: mat.Dense{Rows: p.adj.NumDst, Cols: 3, Data: []float32{1}}}
	},
}

// caught returns what call panics with as an error.
func caught(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}

// TestUnsoundInput: a program may make a graph, a model or a shard itself. If it is nil or has edges to nodes that it
// lacks, each function returns an InputError.
func TestUnsoundInput(t *testing.T) {
	ctx := t.Context()
	sound := dataset.Sites(dataset.SitesConfig{Nodes: 60, Sites: 2}, rng.New(1))
	p := Defaults("layer-wise", "")
	p.Transport, p.Gradient().Rounds, p.Peers = "memory", 2, 2
	r, err := Train(ctx, sound, p)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := Split(sound, p)
	if err != nil {
		t.Fatal(err)
	}
	l := Local{Plan: p, Shards: shards}
	j := newJoined(t, l)
	pooled := p
	pooled.Peers = 1
	badGraph, badShard := *sound, *shards[0]
	badGraph.Adj.Col = append([]int32{999}, sound.Adj.Col[1:]...)
	badShard.Adj.Col = append([]int32{999}, shards[0].Adj.Col[1:]...)

	for what, call := range map[string]func(g *graph.Graph, s *shard.Shard) error{
		"Train":        func(g *graph.Graph, _ *shard.Shard) error { _, err := Train(ctx, g, p); return err },
		"Train pooled": func(g *graph.Graph, _ *shard.Shard) error { _, err := Train(ctx, g, pooled); return err },
		"Split":        func(g *graph.Graph, _ *shard.Shard) error { _, err := Split(g, p); return err },
		"Predict":      func(g *graph.Graph, _ *shard.Shard) error { _, err := Predict(r.Model, g); return err },
		"Embed":        func(g *graph.Graph, _ *shard.Shard) error { _, err := Embed(r.Model, g); return err },
		"Compare pooled": func(g *graph.Graph, _ *shard.Shard) error {
			_, err := Compare(ctx, g, shards, Trial{Plan: p, Pooled: true})
			return err
		},
		"Compare one peer": func(g *graph.Graph, _ *shard.Shard) error {
			_, err := Compare(ctx, g, shards, Trial{Plan: pooled})
			return err
		},
		"Compare alone": func(_ *graph.Graph, s *shard.Shard) error {
			_, err := Compare(ctx, sound, []*shard.Shard{s, shards[1]}, Trial{Plan: p, Alone: true})
			return err
		},
		"Local.Train": func(_ *graph.Graph, s *shard.Shard) error {
			_, err := Local{Plan: p, Shards: []*shard.Shard{s, shards[1]}}.Train(ctx)
			return err
		},
		"Join": func(_ *graph.Graph, s *shard.Shard) error {
			site := j.sites[0]
			site.Shard = s
			_, err := Join(ctx, j.plan, site)
			return err
		},
		"Infer": func(_ *graph.Graph, s *shard.Shard) error {
			site := j.sites[0]
			site.Shard = s
			_, err := Infer(ctx, j.plan, site, r.Model, r.Card)
			return err
		},
	} {
		for kind, err := range map[string]error{"nil": call(nil, nil), "nothing": call(&graph.Graph{}, &shard.Shard{}),
			"a wrong edge": call(&badGraph, &badShard)} {
			if input := (*InputError)(nil); !errors.As(err, &input) {
				t.Errorf("%s of %s: %v, must be an InputError", what, kind, err)
			}
		}
		for kind, spoil := range unsound {
			badGraph, badShard := *sound, *shards[0]
			spoil(parts{&badGraph.Adj, &badGraph.X, &badGraph.Labels, &badGraph.Split})
			spoil(parts{&badShard.Adj, &badShard.X, &badShard.Labels, &badShard.Split})
			if err, input := caught(func() error { return call(&badGraph, &badShard) }),
				(*InputError)(nil); !errors.As(err, &input) {
				t.Errorf("%s of %s: %v, must be an InputError", what, kind, err)
			}
		}
	}
	for kind, spoil := range map[string]func(m *nn.Model){
		"nothing":          func(m *nn.Model) { *m = nn.Model{} },
		"no layers":        func(m *nn.Model) { m.Layers = nil },
		"few layers":       func(m *nn.Model) { m.Layers = m.Layers[1:] },
		"a nil layer":      func(m *nn.Model) { m.Layers = []*nn.Layer{nil, nil} },
		"no encoder":       func(m *nn.Model) { m.Encoder = nil },
		"other columns":    func(m *nn.Model) { m.Spec.Features++ },
		"no specification": func(m *nn.Model) { m.Spec = nn.Spec{} },
	} {
		bad := *r.Model
		spoil(&bad)
		for what, call := range map[string]func() error{
			"Predict": func() error { _, err := Predict(&bad, sound); return err },
			"Embed":   func() error { _, err := Embed(&bad, sound); return err },
			"Infer":   func() error { _, err := Infer(ctx, j.plan, j.sites[0], &bad, r.Card); return err },
		} {
			if err, input := caught(call), (*InputError)(nil); !errors.As(err, &input) {
				t.Errorf("%s of a model with %s: %v, must be an InputError", what, kind, err)
			}
		}
	}
	withInit := p
	withInit.Gradient().Init = strings.Repeat("0", 64)
	for what, call := range map[string]func() error{
		"no shards": func() error { _, err := Local{Plan: p}.Train(ctx); return err },
		"no sites": func() error {
			_, err := Compare(ctx, sound, nil, Trial{Plan: p, Alone: true})
			return err
		},
		"no model, Predict": func() error { _, err := Predict(nil, sound); return err },
		"no model, Embed":   func() error { _, err := Embed(nil, sound); return err },
		"no model, Infer": func() error {
			_, err := Infer(ctx, j.plan, j.sites[0], nil, modelfile.Card{})
			return err
		},
		"no model, Recommend": func() error {
			links := j.plan
			links.Task.Kind = "links"
			_, _, err := j.sites[0].Recommend(ctx, links, nil, modelfile.Card{}, nil, "", 1)
			return err
		},
		"no model to start from": func() error {
			_, err := Local{Plan: withInit, Shards: shards, Init: &Initial{}}.Train(ctx)
			return err
		},
		"no graph, Score": func() error { _, _, err := r.Own[0].Score(r.Metric, nil); return err },
	} {
		if input, err := (*InputError)(nil), call(); !errors.As(err, &input) {
			t.Errorf("%s: %v, must be an InputError", what, err)
		}
	}
}

// TestOneRunAState: two runs do not share a directory of checkpoints.
func TestOneRunAState(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 60, Sites: 2}, rng.New(1))
	p := Defaults("layer-wise", "")
	p.Transport, p.Gradient().Rounds, p.Peers = "memory", 2, 2
	shards, err := Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	l := Local{Plan: p, Shards: shards, State: filepath.Join(t.TempDir(), "state")}
	release, err := checkpoint.Lock(l.State)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Train(t.Context())
	want := l.State + " must be the directory of only one peer (got one in use"
	if input := (*InputError)(nil); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
		t.Errorf("beside another run: %v", err)
	}
	release()
	if _, err := l.Train(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOtherData: a run does not go on with other data than it began with.
func TestOtherData(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 400, Sites: 2, Classes: 3, Train: 0.3}, rng.New(1))
	for _, method := range []string{"class-means", "layer-wise", "full-batch", "mini-batch"} {
		p := Defaults(method, "")
		p.Transport, p.Peers = "memory", 2
		if method != "class-means" {
			p.Gradient().Rounds = 2
		}
		state := t.TempDir()
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		stop := func(e Event) {
			if e.Kind == train.Saved {
				interrupt()
			}
		}
		run := func(ctx context.Context, label int32) error {
			other := *g
			other.Labels.Class = slices.Clone(g.Labels.Class)
			other.Labels.Class[0] = label
			shards, err := Split(&other, p)
			if err == nil {
				_, err = Local{Plan: p, Shards: shards, State: state, OnEvent: stop}.Train(ctx)
			}
			return err
		}
		if err := run(ctx, 0); err != nil && ctx.Err() == nil {
			t.Fatal(method, err)
		}
		if err := run(t.Context(), 1); err == nil || !strings.Contains(err.Error(), state) {
			t.Errorf("%s: %v, must name %s", method, err, state)
		}
		if err := run(t.Context(), 0); err != nil {
			t.Error(method, err)
		}
	}
}
