package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/predict"
)

func newServe() *cobra.Command {
	var model, data string
	var split int
	var at federation.HTTP
	c := &cobra.Command{
		Use:   "serve --model FILE --data D [--http ADDRESS]",
		Short: "Serve predictions for single nodes over HTTP",
		Long: `Serve predictions for single nodes over HTTP, until the command is interrupted.

POST /predict takes and returns JSON; docs/how-to/serve.md describes it. GET /metrics is for Prometheus, GET /healthz
answers 200. An address that other machines can reach needs --http-token-file.`,
		Example: "  heddle serve --model model.safetensors --data cora.npz\n" +
			`  curl -H 'Content-Type: application/json' -d '{"nodes": [0]}' http://127.0.0.1:8080/predict`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, card, err := modelfile.Read(model)
			if err != nil {
				return cli.Invalid(err)
			}
			g, err := labelsOf(m, card).Read(data, split)
			if err != nil {
				return cli.Invalid(err)
			}
			s, err := newService(m, card, g)
			if err != nil {
				return cli.Invalidf("%s: %w", model, err)
			}
			took, bytes := s.predictor.Built()
			out := c.OutOrStdout()
			fmt.Fprintf(out, "%d nodes, predictions reach %d hops; rows built in %v, %.1f MB\n", g.N(),
				s.predictor.Reach(), took.Round(time.Millisecond), float64(bytes)/1e6)
			if warning := m.Spec.Unlabelled(g.Labels, g.Split); warning != "" {
				fmt.Fprintln(out, "warning:", warning)
			}
			return s.serve(c.Context(), at, out)
		},
	}
	f := c.Flags()
	f.StringVar(&model, "model", "", "model.safetensors of a run")
	f.StringVar(&data, "data", "", "data set whose nodes to predict for")
	f.IntVar(&split, "split", 0, "split of the data set")
	f.StringVar(&at.Address, "http", "127.0.0.1:8080", "address to serve at")
	f.StringVar(&at.Token, "http-token-file", "", "file with the token of --http, needed beyond loopback")
	cli.Reads(f, "model", "data", "http-token-file")
	cli.Required(c, "model", "data")
	return c
}

// What a request may ask for.
const (
	mostBody  = 8 << 20
	mostNodes = 10_000
)

// service answers requests by one predictor.
type service struct {
	predictor *predict.Predictor
	labels    []string // names of classes or numbers
	kind      graph.TargetKind

	lock  sync.RWMutex   // of names; a request that adds nodes has it exclusively
	names map[string]int // of nodes

	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	asked    prometheus.Counter
}

func newService(m *nn.Model, card modelfile.Card, g *graph.Graph) (*service, error) {
	p, err := predict.New(m, card, g)
	if err != nil {
		return nil, err
	}
	s := &service{predictor: p, kind: m.Spec.Kind(), labels: card.Classes, names: make(map[string]int, len(g.IDs)),
		registry: prometheus.NewRegistry()}
	for i, id := range g.IDs {
		s.names[id] = i
	}
	// Older model files have no names of classes: then numbers are names.
	for k := len(s.labels); k < m.Spec.Classes; k++ {
		s.labels = append(s.labels, strconv.Itoa(k))
	}
	s.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "heddle_requests_total",
		Help: "Requests for predictions by status."}, []string{"status"})
	s.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "heddle_request_seconds",
		Help: "Time that requests for predictions took.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 9)})
	s.asked = prometheus.NewCounter(prometheus.CounterOpts{Name: "heddle_predictions_total",
		Help: "Nodes that were predicted for."})
	nodes := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "heddle_nodes", Help: "Nodes of the graph."},
		func() float64 { return float64(p.Nodes()) })
	s.registry.MustRegister(s.requests, s.seconds, s.asked, nodes)
	return s, nil
}

// handler is all that the service answers.
func (s *service) handler(at federation.HTTP) (http.Handler, error) {
	locked := http.NewServeMux()
	locked.HandleFunc("POST /predict", s.answer)
	return at.Guard(http.NewServeMux(), locked, s.registry, refuse)
}

// serve answers until ctx ends, and then what has been asked already.
func (s *service) serve(ctx context.Context, at federation.HTTP, out io.Writer) error {
	handler, err := s.handler(at)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", at.Address)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	// A client that sends or reads slowly must not keep memory for ever. Writing has the most time, because a request
	// for many nodes is computed within it.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	fmt.Fprintf(out, "serving http://%s/predict\n", listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// ctx has ended, so that the last answers need a deadline that does not depend on it.
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return errors.Join(err, server.Close())
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveRequest is the JSON of a request. A node is a name of the data set or of New, or a number.
type serveRequest struct {
	Nodes []any `json:"nodes"` // to predict for; none = the nodes of New
	New   []struct {
		Node     string    `json:"node"`
		Features []float32 `json:"features"`
	} `json:"new"`
	Changed []struct {
		Node     any       `json:"node"`
		Features []float32 `json:"features"`
	} `json:"changed"`
	Edges []struct {
		From     any       `json:"from"`
		To       any       `json:"to"`
		Weight   float32   `json:"weight"`
		Relation string    `json:"relation"`
		Columns  []float32 `json:"columns"`
		OneWay   bool      `json:"one_way"`
	} `json:"edges"`
	Keep bool `json:"keep"` // whether what is new or changed stays
}

// servePrediction is the prediction for a node.
type servePrediction struct {
	Node          any                `json:"node"`
	Class         string             `json:"class,omitempty"`         // if a node has one
	Classes       *[]string          `json:"classes,omitempty"`       // if it may have several
	Probabilities map[string]float64 `json:"probabilities,omitempty"` // by class
	Values        map[string]float32 `json:"values,omitempty"`        // of a regression
}

// statusError is an error with a status that is not 400.
type statusError struct {
	error
	status int
}

func refuse(w http.ResponseWriter, text string, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": text})
}

// answer answers a request for predictions.
func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	began, status := time.Now(), http.StatusOK
	all, err := s.read(w, r)
	if err != nil {
		var other statusError
		status = http.StatusBadRequest
		if errors.As(err, &other) {
			status = other.status
		}
		refuse(w, err.Error(), status)
	} else {
		s.asked.Add(float64(len(all)))
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"predictions": all})
	}
	s.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	s.seconds.Observe(time.Since(began).Seconds())
}

// read reads a request and does what it asks for.
func (s *service) read(w http.ResponseWriter, r *http.Request) ([]servePrediction, error) {
	// A page of another site cannot send this type without asking first.
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, statusError{fmt.Errorf("the header Content-Type must be application/json (got %q)", kind),
			http.StatusUnsupportedMediaType}
	}
	var q serveRequest
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(&q)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = cmp.Or(more, errors.New("there must be one object"))
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, statusError{fmt.Errorf("the body must have at most %d bytes", large.Limit),
			http.StatusRequestEntityTooLarge}
	}
	if err != nil {
		return nil, fmt.Errorf("the body must be a JSON object: %w", err)
	}
	for k := 0; len(q.Nodes) == 0 && k < len(q.New); k++ {
		q.Nodes = append(q.Nodes, q.New[k].Node)
	}
	changes := len(q.New) + len(q.Changed) + len(q.Edges)
	// Without nodes a request must have an effect: changes that are neither kept nor predicted for are most likely a
	// mistake.
	if n := len(q.Nodes); n > mostNodes || n == 0 && (changes == 0 || !q.Keep) {
		return nil, fmt.Errorf("nodes must be 1 to %d, or changes kept (got %d)", mostNodes, n)
	}
	// The lock of names is always taken before the predictor's, in both cases.
	if changes == 0 {
		s.lock.RLock()
		defer s.lock.RUnlock()
		return s.predict(q.Nodes, s.find(nil), s.predictor.Predict)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	var all []servePrediction
	// Names are kept apart until all changes are made: if one fails, the predictor takes back the nodes, and their
	// numbers would belong to others.
	added := map[string]int{}
	err = s.predictor.Update(q.Keep, func(c *predict.Change) (err error) {
		all, err = s.change(q, c, added)
		return err
	})
	if err == nil && q.Keep {
		for name, i := range added {
			s.names[name] = i
		}
	}
	return all, err
}

// change makes the changes of q and predicts. It notes the nodes that it adds.
func (s *service) change(q serveRequest, c *predict.Change, added map[string]int) (all []servePrediction, err error) {
	find := s.find(added)
	for _, one := range q.New {
		if _, is := s.names[one.Node]; is || one.Node == "" {
			return nil, fmt.Errorf("new: a node must have a name that no other has (got %q)", one.Node)
		} else if _, is := added[one.Node]; is {
			return nil, fmt.Errorf("new: node %q must be there once (got twice)", one.Node)
		}
		if added[one.Node], err = c.AddNode(one.Features); err != nil {
			return nil, fmt.Errorf("new: node %q: %w", one.Node, err)
		}
	}
	for _, one := range q.Changed {
		i, err := find(one.Node)
		if err == nil {
			err = c.SetRow(i, one.Features)
		}
		if err != nil {
			return nil, fmt.Errorf("changed: %w", err)
		}
	}
	for k, one := range q.Edges {
		e := predict.Edge{Weight: one.Weight, Relation: one.Relation, Columns: one.Columns, OneWay: one.OneWay}
		if e.From, err = find(one.From); err == nil {
			e.To, err = find(one.To)
		}
		if err == nil {
			err = c.AddEdge(e)
		}
		if err != nil {
			return nil, fmt.Errorf("edges[%d]: %w", k, err)
		}
	}
	return s.predict(q.Nodes, find, c.Predict)
}

// find returns what finds a node by its name, here or among the added ones, or by its number.
func (s *service) find(added map[string]int) func(node any) (int, error) {
	return func(node any) (int, error) {
		switch node := node.(type) {
		case json.Number:
			i, err := strconv.Atoi(node.String())
			if err == nil {
				return i, nil
			}
		case string:
			if i, is := s.names[node]; is {
				return i, nil
			} else if i, is := added[node]; is {
				return i, nil
			}
			return 0, fmt.Errorf("node %q must be in the data set or among the new ones (got neither)", node)
		}
		return 0, fmt.Errorf("a node must be a name or a whole number (got %v)", node)
	}
}

// predict predicts for nodes.
func (s *service) predict(nodes []any, find func(any) (int, error),
	by func(...int) ([]predict.Prediction, error)) ([]servePrediction, error) {
	list := make([]int, len(nodes))
	for k, node := range nodes {
		var err error
		if list[k], err = find(node); err != nil {
			return nil, fmt.Errorf("nodes[%d]: %w", k, err)
		}
	}
	got, err := by(list...)
	all := make([]servePrediction, len(got))
	for k, p := range got {
		one := servePrediction{Node: nodes[k]}
		if s.kind == graph.Numbers {
			one.Values = map[string]float32{}
			for c, v := range p.Logits {
				one.Values[s.labels[c]] = v
			}
			all[k] = one
			continue
		}
		one.Probabilities = map[string]float64{}
		for c, v := range p.Probabilities {
			one.Probabilities[s.labels[c]] = v
		}
		names := []string{}
		for _, c := range p.Classes {
			names = append(names, s.labels[c])
		}
		if one.Classes = &names; s.kind == graph.Single {
			one.Class, one.Classes = names[0], nil
		}
		all[k] = one
	}
	return all, err
}
