package heddle

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/train"
)

// TestSentAsDisclosed: a run sends what was disclosed before it, row by row if nothing ends it early and all rows are
// sent, and no site sends more bytes than its bound.
func TestSentAsDisclosed(t *testing.T) {
	for _, c := range []struct {
		given       string
		exact       bool    // as many rows as disclosed; else at most
		most        float64 // the bound of all sites is at most this multiple of the bytes that they send
		node, fresh float64 // numbers of a node (−1 = not checked)
	}{
		{"method: layer-wise; rounds: 4; model: sage; encoder: pca:16; hidden: 12; exchange: halo; keep_last: true",
			true, 1.25, 28, 28},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: pca:16+classes; hidden: 12; exchange: " +
			"halo; keep_last: true", true, 1.25, 3*4*7 + 23 + 12, 3*7 + 23 + 12},
		{"method: layer-wise; rounds: 4; model: sage; encoder: pca:16+classes; hidden: 12; rows: int8; sums: auto",
			false, 2.5, 3*4*7 + 23 + 12, 3*7 + 23 + 12},
		{"method: layer-wise; rounds: 4; model: gin; hops: 2; encoder: mlp; hidden: 12; layer_output: logits; " +
			"exchange: halo; keep_last: true", true, 1.25, 4 * 7, 2 * 7},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: pca:16; hidden: 12; inductive: true; exchange: " +
			"halo; keep_last: true", true, 1.25, 16 + 2*12 + 2, 16 + 2*12},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: pca:16; hidden: 12; rows: int8; updates: int16", false,
			2.5, 16 + 12, 16 + 12},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: pca:16; hidden: 12; rows: int8; updates: int4", false,
			2.5, 16 + 12, 16 + 12},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: pca:16; hidden: 12; rows: int8; " +
			"updates: auto; local_steps: 2", false, 2.5, 16 + 12, 16 + 12},
		{"class_rounds: 1; class_target: labels; hops: 2; exchange: halo; rows: float32; sums: float32", true, 1.31,
			2 * 7, 7},
		{"class_target: labels; hops: 2; exchange: halo; rows: int4", false, 3, 3 * 2 * 7, 3 * 7},
		{"class_rounds: 1; class_target: labels; metric: auc; hops: 2; exchange: halo; sums: float32", false, 1.7,
			2 * 7, 7},
		{"class_rounds: 2; class_target: residual; random_features: 80; metric: auc; hops: 2; exchange: halo", false,
			1.8, -1, -1},
		{"epsilon: 4; class_target: labels", true, 2, 2 * 7, 2 * 7},
		{"method: layer-wise; rounds: 4; model: gcn; encoder: raw; hidden: 12; exchange: halo; keep_last: true", false,
			8, 600 + 2 + 12, 600 + 12},
		{"", false, 20, 3 * 6 * 7, 4 * 6},
		{"method: full-batch; model: gcn; hidden: 8; layers: 2; rounds: 3; exchange: halo", false, 12,
			600 + 1 + (3+5)*7, 600 + (3+5)*7},
		{"method: full-batch; model: gat; heads: 2; hidden: 8; layers: 2; rounds: 3; fetch: sar; eval_every: 2", false,
			12, 600 + (6+4)*7, 600 + (6+4)*7},
		{"method: full-batch; model: sage; hidden: 8; layers: 3; rounds: 3; norm: batch", false,
			6, -1, -1},
		{"method: full-batch; model: appnp; hidden: 8; hops: 3; alpha: 0.1; rounds: 3; inductive: true", false, 4, -1,
			-1},
		{"method: full-batch; model: sign; hidden: 8; hops: 2; rounds: 3; correct_smooth: 3", false, 4, -1, -1},
		{"method: full-batch; model: gcn; hidden: 8; rounds: 3; memory: 1; label_inputs: 0.5", false,
			120, -1, -1},
		{"method: mini-batch; model: gcn; hidden: 8; rounds: 3; batch_size: 20", false, 600, -1, -1},
		{"method: mini-batch; model: gat; heads: 2; hidden: 8; rounds: 3; batch_size: 20; fanouts: [3, 5]; " +
			"group: 2; inductive: true", false, 400, -1, -1},
		{"method: mini-batch; task: links; model: sage; hidden: 8; rounds: 3; batch_size: 2000; decoder: mlp", false,
			60, -1, -1},
		{"method: mini-batch; task: links; model: gcn; hidden: 8; rounds: 3; round_steps: 2; batch_size: 100; " +
			"group: 2; negatives: 2", false, 60, -1, -1},
		{"method: layer-wise; task: links; model: gcn; hidden: 8; rounds: 3; decoder: distmult; " +
			"encoder: pca:16; eval_every: 2", true, 3, 1 + 2*16 + 2*8, 2*16 + 2*8},
		{"method: layer-wise; task: links; model: sage; hidden: 8; rounds: 3; decoder: mlp; encoder: raw; " +
			"rows: int8; layers: 1; hops: 2", false, 20, -1, -1},
		{"method: full-batch; task: links; model: gcn; hidden: 8; rounds: 3; decoder: mlp", false, 12, -1, -1},
		{"method: full-batch; task: links; model: sage; hidden: 8; rounds: 3; negatives_from: near; " +
			"negatives: 2; rows: int8", false, 12, -1, -1},
	} {
		t.Run(c.given, func(t *testing.T) {
			l := ofSites(t, 3, "")
			l.Plan = read(t, strings.ReplaceAll(c.given, "; ", "\n")+"\ntransport: memory")
			r, err := l.Train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bound := int64(0)
			for rank, s := range l.Shards {
				d, err := disclosure.Of(l.Plan, s)
				if err != nil {
					t.Fatal(err)
				}
				one := d
				bound += one.Bytes
				if sent := r.Peers[rank].Counts; sent.Total() > one.Bytes {
					t.Errorf("site %d sent %d bytes (%+v), must be at most %d", rank, sent.Total(), sent, one.Bytes)
				}
				rows, gives := int64(0), int64(0)
				for _, line := range one.Sends {
					if line.Kind == train.Rows {
						rows += line.Sum
					}
				}
				for _, n := range d.Reads {
					gives += int64(n)
				}
				if got := r.Peers[rank].Halo; c.exact && got != 4*rows*gives {
					t.Errorf("site %d sent %d bytes of rows, must be those of %d numbers of %d nodes", rank, got, rows,
						gives)
				}
				if c.node >= 0 && (one.Node != c.node || one.Fresh != c.fresh) {
					t.Errorf("%v numbers of a node, %v of them fresh; must be %v and %v", one.Node, one.Fresh, c.node,
						c.fresh)
				}
			}
			sent := r.Total()
			if float64(bound) > c.most*float64(sent.Total()) {
				t.Errorf("the bound of all sites is %d bytes, %d were sent", bound, sent.Total())
			}
			t.Logf("sent %d (%+v), bound %d", sent.Total(), sent.Counts, bound)
		})
	}
}

// TestHeldToTheList: sessions of a run enforce its list, in one process and over the network. A sum and rows that are
// not on it are refused by name, and nothing of them is sent.
func TestHeldToTheList(t *testing.T) {
	l := ofSites(t, 2, "")
	l.Plan = read(t, "")
	terms := make([]session.Terms, 2)
	var err error
	for r, own := range l.Shards {
		if terms[r], err = disclosure.TrainingTerms(l.Plan, r, own); err != nil {
			t.Fatal(err)
		}
	}
	for name, send := range map[string]func(context.Context, *session.Session) error{
		`sum "components" must be on the list`: func(ctx context.Context, s *session.Session) error {
			_, err := s.Sums.Reduce(ctx,
				&comm.Contribution{ID: comm.ReduceID{Kind: "components"}, Update: []float32{1}})
			return err
		},
		`rows "components" must be on the list`: func(ctx context.Context, s *session.Session) error {
			_, err := s.Group.SendRecv(ctx, comm.Halo, "components", [][]byte{{1}, {1}}, 10)
			return err
		},
	} {
		for _, listen := range [][]string{nil, {"/ip4/127.0.0.1/udp/0/quic-v1"}} {
			sent := make([]int64, 2)
			err := session.Local(t.Context(), "", listen, terms, func(ctx context.Context, s *session.Session) error {
				return s.Once(ctx, func(ctx context.Context) error {
					err := send(ctx, s)
					sent[s.Rank] = s.Group.Bytes().Total()
					return err
				})
			})
			if !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), name) || sent[0]+sent[1] > 0 {
				t.Errorf("listening at %v: %v, %d bytes sent; must be refused with %s", listen, err, sent, name)
			}
		}
	}
}
