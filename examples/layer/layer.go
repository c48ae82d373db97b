// Package layer shows a layer of one's own: its Example trains it over three workers and over one.
package layer
