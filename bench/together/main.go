// Together measures what partitioning by the peers themselves costs in quality: the share of edges cut by peers that tell
// each other what they assigned so many times a pass, and by one place, and what they send, one line a graph and policy.
//
//	go run ./bench/together
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "together:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", "../shared/data", "folder of the data sets")
	graphs := flag.String("graph", "cora,amazon-computers,facebook-pages,github-web-ml", "graphs to measure")
	policies := flag.String("policy", "fennel,restream:2,restream:5", "how they are partitioned")
	peers := flag.Int("k", 4, "number of peers")
	rounds := flag.String("rounds", "1,10,100", "exchanges of state in a pass")
	flag.Parse()
	fmt.Println("graph policy alone together_by_rounds megabytes_by_rounds")
	for _, name := range strings.Split(*graphs, ",") {
		g, err := dataset.Read(filepath.Join(*root, name), 0)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "together")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "graph")
		if err := partition.WriteGraph(path, g); err != nil {
			return err
		}
		for _, text := range strings.Split(*policies, ",") {
			p, err := partition.ParsePolicy(text)
			if err != nil {
				return err
			}
			shards, err := partition.Partition(g, p, *peers, 1)
			if err != nil {
				return err
			}
			alone := partition.Describe(shards, partition.Meta{}).Report().CutShare
			fmt.Printf("%s %s %.3f", name, text, alone)
			var sent []float64
			for _, r := range strings.Split(*rounds, ",") {
				n, err := strconv.Atoi(r)
				if err != nil {
					return err
				}
				cut, bytes, err := together(dir, partition.Job{Policy: p, Meta: partition.Meta{Policy: text, Seed: 1}}, *peers, n)
				if err != nil {
					return err
				}
				fmt.Printf(" %.3f", cut)
				sent = append(sent, bytes/1e6)
			}
			for _, mb := range sent {
				fmt.Printf(" %.1f", mb)
			}
			fmt.Println()
		}
	}
	return nil
}

// together returns the share of edges that is cut and the bytes that all peers sent, the shuffle of nodes and features
// not counted.
func together(dir string, job partition.Job, peers, rounds int) (cut, bytes float64, err error) {
	net, errs, all, sent := sim.New(peers, sim.Config{}), make([]error, peers), make([]*partition.Manifest, peers), make([]int, peers)
	var wait sync.WaitGroup
	for p := range peers {
		wait.Go(func() {
			group := comm.NewGroup(net.Transport(p), p, peers)
			defer group.Close()
			s, err := partition.OpenGraph(filepath.Join(dir, "graph"))
			if err != nil {
				errs[p] = err
				return
			}
			defer s.Close()
			out := filepath.Join(dir, fmt.Sprintf("%s-%d-%d", job.Meta.Policy, rounds, p))
			all[p], errs[p] = s.WriteShare(out, job, partition.Team{Rank: p, Size: peers, Rounds: rounds,
				Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
					if what != "nodes and their edges" {
						for q, b := range out {
							if q != p {
								sent[p] += len(b)
							}
						}
					}
					return group.SendRecv(context.Background(), comm.Halo, what, out, limit)
				}})
			errs[p] = errors.Join(errs[p], os.RemoveAll(out))
		})
	}
	wait.Wait()
	for _, n := range sent {
		bytes += float64(n)
	}
	if err := errors.Join(errs...); err != nil {
		return 0, 0, err
	}
	return all[0].Report().CutShare, bytes, nil
}
