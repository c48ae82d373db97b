package plan

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// interval bounds a number.
type interval struct {
	low, high         float64 // ±Inf = no bound
	openLow, openHigh bool
	text              [2]string // as the tag has them
}

// parseInterval parses an interval, as "[0, 1)" or "(0, )"; the limits of a duration are like "1s".
func parseInterval(text string) interval {
	v := interval{low: math.Inf(-1), high: math.Inf(1)}
	if text == "" {
		return v
	}
	v.openLow, v.openHigh = text[0] == '(', text[len(text)-1] == ')'
	low, high, _ := strings.Cut(text[1:len(text)-1], ",")
	v.text = [2]string{low, strings.TrimSpace(high)}
	for i, to := range []*float64{&v.low, &v.high} {
		if d, err := time.ParseDuration(v.text[i]); err == nil && strings.ContainsAny(v.text[i], "smh") {
			*to = float64(d)
		} else if x, err := strconv.ParseFloat(v.text[i], 64); err == nil {
			*to = x
		}
	}
	return v
}

// Has reports whether x is in v.
func (v interval) Has(x float64) bool {
	low, high := x >= v.low, x <= v.high
	if v.openLow {
		low = x > v.low
	}
	if v.openHigh && v.text[1] != "" {
		high = x < v.high
	}
	return low && high && !math.IsInf(x, 0)
}

// String is what a value must be.
func (v interval) String() string {
	low, high := "at least "+v.text[0], "at most "+v.text[1]
	if v.openLow {
		low = "above " + v.text[0]
	}
	if v.openHigh {
		high = "below " + v.text[1]
	}
	switch {
	case v.text[0] == "" && v.text[1] == "":
		return "a finite number"
	case v.text[1] == "":
		return low
	}
	return low + " and " + high
}
