package heddle

import (
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }
