// Package layer shows a custom layer: its Example registers it, trains it over three peers and over one, and saves it.
package layer
