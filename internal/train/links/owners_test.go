package links

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
)

// TestMessagesAreNotBelieved: IDs beyond the graph, of two owners, or that are not numbers are refused.
func TestMessagesAreNotBelieved(t *testing.T) {
	for must, b := range map[string][]byte{
		"must be a number": {0x80}, "must be from 0 to 2 (got 3)": {12}, "must be from 0 to 2 (got -1)": {3},
		"one owner": {0, 0},
	} {
		d := &Directory{[]uint16{Nobody, Nobody, Nobody}, make([]int32, 3), make([]uint8, 3)}
		if err := d.enter(1, b, 2); !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), must) {
			t.Errorf("%v: the error is %v, must contain %q", b, err, must)
		}
	}
}
