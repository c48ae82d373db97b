package cli

import (
	"runtime/debug"
)

// Version returns the version of this program, with the revision that it was built from where that
// is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text, revision, changed := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				changed = ", changed"
			}
		}
	}
	if len(revision) > 12 {
		revision = revision[:12]
	}
	if text == "" {
		text = "unknown"
	}
	if revision != "" {
		text += " (" + revision + changed + ")"
	}
	return text
}
