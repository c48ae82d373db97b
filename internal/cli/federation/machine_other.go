//go:build !linux && !darwin && !freebsd

package federation

import "net"

func diskFree(string) (int64, error) { return 0, errUnsupported }

func udpBuffer(int) (int, error) { return 0, errUnsupported }

func openFiles() (uint64, error) { return 0, errUnsupported }

func wholeDatagrams(*net.UDPConn, bool) error { return errUnsupported }
