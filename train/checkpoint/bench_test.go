package checkpoint

import "testing"

// A state of 64 MiB, as frozen rows make it: written and synced, read and checked.
func BenchmarkStore(b *testing.B) {
	const values = 1 << 24
	s := &Store{Dir: b.TempDir()}
	st := &State{Fingerprints: run, F32: map[string][]float32{"rows": make([]float32, values)}}
	b.Run("save", func(b *testing.B) {
		b.SetBytes(4 * values)
		for b.Loop() {
			if err := s.Save(1, st); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(4 * values)
		for b.Loop() {
			if _, _, err := s.Readable(run); err != nil {
				b.Fatal(err)
			}
		}
	})
}
