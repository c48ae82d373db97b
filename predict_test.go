package heddle

import (
	"math"
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
)

// TestPredictions: the likeliest class with its probability, or of several classes all that are more likely than not.
func TestPredictions(t *testing.T) {
	logits := mat.New(2, 3)
	copy(logits.Data, []float32{0, float32(math.Log(2)), 0, -1, 0, 3})
	one := Predictions{Logits: logits}
	if class, p := one.Classes(0), one.Probabilities(0); !reflect.DeepEqual(class, []int{1}) || math.Abs(p[1]-0.5) > 1e-6 {
		t.Errorf("class %v with probability %v, must be 1 with 0.5", class, p)
	}
	several := Predictions{Logits: logits, kind: target.Several}
	if class, p := several.Classes(1), several.Probabilities(1); !reflect.DeepEqual(class, []int{2}) || math.Abs(p[2]-1/(1+math.Exp(-3))) > 1e-6 {
		t.Errorf("classes %v with probabilities %v", class, p)
	}
	if class := several.Classes(0); !reflect.DeepEqual(class, []int{1}) {
		t.Errorf("classes %v, must be 1", class)
	}
}
