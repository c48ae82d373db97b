package cli

import "testing"

func TestNear(t *testing.T) {
	t.Parallel()
	for typed, name := range map[string]string{"id": "if", "lr": "rl", "seed": "shed", "train": "plan"} {
		if got := near(typed, name); got != (typed == "seed") {
			t.Errorf("near(%s, %s) = %v", typed, name, got)
		}
	}
}
