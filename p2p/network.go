package p2p

import (
	"context"
	"net/netip"

	"github.com/heddle-gnn/heddle/comm"
)

// Network is how a site reaches the other members: at addresses that Heddle listens on, over a libp2p host of the
// program, or over a transport of the program.
type Network struct {
	Listen       []string     // multiaddresses to listen on (nil = the plan's, or the roster's)
	Announce     []string     // multiaddresses for mDNS and hole punching (nil = of its interfaces)
	LAN          bool         // find peers on the local network by mDNS
	Interfaces   []netip.Addr // addresses of this machine, if the system lists none, as Android (nil = it is asked)
	ReceiveLimit int64        // bytes per second from each other peer (0 = no limit)
	Link         string       // simulated slower network, such as "latency=20ms,rate=100M" (empty = none)

	// Host is a libp2p host with the site's identity. Its own address book and routing find members without an address
	// in the plan. It stays open, and so do its connections unless a run fails: a run adds three protocols and takes
	// them away. One host carries one run at a time. The plan's carrier, relays and peer_timeout are not read, since
	// the program has set the host up.
	Host Libp2p

	// Transport connects this member, of rank rank, to size−1 others. It is called for each connection: again after a
	// failure if Site.Rejoin is set, and until ctx ends. Heddle closes what it returns, and compares the plans of the
	// members before any data. That each rank is the member that the plan lists, and that nobody else reads the frames,
	// is up to the program. The policy's ReceiveLimit does not apply.
	Transport func(ctx context.Context, rank, size int) (comm.Transport, error)
}
