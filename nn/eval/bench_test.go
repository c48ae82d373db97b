package eval

import "testing"

func BenchmarkCount(b *testing.B) {
	for _, multi := range []bool{false, true} {
		name := "single"
		if multi {
			name = "multi"
		}
		scores, labels := task(1, 20000, 40, multi, 2)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * 20000 * 40)
			for b.Loop() {
				Count(scores, labels, nil)
			}
		})
	}
}
