package classmeans

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

var rewriteFrozen = flag.Bool("rewrite", false, "write testdata/frozen.txt anew")

// TestFrozen: with private edges and a given secret, a run gives the parameters, bytes and validation figure that it
// gave when testdata/frozen.txt was written, to the bit. The plain kernels make the values, in a process of their own.
func TestFrozen(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the values are those of amd64")
	}
	const file, kernels = "testdata/frozen.txt", "HEDDLE_KERNELS=generic"
	if os.Getenv("HEDDLE_KERNELS") != "generic" {
		again := exec.Command(os.Args[0], "-test.run=^TestFrozen$", fmt.Sprintf("-rewrite=%v", *rewriteFrozen))
		again.Env = append(os.Environ(), kernels)
		if text, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	var got strings.Builder
	for _, target := range []string{"labels", "residual"} {
		for _, parts := range []int{1, 2, 4} {
			g := communities(300, 3)
			c := private(g, target, 8)
			r := mustRun(t, c, cut(t, g, parts), options{setup: secretly(t, c, 1)})
			sent := r.sent()
			fmt.Fprintf(&got, "%s, %d: parameters %x halo %d reduce %d control %d validation %v\n", target, parts,
				sha256.Sum256(fmt.Append(nil, r.flat(0))), sent.Halo, sent.Reduce, sent.Control,
				r.trainers[0].Result().Final().Val)
		}
	}
	if *rewriteFrozen {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
