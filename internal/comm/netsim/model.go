// Package netsim simulates networks. A Model describes a connection by latency, rate and loss, and
// a Table the connections of a set of peers. New makes a network in memory of them, for tests and for members
// that share a process, and Over puts them in the way of another transport. Predict returns how long
// a run would take. What is random follows from a seed, and time is only package time's, so
// that a test in a testing/synctest bubble does not wait.
package netsim

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// Model is what a peer's connection to all others is like.
type Model struct {
	Latency time.Duration // one way
	Rate    float64       // bytes a second that a peer sends to all others together (0 = no bound)
	Loss    float64       // fraction of packets lost, each sent again a round trip later, in [0, 1)
}

// Presets are connections that reports compare: a wire in one building, a telephone line, a mobile
// network.
var Presets = []struct {
	Name  string
	Model Model
}{
	{"LAN", Model{Latency: 200 * time.Microsecond, Rate: 1e9 / 8}},
	{"DSL", Model{Latency: 15 * time.Millisecond, Rate: 10e6 / 8}},
	{"4G", Model{Latency: 40 * time.Millisecond, Rate: 15e6 / 8, Loss: 0.005}},
}

// check reports the faults of m.
func (m Model) check() error {
	var errs []error
	if m.Latency < 0 {
		errs = append(errs, fmt.Errorf("latency must be at least 0 (got %v)", m.Latency))
	}
	if !(m.Rate >= 0) || math.IsInf(m.Rate, 0) {
		errs = append(errs, fmt.Errorf("rate must be a finite number of at least 0 (got %v)", m.Rate))
	}
	if !(m.Loss >= 0 && m.Loss < 1) {
		errs = append(errs, fmt.Errorf("loss must be at least 0 and below 1 (got %v)", m.Loss))
	}
	return errors.Join(errs...)
}

// parseModel reads what String writes: "latency=50ms,rate=5Mbit,loss=1%", any of them left out.
// Rates are in bit, kbit, Mbit or Gbit a second; a loss is a percentage or a fraction.
func parseModel(s string) (m Model, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		if seen[name] {
			return Model{}, fmt.Errorf("%s must be given once (got %q)", name, s)
		}
		seen[name] = true
		ok := false
		switch name {
		case "latency":
			m.Latency, err = time.ParseDuration(value)
			ok = err == nil
		case "rate":
			m.Rate, ok = parseRate(value)
		case "loss":
			number, percent := strings.CutSuffix(value, "%")
			m.Loss, err = strconv.ParseFloat(number, 64)
			if percent {
				m.Loss /= 100
			}
			ok = err == nil
		}
		if !ok {
			return Model{}, fmt.Errorf("a link must be like latency=50ms,rate=5Mbit,loss=1%% (got %q)", part)
		}
	}
	return m, m.check()
}

var units = []struct {
	name string
	bits float64
}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

func parseRate(s string) (bytes float64, ok bool) {
	for _, u := range units {
		if number, has := strings.CutSuffix(s, u.name); has {
			x, err := strconv.ParseFloat(number, 64)
			return x * u.bits / 8, err == nil && x > 0 && x*u.bits < math.MaxFloat64
		}
	}
	return 0, false
}

func (m Model) String() string {
	parts := []string{"latency=" + m.Latency.String()}
	if m.Rate > 0 {
		bits := 8 * m.Rate
		for _, u := range units {
			if bits >= u.bits || u.bits == 1 {
				parts = append(parts, fmt.Sprintf("rate=%.4g%s", bits/u.bits, u.name))
				break
			}
		}
	}
	if percent := fmt.Sprintf("%.4g%%", 100*m.Loss); percent == "100%" { // all but all of it
		parts = append(parts, fmt.Sprintf("loss=%v", m.Loss))
	} else if m.Loss > 0 {
		parts = append(parts, "loss="+percent)
	}
	return strings.Join(parts, ",")
}

// packet is how many bytes are lost at once.
const packet = 1400

func packets(n int) float64 { return math.Ceil(float64(n) / packet) }

// wire is how long n bytes keep the sender busy: what is lost takes its time too.
func (m Model) wire(n int) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(n) / (m.Rate * (1 - m.Loss)) * float64(time.Second))
}

// repeats is how many round trips after the first sending the last of n bytes arrives, where u in [0, 1) is random. k
// repeats are enough with probability (1 − lossᵏ⁺¹)^packets.
func (m Model) repeats(n int, u float64) (k int) {
	if m.Loss == 0 {
		return 0
	}
	for p := m.Loss; math.Pow(1-p, packets(n)) <= u; p *= m.Loss {
		k++
	}
	return k
}

// Delivery returns how long n bytes keep their sender busy, and how long after that they have arrived, where u in [0,
// 1) is random. What is lost is sent again a round trip later.
func (m Model) Delivery(n int, u float64) (busy, flight time.Duration) {
	return m.wire(n), m.Latency * time.Duration(1+2*m.repeats(n, u))
}

// expected is the mean of repeats.
func (m Model) expected(n int) (mean float64) {
	for p := m.Loss; p > 1e-9; p *= m.Loss {
		mean += 1 - math.Pow(1-p, packets(n))
	}
	return mean
}

// Predict returns how long a run of this load takes over m: it computes, waits for each trip in
// turn, and sends its bytes, and nothing is taken to overlap.
func (m Model) Predict(l comm.Load) time.Duration {
	each := 0
	if l.Trips > 0 {
		each = int(l.Bytes / l.Trips)
	}
	trip := float64(m.Latency) * (1 + 2*m.expected(each))
	return l.Busy + time.Duration(trip*float64(l.Trips)) + m.wire(int(l.Bytes))
}
