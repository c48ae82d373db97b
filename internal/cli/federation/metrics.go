package federation

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// metrics are what /metrics shows, as docs/reference/metrics.md has it.
type metrics struct {
	registry     *prometheus.Registry
	events, sent *prometheus.CounterVec
	gauges       map[string]prometheus.Gauge // by name without heddle_

	last comm.Counts // of the run that goes on
}

// gaugeHelp has the name and help of each gauge.
var gaugeHelp = [][2]string{
	{"round", "Round of the stage that was completed last, from 0."},
	{"stage", "Stage that is trained: 0 the encoder or all layers, k graph layer k."},
	{"rounds_done", "Rounds of the run that were completed."}, {"rounds_limit", "Rounds of the run at most."},
	{"training_loss", "Mean loss over the training labels of all sites before the last round."},
	{"validation_metric", "Metric over the validation labels of all sites, from 0 to 1."},
	{"connected_sites", "Sites of the run that are connected, this one included."}, {"sites", "Sites of the run."},
	{"run_done", "1 once the model is final."}, {"run_failed", "1 once the run has failed."},
}

func newMetrics(about About) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), gauges: map[string]prometheus.Gauge{}}
	for _, g := range gaugeHelp {
		m.gauges[g[0]] = prometheus.NewGauge(prometheus.GaugeOpts{Name: "heddle_" + g[0], Help: g[1]})
		m.registry.MustRegister(m.gauges[g[0]])
	}
	counter := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "heddle_" + name, Help: help}, []string{label})
		m.registry.MustRegister(c)
		for _, v := range values {
			c.WithLabelValues(v)
		}
		return c
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "heddle_run_info", Help: "The run; always 1."},
		[]string{"site", "dataset", "method", "model"})
	m.registry.MustRegister(info)
	info.WithLabelValues(about.Site(about.Rank), about.Dataset, about.Method, about.Model).Set(1)
	m.events = counter("events_total", "Events of the run by kind.", "kind",
		"round", "stage", "resync", "saved", "restored", "connection", "warning")
	m.sent = counter("sent_bytes_total", "Bytes that this site has sent, by kind of message.", "door", "halo", "reduce",
		"control")
	m.gauges["training_loss"].Set(math.NaN())
	m.gauges["validation_metric"].Set(math.NaN())
	m.gauges["sites"].Set(float64(len(about.Sites)))
	m.gauges["connected_sites"].Set(1)
	if about.Simulated {
		m.gauges["connected_sites"].Set(float64(len(about.Sites)))
	}
	return m
}

// note counts e.
func (m *metrics) note(e train.Event) {
	m.events.WithLabelValues(string(e.Kind)).Inc()
	switch e.Kind {
	case train.RoundEnd:
		for name, n := range map[string]int{"round": e.Round, "stage": e.Stage, "rounds_done": e.Done,
			"rounds_limit": e.Total} {
			m.gauges[name].Set(float64(n))
		}
		m.gauges["training_loss"].Set(e.Loss)
	case train.Connection:
		m.gauges["connected_sites"].Set(float64(max(1, len(e.Members))))
	}
	if e.Kind == train.RoundEnd || e.Kind == train.StageEnd {
		if !math.IsNaN(e.Val) {
			m.gauges["validation_metric"].Set(e.Val)
		}
		m.add(e.Sent)
	}
}

// add counts what was sent since the last time. Fewer bytes than before mean another run.
func (m *metrics) add(now comm.Counts) {
	if now.Total() < m.last.Total() {
		m.last = comm.Counts{}
	}
	for door, n := range map[string]int64{"halo": now.Halo - m.last.Halo, "reduce": now.Reduce - m.last.Reduce,
		"control": now.Control - m.last.Control} {
		if n > 0 {
			m.sent.WithLabelValues(door).Add(float64(n))
		}
	}
	m.last = now
}

// end marks how the run went.
func (m *metrics) end(run error) {
	if run != nil {
		m.gauges["run_failed"].Set(1)
	} else {
		m.gauges["run_done"].Set(1)
	}
}
