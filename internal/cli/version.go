package cli

import "runtime/debug"

// Version returns the version of this program, with the revision that it was built from if that is known.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
