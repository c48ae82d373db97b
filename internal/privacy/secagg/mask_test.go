package secagg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
)

// TestCoverInParts: a vector that is masked in parts, cut anywhere and in any order, has the bytes of AES-256 in
// counter mode from its first to its last: no part of a mask serves twice. The receiver's own mask is left out.
func TestCoverInParts(t *testing.T) {
	const label = "test"
	pairs := []pair{{with: 1, secret: bytes.Repeat([]byte{1}, 32), first: true},
		{with: 2, secret: bytes.Repeat([]byte{2}, 32)}, {with: 3, secret: bytes.Repeat([]byte{3}, 32), first: true}}
	for _, bits := range []int{8, 16, 32, 64} {
		n := (16<<10 + 24) / (bits / 8)
		want := comm.NewIntegers(bits, n)
		for _, p := range pairs[:2] {
			key, err := hkdf.Expand(sha256.New, p.secret, label, 32)
			if err != nil {
				t.Fatal(err)
			}
			c, err := aes.NewCipher(key)
			if err != nil {
				t.Fatal(err)
			}
			stream := make([]byte, len(want.B))
			cipher.NewCTR(c, make([]byte, aes.BlockSize)).XORKeyStream(stream, stream)
			if !p.first {
				negate(bits, stream)
			}
			want.Add(stream)
		}
		for _, cuts := range [][]int{{0, n}, {0, 1, n}, {0, 3, 5, 5, 17, n - 1, n}, {0, n / 3, n/3 + 1, n}} {
			t.Run(fmt.Sprintf("%d bits, cuts %v", bits, cuts), func(t *testing.T) {
				got, masks := comm.NewIntegers(bits, n), pairMasks(pairs, label)
				for k := len(cuts) - 1; k > 0; k-- {
					cover(masks, got, 3, cuts[k-1], cuts[k])
				}
				if !bytes.Equal(got.B, want.B) {
					t.Error("the bytes must be those of the whole vector")
				}
			})
		}
	}
}

// negate makes packed integers of that many bits their negatives.
func negate(bits int, b []byte) {
	for n := range slices.Chunk(b, bits/8) {
		carry := 1
		for i, v := range n {
			carry += int(^v)
			n[i] = byte(carry)
			carry >>= 8
		}
	}
}

// TestLabels: vectors that differ in only one respect have different masks.
func TestLabels(t *testing.T) {
	id := comm.ReduceID{Generation: 1, Stage: 2, Round: 3, Step: 4, Kind: "kind"}
	v := comm.NewIntegers(32, 8)
	change := func(do func(id *comm.ReduceID)) comm.ReduceID {
		other := id
		do(&other)
		return other
	}
	seen := map[string]int{}
	for k, l := range []string{
		label(id, "part", 5, []byte{6}, 0, v),
		label(change(func(id *comm.ReduceID) { id.Generation++ }), "part", 5, []byte{6}, 0, v),
		label(change(func(id *comm.ReduceID) { id.Stage++ }), "part", 5, []byte{6}, 0, v),
		label(change(func(id *comm.ReduceID) { id.Round++ }), "part", 5, []byte{6}, 0, v),
		label(change(func(id *comm.ReduceID) { id.Step++ }), "part", 5, []byte{6}, 0, v),
		label(change(func(id *comm.ReduceID) { id.Kind = "kin" }), "dpart", 5, []byte{6}, 0, v),
		label(id, "other", 5, []byte{6}, 0, v),
		label(id, "part", 6, []byte{6}, 0, v),
		label(id, "part", 5, []byte{7}, 0, v),
		label(id, "part", 5, nil, 0, v),
		label(id, "part", 5, []byte{6}, 1, v),
		label(id, "part", 5, []byte{6}, 0, comm.NewIntegers(64, 4)),
		label(id, "part", 5, []byte{6}, 0, comm.NewIntegers(32, 9)),
	} {
		if other, is := seen[l]; is {
			t.Errorf("vectors %d and %d must have different labels", other, k)
		}
		seen[l] = k
	}
}

// TestPairSecrets: pairs have different secrets even if two of their members show the same keys.
func TestPairSecrets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		secret, err := pairSecret([]byte("shared"), []byte("seen"), p[0], p[1])
		if err != nil || seen[string(secret)] {
			t.Errorf("members %v have the secret of another pair, %v", p, err)
		}
		seen[string(secret)] = true
	}
}
