package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

// TestDoctorConcludes: conclusions from who was reached.
func TestDoctorConcludes(t *testing.T) {
	fault := fmt.Errorf("i/o timeout")
	for _, test := range []struct {
		name   string
		found  []node.Sighting
		faults int
		want   []string
	}{
		{"blocked", []node.Sighting{{Name: "south", ID: "12D3KooWsouth", Via: "quic", Err: fault},
			{Name: "south", ID: "12D3KooWsouth", Via: "tcp", RoundTrip: time.Millisecond}},
			0, []string{"UDP seems to be blocked", "carrier auto or tcp",
				"not south (12D3KooWso…) by quic: i/o timeout", "clock    0s from"}},
		{"open", []node.Sighting{{Name: "south", ID: "12D3KooWsouth", Via: "quic", RoundTrip: time.Millisecond,
			Rate: 2e6, Ahead: 2 * time.Hour}},
			1, []string{"udp      not blocked", "2.0 MB/s", "clock    FAULT 2h0m0s behind", "timedatectl"}},
		{"relayed", []node.Sighting{{Name: "south", ID: "12D3KooWsouth", Via: "relay"},
			{Name: "relay", ID: "12D3KooWrelay", Relay: true, Via: "tcp"}},
			0, []string{"south 12D3KooWsouth only through a relay"}},
		{"nobody", []node.Sighting{{Name: "relay", ID: "12D3KooWrelay", Relay: true, Via: "tcp", Err: fault},
			{Name: "south", ID: "12D3KooWsouth", Err: fault}},
			2, []string{"relay    FAULT", "heddle relay", "no member answered", "firewall"}},
	} {
		var out strings.Builder
		d := doctor{w: &out}
		d.sightings(test.found)
		if d.faults != test.faults {
			t.Errorf("%s: %d faults, must be %d\n%s", test.name, d.faults, test.faults, out.String())
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: lacks %q:\n%s", test.name, want, out.String())
			}
		}
	}
}
