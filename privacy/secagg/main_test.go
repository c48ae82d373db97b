package secagg

import (
	"testing"

	"github.com/heddle-gnn/heddle/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
