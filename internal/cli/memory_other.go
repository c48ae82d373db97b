//go:build !unix

package cli

import "time"

// PeakMemory returns 0, since it is unknown on this system.
func PeakMemory() int64 { return 0 }

// ProcessorTime returns 0, since it is unknown here.
func ProcessorTime() time.Duration { return 0 }
