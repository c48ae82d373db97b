//go:build !no_websocket

package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
)

// hasWebSocket reports whether this build speaks WebSocket, which links net/http.
const hasWebSocket = true

// newWebSocket speaks at /ws, and at /wss in its own TLS, for networks that allow only HTTPS.
// The outer TLS proves nothing: the peers prove their identity inside, as over TCP. HTTPS_PROXY is
// used.
func (n *Node) newWebSocket() (transport.Transport, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	return websocket.New(n.upgrader, n.limits, nil, websocket.WithHandshakeTimeout(acceptTime),
		websocket.WithTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate},
			MinVersion: tls.VersionTLS13}),
		websocket.WithTLSClientConfig(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}))
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
