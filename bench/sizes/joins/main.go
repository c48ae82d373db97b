// Command joins trains as one site of a run: joins PLAN KEY PART MODEL.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

func main() {
	text, err1 := os.ReadFile(os.Args[1])
	id, err2 := identity.Load(os.Args[2], nil)
	own, file, err3 := shard.ReadShard(os.Args[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	plan, err := heddle.ReadPlan(text, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	var site heddle.Site
	site.Identity, site.Shard = id, own
	result, err := heddle.Join(context.Background(), *plan, site)
	if err != nil {
		log.Fatal(err)
	}
	if err := result.Save(os.Args[4]); err != nil {
		log.Fatal(err)
	}
}
