// Package bind holds what turns package mobile into a library for apps: gobind, at a version of its own.
package bind

import (
	_ "github.com/heddle-gnn/heddle/mobile"
	_ "golang.org/x/mobile/bind/seq"
)
