// Package library shows Heddle as a library: its Example trains one model over three hospitals in one process.
package library
