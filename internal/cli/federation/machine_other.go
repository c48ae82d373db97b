//go:build !linux && !darwin && !freebsd

package federation

import "errors"

var errUnsupported = errors.New("unsupported on this system")

func diskFree(string) (int64, error) { return 0, errUnsupported }

func udpBuffer(int) (int, error) { return 0, errUnsupported }
