//go:build !linux && !darwin && !freebsd

package cli

import (
	"errors"
	"net"
)

// DiskFree does not know how many bytes a user may still write on this system.
func DiskFree(string) (int64, error) { return 0, errors.ErrUnsupported }

// UDPBuffer does not know here what the kernel grants.
func UDPBuffer(int) (int, error) { return 0, errors.ErrUnsupported }

// OpenFiles does not know the limit here.
func OpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }

// WholeDatagrams cannot forbid fragments here.
func WholeDatagrams(*net.UDPConn, bool) error { return errors.ErrUnsupported }
