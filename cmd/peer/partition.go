package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph/partition"
)

func newPartition() *cobra.Command {
	s := Source{Peers: auto}
	var seed uint64
	var out string
	c := &cobra.Command{
		Use:   "partition --data D --parts K --out DIR",
		Short: "Cut a data set into a part for each peer",
		Example: `  peer partition --data data/cora --parts 4 --policy random --out parts
  peer partition --data data/twitch --policy by-column --out parts`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.Peers < 1 && s.Peers != auto {
				return badInput{fmt.Errorf("parts: %d, want at least 1", s.Peers)}
			}
			policy, err := partition.ParsePolicy(s.Policy)
			if err != nil {
				return badInput{err}
			}
			g, err := readData(s.Data, s.Split)
			if err != nil {
				return err
			}
			shards, err := cut(g, policy, s.parts("retexo"), seed)
			if err != nil {
				return err
			}
			m, err := partition.WriteDir(out, shards, partition.Meta{Policy: s.Policy, Seed: seed, Sites: sitesOf(s.Policy, g.Sites)})
			if err != nil {
				return badInput{err}
			}
			describe(c.OutOrStdout(), out, m)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&s.Data, "data", "", "data set: a directory with graph.npz, or the .npz file")
	f.IntVar(&s.Split, "split", 0, "column of the data set's masks")
	f.IntVar(&s.Peers, "parts", s.Peers, "number of parts (default 4; the sites for by-column)")
	f.Lookup("parts").DefValue = "0"
	f.StringVar(&s.Policy, "policy", "random", "who owns which node: random, contiguous, contiguous-edges, hash, by-column, ldg, fennel, fec, restream:N or multilevel")
	f.Uint64Var(&seed, "seed", 1, "of what the policy draws")
	f.StringVarP(&out, "out", "o", "", "directory to write, which must not exist or be empty")
	required(c, "data", "out")
	return c
}

func sitesOf(policy string, sites []string) []string {
	if policy != "by-column" {
		return nil
	}
	return sites
}

// describe prints what a partition is like.
func describe(w io.Writer, dir string, m *partition.Manifest) {
	r := m.Report()
	fmt.Fprintf(w, "%s: %s in %d parts by %s, seed %d\n", dir, m.Name, r.Parts, m.Policy, m.Seed)
	fmt.Fprintf(w, "  %d nodes, %d edges, of which %.1f %% are cut; replication factor %.2f\n", r.Nodes, r.Edges/2, 100*r.CutShare, r.Replication)
	fmt.Fprintf(w, "  largest part over the mean: nodes %.2f, edges %.2f, training nodes %.2f, halo %.2f\n", r.NodeBalance, r.EdgeBalance, r.TrainBalance, r.HaloBalance)
	for i, p := range m.Parts {
		name := ""
		if i < len(m.Sites) {
			name = " " + m.Sites[i]
		}
		halo := 0
		for _, n := range p.Halo {
			halo += n
		}
		fmt.Fprintf(w, "  part-%d%s: %d nodes (%d train, %d val, %d test), %d halo rows\n", i, name, p.Owned, p.Train, p.Val, p.Test, halo)
	}
}
