// Package layer shows a custom layer: its Example trains it over three workers and over one.
package layer
