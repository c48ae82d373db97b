//go:build no_websocket

package node

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/transport"
)

// hasWebSocket reports whether this build speaks WebSocket, which links net/http.
const hasWebSocket = false

func (n *Node) newWebSocket() (transport.Transport, error) {
	return nil, errors.New("this build has no WebSocket (build tag no_websocket): choose quic, tcp or auto")
}
