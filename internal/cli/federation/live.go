package federation

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/train"
)

// HTTP is whether and where a page, metrics and probes of a run are served while it lasts. All that they show comes
// from the run's events and, if the site keeps one, from its audit log.
type HTTP struct {
	Address, Token string // Token is a file
}

// Pages writes what the program with all commands adds to a run's files, and to what is served of it.
type Pages interface {
	cli.Pages
	Live(*Live) http.Handler // serves / and what it links
}

// Bind adds the flags.
func (f *HTTP) Bind(set *pflag.FlagSet) {
	set.StringVar(&f.Address, "http", "", "serve the state at this address, as 127.0.0.1:8080")
	set.StringVar(&f.Token, "http-token-file", "", "file with the token of --http, needed beyond loopback")
	cli.Reads(set, "http-token-file")
}

// About is what is known of a run before it begins.
type About struct {
	Dataset, Method, Model string
	Sites                  []string // names of all by rank
	Rank                   int      // of the site that serves the page
	Simulated              bool     // all sites are in this process
	Audit                  string   // file of the site's audit log (empty = none)
}

// stopTime is how long the end of a run waits for those who look on.
const stopTime = 2 * time.Second

// Live serves a run. A nil Live does nothing: none is wanted.
type Live struct {
	About About
	Log   *slog.Logger
	Done  chan struct{} // closed at the end

	server  *http.Server
	metrics *metrics
	served  sync.WaitGroup

	mu    sync.Mutex // of state: events hold it for no longer than it takes to note them
	state LiveState
}

// Now returns the state, if its version is not seen, and the version.
func (p *Live) Now(seen uint64) (LiveState, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.version == seen {
		return LiveState{}, seen
	}
	return p.state.now(), p.state.version
}

// Start serves the page until End, or returns nil without an address. An address that others can reach needs a token.
func (f HTTP) Start(about About, pages Pages, log *slog.Logger) (*Live, error) {
	if f.Address == "" {
		if f.Token != "" {
			return nil, cli.Invalidf("--http-token-file requires --http")
		}
		return nil, nil
	}
	p := &Live{About: about, Log: log, Done: make(chan struct{}), metrics: newMetrics(about), state: begun(about)}
	handler, err := p.handler(f, pages)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", f.Address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	p.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	p.served.Go(func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("the live page has ended", "error", err)
		}
	})
	log.Info("live page", "address", "http://"+listener.Addr().String()+"/")
	return p, nil
}

// handler is all that the server answers. Probes need no token: they only answer yes or no.
func (p *Live) handler(f HTTP, pages Pages) (http.Handler, error) {
	open, locked := http.NewServeMux(), http.NewServeMux()
	open.HandleFunc("GET /readyz", p.ready)
	if pages != nil {
		locked.Handle("/", pages.Live(p))
	} else {
		locked.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { p.status().print(w) })
	}
	locked.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(p.status())
	})
	return f.Guard(open, locked, p.metrics.registry, http.Error)
}

// headers forbids browsers all that the page does not need.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// Charts color their lines by style attributes, and the style sheet is in the page.
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; "+
			"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// ready reports whether the run makes progress: the sites are connected, or the model is done.
func (p *Live) ready(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	why := p.state.unready()
	p.mu.Unlock()
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Over returns what takes the events of the run for the page, and passes them on.
func (p *Live) Over(next func(train.Event)) func(train.Event) {
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

// Step begins the next of several steps that one page shows, as of a site that matches tables, trains and predicts.
func (p *Live) Step(name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.step(name, time.Now())
}

// End shows how the run went to those who look on, and ends the server.
func (p *Live) End(run error) error {
	if p == nil {
		return nil
	}
	p.metrics.end(run)
	p.mu.Lock()
	p.state.end(run, time.Now())
	p.mu.Unlock()
	close(p.Done)
	time.Sleep(stopTime) // a browser that has just been answered asks again, and learns that the run is over
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if err != nil { // somebody does not read
		err = p.server.Close()
	}
	p.served.Wait()
	return err
}
