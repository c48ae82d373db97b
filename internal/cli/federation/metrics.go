package federation

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// metrics are what /metrics shows, as docs/reference/metrics.md has it.
type metrics struct {
	registry *prometheus.Registry

	events, sent              *prometheus.CounterVec
	round, done, total, stage prometheus.Gauge
	loss, val                 prometheus.Gauge
	connected, sites          prometheus.Gauge
	complete, failed          prometheus.Gauge

	last comm.Counts // of the run that goes on
}

func newMetrics(about About) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "heddle_" + name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	counter := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "heddle_" + name, Help: help}, []string{label})
		m.registry.MustRegister(c)
		for _, v := range values {
			c.WithLabelValues(v)
		}
		return c
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "heddle_run_info", Help: "The run; always 1."}, []string{"site", "dataset", "method", "model"})
	m.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info.WithLabelValues(about.Site(about.Rank), about.Dataset, about.Method, about.Model).Set(1)
	m.events = counter("events_total", "Events of the run by kind.", "kind", "round", "stage", "resync", "saved", "restored", "connection", "warning")
	m.sent = counter("sent_bytes_total", "Bytes that this site has sent, by door.", "door", "halo", "reduce", "control")
	m.round = gauge("round", "Round of the stage that was completed last, from 0.")
	m.stage = gauge("stage", "Stage that is trained: 0 the encoder or all layers, k graph layer k.")
	m.done, m.total = gauge("rounds_done", "Rounds of the run that were completed."), gauge("rounds_limit", "Rounds of the run at most.")
	m.loss = gauge("training_loss", "Mean loss over the training labels of all sites before the last round.")
	m.val = gauge("validation_metric", "Metric over the validation labels of all sites, from 0 to 1.")
	m.connected, m.sites = gauge("connected_sites", "Sites of the run that are connected, this one included."), gauge("sites", "Sites of the run.")
	m.complete, m.failed = gauge("run_done", "1 once the model is final."), gauge("run_failed", "1 once the run has failed.")
	m.loss.Set(math.NaN())
	m.val.Set(math.NaN())
	m.sites.Set(float64(len(about.Sites)))
	m.connected.Set(1)
	if about.Simulated {
		m.connected.Set(float64(len(about.Sites)))
	}
	return m
}

// note counts e.
func (m *metrics) note(e train.Event) {
	m.events.WithLabelValues(string(e.Kind)).Inc()
	switch e.Kind {
	case train.RoundEnd:
		m.round.Set(float64(e.Round))
		m.stage.Set(float64(e.Stage))
		m.done.Set(float64(e.Done))
		m.total.Set(float64(e.Total))
		m.loss.Set(e.Loss)
		if !math.IsNaN(e.Val) {
			m.val.Set(e.Val)
		}
		m.add(e.Sent)
	case train.StageEnd:
		if !math.IsNaN(e.Val) {
			m.val.Set(e.Val)
		}
		m.add(e.Sent)
	case train.Connection:
		m.connected.Set(float64(max(1, len(e.Members))))
	}
}

// add counts what was sent since the last time. Fewer bytes than before are those of another run.
func (m *metrics) add(now comm.Counts) {
	if now.Total() < m.last.Total() {
		m.last = comm.Counts{}
	}
	for door, n := range map[string]int64{"halo": now.Halo - m.last.Halo, "reduce": now.Reduce - m.last.Reduce, "control": now.Control - m.last.Control} {
		if n > 0 {
			m.sent.WithLabelValues(door).Add(float64(n))
		}
	}
	m.last = now
}

// end marks how the run went.
func (m *metrics) end(run error) {
	if run != nil {
		m.failed.Set(1)
		return
	}
	m.complete.Set(1)
}
