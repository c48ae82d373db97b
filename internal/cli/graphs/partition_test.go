package graphs

import "testing"

func TestBytesOf(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{{"2GiB", 2 << 30}, {"500 MB", 500e6}, {"1.5kB", 1500}, {"12345", 12345}} {
		if n, err := bytesOf(c.text); err != nil || n != c.want {
			t.Errorf("%s: %d, %v", c.text, n, err)
		}
	}
}
