// Package prometheus has the names of github.com/prometheus/client_golang that libp2p uses, and
// counts nothing. The library for phones is built with it (../../go.mod): nothing on a phone serves
// the counters, and the original brings net/http and a second protobuf schema.
package prometheus

// Names that describe a metric.
type (
	Labels      map[string]string
	CounterOpts struct{ Namespace, Subsystem, Name, Help string }
	GaugeOpts   struct{ Namespace, Subsystem, Name, Help string }

	HistogramOpts struct {
		Namespace, Subsystem, Name, Help string
		Buckets                          []float64
	}
)

// Desc describes nothing.
type Desc struct{}

// NewDesc returns a Desc.
func NewDesc(string, string, []string, Labels) *Desc { return &Desc{} }

// Metric is what collectors send, and nobody receives.
type Metric interface{ Desc() *Desc }

// Collector is what could be registered.
type Collector interface {
	Describe(chan<- *Desc)
	Collect(chan<- Metric)
}

// Registerer takes collectors.
type Registerer interface {
	Register(Collector) error
	MustRegister(...Collector)
	Unregister(Collector) bool
}

// AlreadyRegisteredError is never returned.
type AlreadyRegisteredError struct{ ExistingCollector, NewCollector Collector }

func (AlreadyRegisteredError) Error() string { return "prometheus: registered already" }

// Registry forgets what is registered.
type Registry struct{}

// NewRegistry returns a Registry.
func NewRegistry() *Registry { return &Registry{} }

func (*Registry) Register(Collector) error  { return nil }
func (*Registry) MustRegister(...Collector) {}
func (*Registry) Unregister(Collector) bool { return false }

// DefaultRegisterer forgets, too.
var DefaultRegisterer Registerer = &Registry{}

// MustRegister does nothing.
func MustRegister(...Collector) {}

// none is every metric.
type none struct{}

func (none) Desc() *Desc           { return &Desc{} }
func (none) Describe(chan<- *Desc) {}
func (none) Collect(chan<- Metric) {}
func (none) Inc()                  {}
func (none) Dec()                  {}
func (none) Add(float64)           {}
func (none) Sub(float64)           {}
func (none) Set(float64)           {}
func (none) Observe(float64)       {}

// The kinds of metrics.
type (
	Counter interface {
		Metric
		Collector
		Inc()
		Add(float64)
	}
	Gauge interface {
		Metric
		Collector
		Set(float64)
		Inc()
		Dec()
		Add(float64)
		Sub(float64)
	}
	Observer interface{ Observe(float64) }

	Histogram interface {
		Metric
		Collector
		Observe(float64)
	}

	CounterVec   struct{ none }
	GaugeVec     struct{ none }
	HistogramVec struct{ none }
)

// Constructors.
func NewCounter(CounterOpts) Counter                        { return none{} }
func NewGauge(GaugeOpts) Gauge                              { return none{} }
func NewHistogram(HistogramOpts) Histogram                  { return none{} }
func NewCounterVec(CounterOpts, []string) *CounterVec       { return &CounterVec{} }
func NewGaugeVec(GaugeOpts, []string) *GaugeVec             { return &GaugeVec{} }
func NewHistogramVec(HistogramOpts, []string) *HistogramVec { return &HistogramVec{} }
func (*CounterVec) WithLabelValues(...string) Counter       { return none{} }
func (*CounterVec) With(Labels) Counter                     { return none{} }
func (*GaugeVec) WithLabelValues(...string) Gauge           { return none{} }
func (*GaugeVec) With(Labels) Gauge                         { return none{} }
func (*HistogramVec) WithLabelValues(...string) Observer    { return none{} }
func (*HistogramVec) With(Labels) Observer                  { return none{} }

// ValueType is the kind of a constant metric.
type ValueType int

// The kinds of constant metrics.
const (
	CounterValue ValueType = iota + 1
	GaugeValue
	UntypedValue
)

// NewConstMetric returns a metric without a value.
func NewConstMetric(*Desc, ValueType, float64, ...string) (Metric, error) { return none{}, nil }

// ExponentialBuckets returns none.
func ExponentialBuckets(float64, float64, int) []float64 { return nil }

// LinearBuckets returns none.
func LinearBuckets(float64, float64, int) []float64 { return nil }
