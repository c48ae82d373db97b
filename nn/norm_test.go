package nn_test

import (
	"testing"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/nntest"
)

func TestLayerNorm(t *testing.T) { nntest.CheckRows(t, nn.NewLayerNorm("a", 6), 6) }

func TestBatchNorm(t *testing.T) { nntest.CheckRows(t, nn.NewBatchNorm("a", 6), 6) }
