package speed

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/retexo"
)

// secured ends the name of a way whose sums are secure.
const secured = ", secure sums"

// planOver is the plan of training over a transport: memory, quic or tcp, with secure sums or without.
func planOver(transport string, rounds int) (heddle.Plan, error) {
	transport = strings.TrimSuffix(transport, secured)
	p := heddle.Defaults("layer-wise", "")
	p.LayerWise.Encoder = plan.Encoder{Kind: "raw"}
	p.Gradient().Rounds, p.Peers = rounds, 4
	switch transport {
	case "memory":
		p.Transport = transport
	case "quic", "tcp":
		p.Carrier = transport
	default:
		return p, fmt.Errorf("transport must be memory, quic or tcp (got %q)", transport)
	}
	return p, nil
}

// train trains once and measures from the first greeting to the last test count.
func (o options) train(ctx context.Context, data string) (f figures, err error) {
	p, err := planOver(o.one, o.rounds)
	if err != nil {
		return f, err
	}
	g, err := dataset.Read(data, 0)
	if err != nil {
		return f, err
	}
	shards, err := heddle.Split(g, p)
	if err != nil {
		return f, err
	}
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return f, err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return f, err
		}
		defer pprof.StopCPUProfile()
	}
	err = disclosure.Groups(ctx, p, p.Peers, func(ctx context.Context, group *comm.Group) error {
		start, own := time.Now(), shards[group.Rank()]
		c, err := p.Layerwise(own)
		if err != nil {
			return err
		}
		model, err := c.NewModel()
		if err != nil {
			return err
		}
		trainer, err := retexo.New(c, own, model)
		if err != nil {
			return err
		}
		sums := comm.Reducer(group)
		if strings.HasSuffix(o.one, secured) {
			if sums, err = secagg.New(ctx, secagg.KeyTerms{Least: p.Peers}, group); err != nil {
				return err
			}
		}
		if err := trainer.Run(ctx, group, sums); err != nil || group.Rank() > 0 {
			return err
		}
		f.Seconds, f.TestAccuracy = time.Since(start).Seconds(), trainer.Result().Final().Test
		return nil
	})
	return f, err
}
