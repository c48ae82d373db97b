// Package heddle trains one graph neural network across sites that cannot share their data.
//
// A Plan says how: Defaults or ReadPlan makes one.
package heddle
