// Package bind imports what turns package mobile into a library for apps: gobind, at its own version.
package bind

import (
	_ "golang.org/x/mobile/bind/seq"

	_ "github.com/heddle-gnn/heddle/mobile"
)
