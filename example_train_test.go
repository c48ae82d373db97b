package heddle_test

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
)

func trainHospitals(ctx context.Context) error {
	g, err := dataset.Import(dataset.ImportConfig{Nodes: "examples/hospitals/patients.csv",
		Edges: "examples/hospitals/contacts.csv", Label: "readmitted", Site: "hospital"})
	if err != nil {
		return err
	}
	plan := heddle.Defaults("class-means", "") // a peer for each hospital, over QUIC on this machine
	result, err := heddle.Train(ctx, g, plan)
	if err != nil {
		return err
	}
	fmt.Printf("%d peers, test accuracy %.2f\n", len(result.Peers), result.Test)
	return nil // result.Save writes the model file, heddle.Predict applies it
}

func ExampleTrain() {
	if err := trainHospitals(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 3 peers, test accuracy 0.90
}
