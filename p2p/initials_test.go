package p2p

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// playInitials sends the first packets of QUIC connections, and nothing after them, to a UDP address, perSecond
// connections a second, until standard input ends: the cheapest attempt for an attacker. They come from one network
// address or, if that is empty, each from another of 250, as from an attacker that forges their source. It reports what
// playFlood reports.
func playInitials(perSecond int, to *net.UDPAddr, from net.IP) {
	flights := firstFlights(2048)
	var socks []*net.UDPConn
	for i := range 250 {
		ip := from
		if ip == nil {
			ip = net.IPv4(127, 9, 9, byte(i+1))
		}
		s, err := net.DialUDP("udp4", &net.UDPAddr{IP: ip}, to)
		if err != nil {
			panic(err)
		}
		defer s.Close()
		socks = append(socks, s)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	pace := rate.NewLimiter(rate.Limit(perSecond), 10)
	tried := 0
	for ; pace.Wait(ctx) == nil; tried++ {
		for _, packet := range flights[tried%len(flights)] {
			socks[tried%len(socks)].Write(packet)
		}
		if tried == enough {
			fmt.Println("begun")
		}
	}
	fmt.Println(tried, 0)
}

// firstFlights returns the packets with which n connections begin: they are dialled to somebody who
// only listens.
func firstFlights(n int) [][][]byte {
	flights := make([][][]byte, n)
	next := make(chan int)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			sink, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				panic(err)
			}
			defer sink.Close()
			for i := range next {
				ctx, hang := context.WithCancel(context.Background())
				dialled := make(chan bool)
				go func() {
					quic.DialAddr(ctx, sink.LocalAddr().String(),
						&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"libp2p"}}, nil)
					close(dialled)
				}()
				b := make([]byte, 2048)
				for patience := time.Second; ; patience = 20 * time.Millisecond {
					sink.SetReadDeadline(time.Now().Add(patience))
					k, err := sink.Read(b)
					if err != nil {
						break
					}
					flights[i] = append(flights[i], append([]byte{}, b[:k]...))
				}
				hang()
				<-dialled
				sink.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
				for _, err := sink.Read(b); err == nil; _, err = sink.Read(b) { // its goodbye
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return flights
}
