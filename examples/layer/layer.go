// Package layer shows a custom layer: its Example registers it and trains it over three peers and over one.
package layer
