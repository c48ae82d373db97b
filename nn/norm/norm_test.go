package norm_test

import (
	"testing"

	"github.com/heddle-gnn/heddle/nn/nntest"
	"github.com/heddle-gnn/heddle/nn/norm"
)

func TestLayerNorm(t *testing.T) { nntest.CheckRows(t, norm.NewLayerNorm("a", 6), 6) }

func TestBatchNorm(t *testing.T) { nntest.CheckRows(t, norm.NewBatchNorm("a", 6), 6) }
