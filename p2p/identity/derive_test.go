package identity

import (
	"bytes"
	"testing"
)

// TestDeriveIdentity freezes the key of a secret and a rank: peers of different versions derive the
// same.
func TestDeriveIdentity(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, minSecret)
	seen := make(map[string]bool)
	for rank := range 3 {
		id, err := Derive(secret, rank)
		if err != nil {
			t.Fatal(err)
		}
		seen[id.PeerID()] = true
		if want := "12D3KooWSsK9D5mcQufhSywidYeLShKfGPKEZg9rx5Vbhq3ZvrHz"; rank == 2 && id.PeerID() != want {
			t.Errorf("rank 2 is %s, must be %s", id.PeerID(), want)
		}
	}
	if len(seen) != 3 {
		t.Error("two ranks have one key")
	}
	if _, err := Derive(secret[1:], 0); err == nil {
		t.Error("a short secret was taken")
	}
}
