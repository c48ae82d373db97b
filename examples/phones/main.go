// Command phones is a phone without a phone: package mobile in a program, on a graph that it makes up. With -listen it
// is a site that phones reach.
//
//	go run ./examples/phones -dir runs/a                    # prints the ID that a plan lists
//	go run ./examples/phones -dir runs/a -plan plan.yaml    # trains
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/mobile"
)

func main() {
	dir := flag.String("dir", "", "directory of the device")
	plan := flag.String("plan", "", "plan file (default: the ID is printed)")
	listen := flag.String("listen", "", "multiaddress to listen on (default: this device only dials out)")
	nodes := flag.Int("nodes", 60, "nodes of the graph")
	invitation := flag.String("invitation", "", "what the device shows the sites that admit it")
	flag.Parse()
	if err := run(*dir, *plan, *listen, *invitation, *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "phones:", err)
		os.Exit(1)
	}
}

func run(dir, plan, listen, invitation string, nodes int) error {
	config := mobile.NewConfig(dir)
	config.SetListen(listen)
	config.SetEvidence([]byte(invitation))
	config.SetWindow(0)
	if plan != "" {
		text, err := os.ReadFile(plan)
		if err != nil {
			return err
		}
		config.SetPlan(text)
	}
	device, err := mobile.NewDevice(config, files(filepath.Join(dir, "keys")))
	if err != nil || plan == "" {
		if err == nil {
			fmt.Println(device.ID())
		}
		return err
	}
	defer device.Stop()
	g, err := contacts(nodes)
	if err == nil {
		err = device.SetGraph(g)
	}
	if err != nil {
		return err
	}
	device.Allow(true, true, true) // a program on a desk is never short of power
	w := &watch{end: make(chan error, 1)}
	if err := device.Start(w); err != nil {
		return err
	}
	if err := <-w.end; err != nil {
		return err
	}
	all, err := device.Predict(g)
	if err != nil {
		return err
	}
	right := 0
	for i := range all.Nodes() {
		class, err := all.ClassOf(i)
		if err != nil {
			return err
		}
		if class == i%2 {
			right++
		}
	}
	fmt.Printf("%d rounds, %d bytes sent, %d of %d nodes predicted right\n", w.rounds, w.sent, right, all.Nodes())
	return nil
}

// contacts makes a graph of two groups of people who know their own.
func contacts(nodes int) (*mobile.Graph, error) {
	g, err := mobile.NewGraph(2, 2)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if _, err := g.AddNode(fmt.Sprint("person ", i)); err != nil {
			return nil, err
		}
		group := i % 2
		err := errors.Join(g.SetFeature(i, 0, float64(group)), g.SetFeature(i, 1, float64(i%7)/7), g.SetLabel(i, group))
		if i > 1 {
			err = errors.Join(err, g.AddEdge(i, i-2))
		}
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// watch prints what the device reports.
type watch struct {
	rounds int
	sent   int64
	fault  error
	end    chan error
}

func (w *watch) OnState(state, detail string) error {
	fmt.Println(state, detail)
	switch state {
	case mobile.Done:
		w.end <- nil
	case mobile.Failed:
		w.end <- w.fault
	}
	return nil
}

func (w *watch) OnRound(done, _ int, _, _ float64) error { w.rounds = done; return nil }

func (w *watch) OnBytes(sent int64) error { w.sent = sent; return nil }

func (w *watch) OnError(kind, text string) error {
	w.fault = fmt.Errorf("%s: %s", kind, text)
	return nil
}

// files is a store in a directory, for programs on machines that their owner guards.
type files string

func (d files) Get(key string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(string(d), key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (d files) Put(key string, value []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(d), key), value, 0o600)
}
