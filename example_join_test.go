package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/rng"
)

// federation returns a plan of three members on this machine, and what each of them has. In a real one each site makes
// its identity and its part by itself, and addresses are of other machines.
func federation() (heddle.Plan, []heddle.Site, error) {
	plan := heddle.Defaults("class-means", "")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 3, Train: 0.3}, rng.New(1))
	var sites []heddle.Site
	var members []string
	for _, name := range []string{"hill", "port", "mill"} {
		id, err := identity.New()
		if err != nil {
			return plan, nil, err
		}
		port, err := net.ListenPacket("udp4", "127.0.0.1:0") // any that is free
		if err != nil {
			return plan, nil, err
		}
		defer port.Close()
		members = append(members, fmt.Sprintf("%s=%s@%s", name, id.PeerID(), port.LocalAddr()))
		var site heddle.Site
		site.Identity, site.Wait = id, time.Minute
		sites = append(sites, site)
	}
	if err := plan.AddMembers(members, 0); err != nil {
		return plan, nil, err
	}
	parts, err := heddle.Split(g, plan)
	if err != nil {
		return plan, nil, err
	}
	for k := range sites {
		sites[k].Shard = parts[k]
	}
	return plan, sites, nil
}

// Three members of a plan train together, here in one process.
func ExampleJoin() {
	plan, sites, err := federation()
	if err != nil {
		fmt.Println(err)
		return
	}
	results, errs := make([]*heddle.Result, len(sites)), make([]error, len(sites))
	var wait sync.WaitGroup
	for k, site := range sites {
		wait.Go(func() { results[k], errs[k] = heddle.Join(context.Background(), plan, site) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one result at all sites:", results[0].Test == results[1].Test && results[0].Test == results[2].Test)
	fmt.Println("better than chance:", results[0].Test > 0.5)

	// Then they predict together, with the rows of neighbors at other sites.
	answers := make([]*heddle.Inference, len(sites))
	for k, site := range sites {
		wait.Go(func() {
			answers[k], errs[k] = heddle.Infer(context.Background(), plan, site, results[k].Model, results[k].Card)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("as after training:", answers[0].Test == results[0].Test)
	// Output:
	// one result at all sites: true
	// better than chance: true
	// as after training: true
}
