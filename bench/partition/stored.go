package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/rivals"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// stream stores generated graphs in dir, if they are not there, and partitions them from there in bounded memory: a
// line for each phase with its seconds and edges, then one with the quality.
func stream(dir, graphs, policies, parts string, edges int, memory int64) error {
	debug.SetMemoryLimit(memory * 3 / 4)
	for _, name := range strings.Split(graphs, ",") {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.graph", name, edges))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			groups, inside := map[string]int{"power-law": 1, "communities": groups}[name], inside
			if groups == 0 {
				return fmt.Errorf("%q is not generated", name)
			}
			if groups == 1 {
				inside = 0
			}
			start, busy := time.Now(), rivals.Processor()
			n, batches := list(edges, groups, inside)
			if err := partition.Ingest(path, name, n, batches, graph.Build{}, memory/4); err != nil {
				return err
			}
			fmt.Printf("%s ingest seconds %.1f cpu %.1f peak_MB %d\n", name, time.Since(start).Seconds(), (rivals.Processor() - busy).Seconds(), rivals.Resident("VmHWM", false)>>20)
		}
		for _, policy := range strings.Split(policies, ",") {
			for _, k := range strings.Split(parts, ",") {
				k, err := strconv.Atoi(k)
				if err != nil {
					return err
				}
				if err := streamOne(path, filepath.Join(dir, fmt.Sprintf("%s-%d-%s-%d", name, edges, policy, k)), policy, k, memory); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func streamOne(path, out, policy string, k int, memory int64) (err error) {
	p, err := partition.ParsePolicy(policy)
	if err != nil {
		return err
	}
	s, err := partition.OpenGraph(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	debug.FreeOSMemory()
	rivals.Resident("VmRSS", true)
	start, busy := time.Now(), rivals.Processor()
	last, lastBusy := "", time.Duration(0)
	took := make(map[string]time.Duration) // processor time of each phase
	m, phases, err := s.Write(out, partition.Job{Policy: p, Parts: k, Memory: memory, Meta: partition.Meta{Policy: policy, Seed: 1},
		Watch: func(p partition.Progress) error {
			if p.Phase != last {
				now := rivals.Processor()
				took[last] += now - lastBusy
				last, lastBusy = p.Phase, now
			}
			return nil
		}})
	if err != nil {
		return err
	}
	took[last] += rivals.Processor() - lastBusy
	for _, t := range phases {
		cpu := took[t.Phase].Seconds()
		fmt.Printf("%s %s seconds %.1f cpu %.1f M_edges %.1f M_edges_per_second %.1f per_cpu_second %.1f\n", filepath.Base(out), t.Phase, t.Seconds, cpu, float64(t.Edges)/1e6, float64(t.Edges)/1e6/t.Seconds, float64(t.Edges)/1e6/cpu)
	}
	r := m.Report()
	fmt.Printf("%s all seconds %.1f cpu %.1f peak_MB %d nodes %d stored_edges %d cut %.4f replication %.3f nodes_balance %.3f edges_balance %.3f\n", filepath.Base(out),
		time.Since(start).Seconds(), (rivals.Processor() - busy).Seconds(), rivals.Resident("VmHWM", false)>>20, r.Nodes, r.Edges, r.CutShare, r.Replication, r.NodeBalance, r.EdgeBalance)
	return nil
}
