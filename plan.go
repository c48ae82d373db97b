package heddle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Plan is what all sites of a run agree on. Its tags are the only declaration of the settings: flags, help, the reference
// page, YAML and the refusals follow from them.
//
//	yaml     name in a plan file; the flag has dashes in place of underscores, or the name that the tag flag gives
//	group    section of the help and of the reference page; without it a setting is in the section of the one before it
//	help     noun phrase of at most 60 characters
//	default  value without a preset; Defaults says what differs by mode, preset, model and solver
//	choices  values of a text; those of model are the table of convolutions
//	bounds   interval of a number, a duration or of each number of a list
//	when     who reads it, as "mode=fullbatch solver=adam,sgd": all must hold. model names traits, of which one is enough;
//	         a setting alone must not be zero or empty. Where it does not hold only the default is accepted
//	only     command that takes it: train (all peers in one process) or join (one peer of several machines)
//	local    true: sites may differ in it
//	to       field of the trainers' configurations that takes the value as it is; others are translated in config.go
//	old      former name, and former values as "scores=logits"; accepted with a warning
//
// The comment of a field is its text in docs/reference/settings.md.
type Plan struct {
	// How the model is trained: retexo trains one layer after the other, and neighbours' rows cross the network once a
	// layer; fullbatch trains all layers at once over the peers; standalone does the same at one peer.
	Mode string `yaml:"mode" group:"model" default:"retexo" choices:"retexo, fullbatch, standalone" help:"training algorithm"`
	// Settings to start from: retexo has those of the Retexo paper, frugal sends the fewest bytes. Other settings override
	// those of the preset.
	Preset string `yaml:"preset" when:"mode=retexo" choices:"retexo, frugal" help:"settings to start from"`
	// Every random choice follows from the seed: the same seed gives the same model.
	Seed uint64 `yaml:"seed" to:"Seed" default:"1" help:"random seed"`
	// The graph convolution. Mode retexo does not train appnp, sign, rgcn (typed edges) and mlp (no edges).
	Model string `yaml:"model" default:"gcn" help:"graph convolution"`
	// What is made of a node's own features before anything travels: raw leaves them as they are, pca:K keeps their K leading
	// components, mlp trains a hidden layer. Modes fullbatch and standalone take raw.
	Encoder Encoder `yaml:"encoder" default:"pca:128" help:"encoding of node features: raw, pca:K or mlp"`
	// What a layer hands to the next one: its hidden rows, or the class logits of a head of its own.
	LayerOutput string `yaml:"layer_output" when:"mode=retexo" default:"hidden" choices:"hidden, logits" old:"carry scores=logits" help:"what a layer hands to the next"`
	// Graph layers.
	Layers int `yaml:"layers" default:"2" bounds:"[1, 1000]" help:"number of graph layers"`
	// Width of the hidden rows. Of gat: of all heads together.
	Hidden int `yaml:"hidden" default:"256" bounds:"[1, 16777216]" help:"width of hidden rows"`
	// Aggregations before a layer, or of appnp and sign in all.
	Hops int `yaml:"hops" when:"model=hops" default:"1" bounds:"[1, 1000]" help:"aggregations before a layer"`
	// Weight of a node's own row in what each hop of appnp puts out (α of the paper); appnp needs more than 0.
	Alpha float32 `yaml:"alpha" when:"model=restart" default:"0" bounds:"[0, 1]" old:"teleport" help:"restart probability of each hop"`
	// Bases that the matrices of the relations share; 0: a matrix for each relation.
	Bases int `yaml:"bases" when:"model=relations" default:"0" bounds:"[0, )" help:"shared bases of the relations' matrices"`
	// Attention heads.
	Heads int `yaml:"heads" when:"model=attention" default:"8" bounds:"[1, 1024]" help:"number of attention heads"`
	// Normalisation after each layer but the last: of each row (layer), or over all nodes (batch). In mode retexo it is
	// layer; elsewhere none, layer or batch.
	Norm string `yaml:"norm" choices:"none, layer, batch" help:"normalisation after hidden layers"`
	// A layer's input is added to its output.
	Residual bool `yaml:"residual" when:"solver=adam,adamw,sgd" help:"residual connections"`
	// Norm by which each node's features are divided first: l1 is the sum of their magnitudes.
	RowNorm string `yaml:"row_norm" default:"none" choices:"none, l1" old:"unit_sum true=l1 false=none" help:"norm that divides each node's features"`
	// Fraction of the training labels that a step takes as input and does not learn; 0: labels are no input.
	LabelAugmentation float32 `yaml:"label_augmentation" when:"mode=fullbatch,standalone" default:"0" bounds:"[0, 1)" help:"fraction of training labels that are input"`
	// Steps by which training labels correct and smooth the logits of the trained model (Correct & Smooth); 0: none.
	CorrectSmooth int `yaml:"correct_smooth" when:"mode=fullbatch,standalone" default:"0" bounds:"[0, )" help:"steps of Correct & Smooth after training"`
	// How far errors spread in Correct & Smooth.
	CorrectAlpha float32 `yaml:"correct_alpha" when:"correct_smooth" default:"0.9" bounds:"[0, 1)" help:"spread of errors in Correct & Smooth"`
	// How far labels spread in Correct & Smooth.
	SmoothAlpha float32 `yaml:"smooth_alpha" when:"correct_smooth" default:"0.8" bounds:"[0, 1)" help:"spread of labels in Correct & Smooth"`

	// Optimiser; ridge solves each layer in closed form, in one round, in mode retexo only.
	Solver string `yaml:"solver" group:"training" default:"adam" choices:"adam, adamw, sgd, ridge" help:"optimiser"`
	// Rounds of a layer at most; in modes fullbatch and standalone, epochs.
	Rounds int `yaml:"rounds" to:"Rounds" when:"solver=adam,adamw,sgd" default:"200" bounds:"[1, 1000000000]" help:"rounds of a layer, or epochs, at most"`
	// Optimiser steps between two reductions; 1 gives the model of training on pooled data.
	LocalSteps int `yaml:"local_steps" to:"LocalSteps" when:"mode=retexo solver=adam,adamw,sgd" default:"1" bounds:"[1, 1000000]" help:"optimiser steps between two reductions"`
	// Step size before the schedule.
	LR float32 `yaml:"lr" to:"Optimizer.LR" when:"solver=adam,adamw,sgd" default:"0.003" bounds:"(0, )" help:"learning rate"`
	// Weight decay; adam and sgd add it to the gradient, adamw shrinks the weights.
	Decay float32 `yaml:"decay" to:"Optimizer.Decay" when:"solver=adam,adamw,sgd" default:"0.0005" bounds:"[0, )" help:"weight decay"`
	// Momentum of sgd.
	Momentum float32 `yaml:"momentum" to:"Optimizer.Momentum" when:"solver=sgd" default:"0" bounds:"[0, 1)" help:"momentum"`
	// Largest Euclidean norm of the gradient of all parameters that a step trains together: a longer one is scaled down to it
	// (Pascanu et al., ICML 2013); 0: none is. With local_steps above 1 each peer clips its own gradient.
	ClipNorm float32 `yaml:"clip_norm" to:"Optimizer.ClipNorm" when:"solver=adam,adamw,sgd" default:"0" bounds:"[0, )" help:"largest norm of the gradient; 0: no limit"`
	// How the learning rate falls over the steps.
	Schedule string `yaml:"schedule" to:"Schedule.Kind" when:"solver=adam,adamw,sgd" default:"constant" choices:"constant, linear, cosine" help:"schedule of the learning rate"`
	// Steps over which the learning rate rises first.
	Warmup int `yaml:"warmup" to:"Schedule.Warmup" when:"solver=adam,adamw,sgd" default:"0" bounds:"[0, )" help:"steps of rising learning rate"`
	// Probability that a value of a layer's input is left out of a step. Ridge has none.
	Dropout float32 `yaml:"dropout" when:"solver=adam,adamw,sgd" default:"0.3" bounds:"[0, 1)" help:"dropout probability"`
	// Probability that an attention weight is left out of a step.
	AttentionDropout float32 `yaml:"attention_dropout" when:"model=attention" default:"0" bounds:"[0, 1)" help:"dropout probability of attention weights"`
	// Penalties of which the validation nodes choose one.
	Lambdas []float64 `yaml:"lambdas" to:"Lambdas" when:"solver=ridge" default:"0.01,0.03,0.1,0.3,1,3,10,30,100" bounds:"(0, )" help:"penalties to choose from, ascending"`
	// Each class weighs the inverse of its part of the training labels.
	Balanced bool `yaml:"balanced" to:"Balanced" help:"equal weight of all classes"`
	// Validation and test nodes, and their edges, are absent while the model trains.
	Inductive bool `yaml:"inductive" to:"Inductive" help:"training without validation and test nodes"`
	// In-edges of a node that are kept while a layer trains; 0: all.
	Neighbours int `yaml:"neighbours" to:"Neighbours" when:"mode=retexo" default:"0" bounds:"[0, )" help:"sampled in-edges of a node; 0: all"`
	// Passes over the features that find the components of encoder pca.
	PCAPasses int `yaml:"pca_passes" to:"PCAPasses" when:"mode=retexo encoder=pca" default:"1" bounds:"[1, 1000]" help:"passes over the features that find components"`
	// Rounds without a better validation metric that end a layer, or training; 0: none do.
	Patience int `yaml:"patience" to:"Patience" when:"solver=adam,adamw,sgd" default:"0" bounds:"[0, )" help:"rounds without improvement that end a layer"`
	// Rounds from one validation to the next.
	EvalEvery int `yaml:"eval_every" to:"EvalEvery" when:"solver=adam,adamw,sgd" default:"1" bounds:"[1, )" help:"rounds from one validation to the next"`
	// What the validation nodes choose the best model by; empty: accuracy, or micro-f1 where a node has several classes.
	Metric string `yaml:"metric" choices:"accuracy, micro-f1, macro-f1, auc, ap" help:"validation metric"`

	// Values of neighbours' rows on the network: float32 is exact; int8 has a scale for each row.
	Rows string `yaml:"rows" group:"what travels" when:"mode=retexo,fullbatch" default:"float32" choices:"float32, bf16, int8" help:"number format of rows on the network"`
	// Compression of neighbours' rows on the network.
	Compress string `yaml:"compress" when:"mode=retexo,fullbatch" default:"none" choices:"none, zstd" help:"compression of rows on the network"`
	// What travels where a layer sums rows: all rows (halo), the fewest rows and partial sums (cover), or whichever takes
	// fewer bytes (auto).
	Exchange string `yaml:"exchange" to:"Exchange" when:"mode=retexo,fullbatch" default:"auto" choices:"halo, cover, auto" help:"rows, or the fewest rows and partial sums"`
	// How neighbours' rows arrive: sar drops and fetches them again for the gradient, sa keeps them, oneshot fetches all at
	// once, auto keeps what fits in memory.
	Fetch string `yaml:"fetch" to:"Fetch" when:"mode=fullbatch" default:"auto" choices:"sar, sa, oneshot, auto" help:"fetching of other peers' rows"`
	// Which rows of other peers a step reads: all (exact), a fraction P that every step draws (sample:P), or none.
	Boundary Boundary `yaml:"boundary" when:"mode=fullbatch" default:"exact" help:"rows of others in a step: exact, sample:P or none"`
	// Order in which rows are added up: fixed gives the same bits in every run.
	Order string `yaml:"order" to:"Order" when:"mode=fullbatch" default:"any" choices:"any, fixed" help:"order of summation"`
	// Peers whose rows are on their way while others are added up.
	Prefetch int `yaml:"prefetch" to:"Prefetch" when:"mode=fullbatch" default:"1" bounds:"[0, 1000000]" local:"true" help:"peers whose rows are fetched ahead"`
	// MiB that a peer may hold of rows that it could fetch again; 0: no limit.
	Memory int64 `yaml:"memory" when:"mode=fullbatch" default:"0" bounds:"[0, 1099511627776]" local:"true" help:"MiB of rows to hold in memory; 0: no limit"`

	// Number of peers; -1: 4, 1 in mode standalone, the sites with policy by-column, or the parts of a partition on disk.
	Peers int `yaml:"peers" group:"network" only:"train" default:"-1" bounds:"[1, )" help:"number of peers; -1: as data and mode say"`
	// Who owns which node: random, contiguous, contiguous-edges, hash, by-column, ldg, fennel, fec, restream:N or multilevel.
	Policy string `yaml:"policy" only:"train" default:"random" help:"partitioning policy"`
	// How the peers of one process reach one another.
	Transport string `yaml:"transport" only:"train" default:"libp2p" choices:"libp2p, memory" help:"connections of the peers"`
	// Protocol of the connections: noise is TCP without TLS, ws is WebSocket, auto takes the fastest for each pair.
	Carrier string `yaml:"carrier" default:"quic" choices:"quic, tcp, noise, ws, auto" help:"transport protocol"`
	// A slower network to simulate, as "latency=50ms,rate=5Mbit,loss=1%", with other values for some pairs of peers as
	// "rate=5Mbit; 0-2: latency=150ms".
	Link string `yaml:"link" only:"train" local:"true" help:"simulated slower network, as latency=50ms,rate=5Mbit"`
	// Time in which connected peers exchange nothing after which a session ends; 0: 5 minutes.
	ProgressTimeout time.Duration `yaml:"progress_timeout" only:"join" default:"0s" bounds:"[1s, 24h]" help:"silence of connected peers that ends a session"`
	// Time without any message after which a peer counts as failed; 0: 10 seconds.
	PeerTimeout time.Duration `yaml:"peer_timeout" only:"join" default:"0s" bounds:"[1s, 10m]" old:"silence" help:"silence after which a peer counts as failed"`
	// Multiaddresses of relays, which end in /p2p/ID, besides those of the roster.
	Relays []string `yaml:"relays" flag:"relay" only:"join" local:"true" help:"multiaddress of a relay; may be repeated"`

	// Rounds between two checkpoints; 0: at the ends of layers only.
	CheckpointEvery int `yaml:"checkpoint_every" to:"Checkpoint" group:"faults" when:"solver=adam,adamw,sgd" default:"20" bounds:"[0, )" local:"true" help:"rounds between two checkpoints"`
	// Peers with which the run goes on when others have failed, more than half of all; 0: the run waits for every peer.
	MinPeers int `yaml:"min_peers" when:"mode=retexo" default:"0" bounds:"[0, )" help:"peers with which the run goes on; 0: all"`
	// How long the others wait for a failed peer before they go on.
	FailureWait time.Duration `yaml:"failure_wait" when:"min_peers" default:"30s" bounds:"[1s, 1h]" old:"lost_wait" help:"wait for a failed peer before others go on"`
	// How long peers that are done stay for failed ones, which then fetch the model.
	GracePeriod time.Duration `yaml:"grace_period" when:"min_peers" default:"5m" bounds:"[0s, 24h]" old:"linger" help:"stay of finished peers for failed ones"`
	// What replaces the rows of a failed peer when rows are exchanged: the run waits (wait), takes the rows of the exchange
	// before (previous), or leaves out the edges from its nodes (drop).
	FailedRows string `yaml:"failed_rows" when:"min_peers" default:"wait" choices:"wait, previous, drop" old:"lost_rows" help:"replacement of a failed peer's rows"`
	// What happens to a slow peer: the others wait, go on without it for a while (drop, which needs min_peers), or give it less
	// local work (adapt).
	Straggler string `yaml:"straggler" when:"mode=retexo" default:"wait" choices:"wait, drop, adapt" help:"treatment of a slow peer"`
	// How long the others wait for a slow peer's part of a sum.
	RoundLimit time.Duration `yaml:"round_limit" when:"straggler=drop" default:"0s" bounds:"[100ms, 1h]" help:"wait for a slow peer's part of a sum"`

	// The sites by rank: member r holds part r.
	Members []Member
}

// Member is one site of a run.
type Member struct {
	Name      string   `yaml:"name"`
	ID        string   `yaml:"id"`        // as peer id prints it
	Addresses []string `yaml:"addresses"` // multiaddresses at which it listens; none: it only dials out
}

// Auto is the number of peers that follows from mode, policy and partition.
const Auto = -1

// Encoder is what is made of a node's own features: Kind is raw, pca or mlp, K the components of pca.
type Encoder struct {
	Kind string
	K    int
}

func (e Encoder) String() string {
	if e.Kind == "pca" {
		return fmt.Sprintf("pca:%d", e.K)
	}
	return e.Kind
}

// MarshalText implements encoding.TextMarshaler.
func (e Encoder) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Encoder) UnmarshalText(text []byte) error {
	kind, components, _ := strings.Cut(string(text), ":")
	if kind == "pca" {
		if k, err := strconv.Atoi(components); err == nil && k >= 1 {
			*e = Encoder{kind, k}
			return nil
		}
	} else if s := string(text); s == "raw" || s == "mlp" {
		*e = Encoder{Kind: s}
		return nil
	}
	return fmt.Errorf("must be raw, mlp or pca:K with K at least 1 (got %q)", text)
}

// Boundary is which rows of other peers a step reads: Kind is exact, sample or none, Fraction that of sample.
type Boundary struct {
	Kind     string
	Fraction float32
}

func (b Boundary) String() string {
	if b.Kind == "sample" {
		return "sample:" + strconv.FormatFloat(float64(b.Fraction), 'g', -1, 32)
	}
	return b.Kind
}

// fraction is that of the rows which travel.
func (b Boundary) fraction() float32 {
	switch b.Kind {
	case "exact":
		return 1
	case "sample":
		return b.Fraction
	}
	return 0
}

// MarshalText implements encoding.TextMarshaler.
func (b Boundary) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Boundary) UnmarshalText(text []byte) error {
	p, sampled := strings.CutPrefix(string(text), "sample:")
	if sampled {
		if x, err := strconv.ParseFloat(p, 32); err == nil && x > 0 && x < 1 {
			*b = Boundary{"sample", float32(x)}
			return nil
		}
	} else if p == "exact" || p == "none" {
		*b = Boundary{Kind: p}
		return nil
	}
	if strings.HasPrefix(p, "stale") {
		return fmt.Errorf("must be exact, none or sample:P (got %q, which was removed: it saved no bytes and cost accuracy)", text)
	}
	return fmt.Errorf("must be exact, none or sample:P with P between 0 and 1 (got %q)", text)
}
