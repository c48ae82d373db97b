package graphs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/graph/dgl"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/nn/onnx"
)

func newExport() *cobra.Command {
	var shards, out, model, toONNX string
	cmd := &cobra.Command{
		Use:   "export (--shards DIR --out DIR | --model FILE --onnx FILE)",
		Short: "Write a partition for DGL, or a model as ONNX",
		Long: `Write a partition in the format of the Deep Graph Library, which dgl.distributed.load_partition opens. DGL numbers the
nodes of a part consecutively; the column orig_id has the node numbers of the shards. Sparse features become dense.

With --onnx write a model in the format of ONNX, operator set 18, with the inputs x, edge_index and edge_weight and the
outputs logits and probabilities (docs/reference/model-file.md).`,
		Example: "  peer export --shards parts --out dgl\n  peer export --model runs/cora-auto-1/model.safetensors --onnx model.onnx",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case (model == "") != (toONNX == "") || (shards == "") != (out == "") || (shards == "") == (model == ""):
				return cli.Invalidf("give --shards and --out, or --model and --onnx")
			case model != "":
				return exportONNX(cmd, model, toONNX)
			}
			list, closer, err := shard.ReadDir(shards)
			if err != nil {
				return cli.Invalid(err)
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			path, err := dgl.WriteDir(out, list)
			if err != nil {
				return cli.Invalid(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d parts of %s\n", path, len(list), list[0].Name)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&shards, "shards", "", "directory of a partition")
	f.StringVarP(&out, "out", "o", "", "directory to write; must be new or empty")
	f.StringVar(&model, "model", "", "model.safetensors of a run")
	cli.Reads(f, "shards", "model")
	f.StringVar(&toONNX, "onnx", "", "ONNX file to write")
	return cmd
}

// exportONNX writes a model as ONNX.
func exportONNX(cmd *cobra.Command, model, to string) error {
	m, card, err := modelfile.Read(model)
	if err != nil {
		return cli.Invalid(err)
	}
	var b bytes.Buffer
	if err := onnx.Write(&b, m, card); err != nil {
		return cli.Invalidf("%s: %w", model, err)
	}
	if err := cli.WriteFile(cmd.OutOrStdout(), to, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }); err != nil {
		return err
	}
	text := cli.Text(cmd.OutOrStdout(), cmd.ErrOrStderr(), to)
	fmt.Fprintf(text, "%s: %d bytes\n", to, b.Len())
	if m.Closed != nil && m.Closed.Spec.SiteShares > 0 {
		fmt.Fprintln(text, "  it leaves out the move to a site's own shares of the classes, which needs validation labels: peer predict makes it")
	}
	return nil
}

// importDGL makes shards from a partition that DGL wrote.
func importDGL(cmd *cobra.Command, path, out string, n dgl.Names) error {
	p, err := dgl.Read(path)
	if err != nil {
		return cli.Invalid(err)
	}
	g, owner, err := p.Graph(n)
	if err != nil {
		return cli.Invalid(err)
	}
	shards, err := shard.Cut(g.Numbered(), owner, len(p.Parts))
	if err != nil {
		return cli.Invalidf("%s: %w", path, err)
	}
	return writeParts(cmd.OutOrStdout(), out, shards, shard.Meta{Policy: "dgl " + p.Method})
}
