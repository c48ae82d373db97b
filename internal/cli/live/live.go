// Package live serves a page, metrics and probes of a run while it lasts, over HTTP. All that it shows comes from the run's
// events and, where the site keeps one, from its audit log.
package live

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/train"
)

// Flags say whether and where a page is served.
type Flags struct {
	address, token string
}

// Bind adds the flags.
func (f *Flags) Bind(set *pflag.FlagSet) {
	set.StringVar(&f.address, "http", "", "address of a live page, as 127.0.0.1:8080; empty: none")
	set.StringVar(&f.token, "http-token-file", "", "token of --http; other than loopback needs one")
	cli.Reads(set, "http-token-file")
}

// About is what is known of a run before it begins.
type About struct {
	Dataset, Method, Model string
	Sites                  []string // names of all by rank
	Rank                   int      // of the site that serves the page
	Simulated              bool     // all sites are in this process
	Audit                  string   // file of the site's audit log; empty: it keeps none
}

// Times of the server. A browser that takes nothing for writeTime is disconnected; it comes back by itself.
const (
	pace      = 500 * time.Millisecond // between two looks for news
	beat      = 15 * time.Second       // without news, to keep the connection open
	writeTime = 10 * time.Second
	stopTime  = 2 * time.Second
)

// mostStreams is how many browsers may look on at once.
const mostStreams = 64

// Page serves a run. A nil Page, where none is wanted, does nothing.
type Page struct {
	about   About
	log     *slog.Logger
	lock    lock
	server  *http.Server
	metrics *metrics
	streams chan struct{} // a place for each stream
	done    chan struct{} // closed at the end
	served  sync.WaitGroup

	mu    sync.Mutex // of state: events hold it for no longer than it takes to note them
	state state

	drawing sync.Mutex // of what follows: a state is drawn once for all who look on
	drawn   uint64     // version of the state
	parts   []part
}

//go:embed page.html
var pageText string

//go:embed live.js
var script []byte

var page = template.Must(template.New("live").Parse(pageText))

// Start serves the page until End; nil: no address was given. An address that others can reach requires a token.
func (f Flags) Start(about About, log *slog.Logger) (*Page, error) {
	if f.address == "" {
		if f.token != "" {
			return nil, cli.Invalidf("--http-token-file requires --http")
		}
		return nil, nil
	}
	guard, err := f.lock()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	p := &Page{about: about, log: log, lock: guard, metrics: newMetrics(about), streams: make(chan struct{}, mostStreams), done: make(chan struct{})}
	p.state = begun(about)
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	p.served.Go(func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("the live page has ended", "error", err)
		}
	})
	log.Info("live page", "address", "http://"+listener.Addr().String()+"/")
	return p, nil
}

// handler is all that the server answers. Probes need no token: they tell nothing but yes or no.
func (p *Page) handler() http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	open.HandleFunc("GET /readyz", p.ready)
	locked := http.NewServeMux()
	locked.HandleFunc("GET /{$}", p.page)
	locked.HandleFunc("GET /events", p.stream)
	locked.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(p.status())
	})
	locked.Handle("GET /metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	locked.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write([]byte(report.Style))
	})
	locked.HandleFunc("GET /live.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(script)
	})
	open.Handle("/", p.lock.over(locked))
	return p.lock.hosts(headers(open))
}

// headers forbids browsers all that the page does not need.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Charts colour their lines by style attributes.
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// ready reports whether the run makes progress: the sites are connected, or the model is done.
func (p *Page) ready(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	why := p.state.unready()
	p.mu.Unlock()
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// page shows all parts as they are now, also to browsers without scripts.
func (p *Page) page(w http.ResponseWriter, _ *http.Request) {
	parts, _, err := p.render()
	if err != nil {
		p.fail(w, err)
		return
	}
	shown := map[string]template.HTML{}
	for _, one := range parts {
		shown[one.ID] = one.HTML
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	page.Execute(w, struct {
		Title string
		Parts map[string]template.HTML
	}{p.about.title(), shown})
}

func (p *Page) fail(w http.ResponseWriter, err error) {
	p.log.Warn("the live page cannot be drawn", "error", err)
	http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
}

// stream sends each part that has changed as a server-sent event, until the run ends or the browser leaves. It looks for
// news at its own pace: whoever reads slowly misses states in between, and nothing waits for it.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, fmt.Sprintf("at most %d browsers may look on", mostStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(text string) error {
		return errors.Join(out.SetWriteDeadline(time.Now().Add(writeTime)), write(w, text), out.Flush())
	}
	if send("retry: 2000\n\n") != nil {
		return
	}
	sent, seen, last := map[string]template.HTML{}, uint64(0), time.Now()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for over := false; ; {
		parts, version, err := p.render()
		if err != nil {
			p.log.Warn("the live page cannot be drawn", "error", err)
			return
		}
		for _, one := range parts {
			if version == seen || sent[one.ID] == one.HTML {
				continue
			}
			if send("event: part\ndata: "+one.line()+"\n\n") != nil {
				return
			}
			sent[one.ID], last = one.HTML, time.Now()
		}
		seen = version
		if over {
			send("event: end\ndata: {}\n\n")
			return
		}
		if time.Since(last) > beat {
			if send(": still here\n\n") != nil {
				return
			}
			last = time.Now()
		}
		select {
		case <-p.done:
			over = true // what came last is still sent
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func write(w http.ResponseWriter, text string) error {
	_, err := w.Write([]byte(text))
	return err
}

// Over returns what takes the events of the run for the page, and passes them on.
func (p *Page) Over(next func(train.Event)) func(train.Event) {
	if p == nil {
		return next
	}
	return func(e train.Event) {
		p.metrics.note(e)
		p.mu.Lock()
		p.state.note(e, time.Now())
		p.mu.Unlock()
		if next != nil {
			next(e)
		}
	}
}

// End shows how the run went to those who look on, and ends the server.
func (p *Page) End(run error) error {
	if p == nil {
		return nil
	}
	p.metrics.end(run)
	p.mu.Lock()
	p.state.end(run, time.Now())
	p.mu.Unlock()
	close(p.done)
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if err != nil { // somebody does not read
		err = p.server.Close()
	}
	p.served.Wait()
	return err
}
