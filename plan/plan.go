// Package plan declares the settings of a run, once, as the tagged fields of Plan: it reads them from YAML and flags,
// writes them, finds their faults, and translates them into the configurations of the trainers.
package plan

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph"
)

// Plan has the settings of a run, on which all sites agree, and its members. Start from Defaults
// or Read: the zero Plan is not valid. Validate reports all faults at once. Each method has its own
// section of settings; what several methods share is a struct that their sections embed.
//
// The tags are the only declaration of the settings; flags, help, the reference page, YAML and
// refusals are derived from them:
//
//	yaml     name in a plan file; the flag has dashes instead of underscores, unless the tag flag
//	         names it
//	help     noun phrase of at most 60 characters
//	default  value, which Defaults adapts to method and model
//	choices  accepted texts, in which K is a number; model's are the table of convolutions
//	bounds   interval of a number, of a duration or of each number of a list
//	when     conditions under which a run reads the setting, as "solver=sgd encoder=pca"; all must
//	         be met, else only the default is accepted. The values of model are traits; one of them is
//	         enough. Only a name means that this setting is neither zero nor empty. An embedded
//	         struct may have it for all its settings. Settings that a method lacks set no condition
//	only     the command that takes it: train (all peers in one process) or join (one peer)
//	local    true: sites may differ in it
//	to       field of the trainers' configurations that takes the value unchanged; config.go
//	         translates the others
//	rule     rules for a site's policy, or the roster, to judge it (admission.Refusal); all settings are shown
//	         before a person approves the plan
//
// The first sentence of a field's comment defines it. The rest of its paragraph is below the tables of
// docs/reference/settings.md, which have the help.
type Plan struct {
	// How the model is trained. class-means solves a closed form, layer-wise trains layer after layer, full-batch all
	// layers at once, mini-batch on sampled batches. The last two are for the machines of one owner: they send boundary
	// rows in every epoch.
	//
	// class-means sends sums and a short row of each boundary node, layer-wise boundary rows once a layer.
	Method string `yaml:"method" default:"class-means" rule:"policy.methods" help:"way to train"`
	// Every random choice follows from the seed, except the noise of epsilon.
	Seed uint64 `yaml:"seed" to:"Seed" default:"1" help:"random seed"`
	// What is predicted: the labels of nodes, or links, which are edges that the graph may lack. auto takes the labels
	// of the data set; classification makes its numbers classes, regression makes them targets. links:RELATION,…
	// predicts only these relations, each as NAME with the reverse "NAME (inverse)", or as NAME=REVERSE. For links the
	// default method is layer-wise.
	Task Task `yaml:"task" default:"auto" help:"what is predicted (auto, classification, regression, links)"`
	// Norm that divides each node's features before training. l1 is the sum of absolute values, l2 the Euclidean
	// length. With auto, class-means takes l2, or with up to 64 columns the norm that validates better. Other methods
	// take l2 for more than 64 columns without a value below 0. Most nodes must then have two or more values other than
	// 0, in at most half of the columns. Otherwise, and for a numeric target, auto is none. With init it is the model
	// file's.
	RowNorm string `yaml:"row_norm" default:"auto" choices:"none, l1, l2, auto" help:"norm that divides each node's features"`
	// The class of two that average precision, the threshold and all other figures of one class are of.
	//
	// By default it is the class of fewer training nodes at all sites, or the second one if both have as many.
	Positive string `yaml:"positive" default:"" help:"positive class of two (default: the rarer)"`
	// What the threshold between two classes is chosen for, on the validation nodes. f1, recall@precision=P or
	// precision@recall=R of the positive class, with at least P or R. If nodes have several classes, each class has its
	// own threshold. By default a class is predicted if it is the most probable or, of several, more probable than not.
	Threshold string `yaml:"threshold" default:"" help:"objective for choosing the decision threshold"`
	// What a training label of a class counts in the loss, as CLASS=WEIGHT. balanced weights each class by the inverse
	// of its fraction of the training labels. Other classes count 1. If nodes have several classes, the weight is of
	// the class's own decision, and class-means takes none. On a command line it may be a file of lines CLASS,WEIGHT.
	ClassWeights []string `yaml:"class_weights" default:"" help:"weights of classes, CLASS=WEIGHT or balanced"`
	// Whether validation and test nodes, and their edges, are absent while the model trains.
	Inductive bool `yaml:"inductive" to:"Inductive" help:"train without validation and test nodes"`
	// Metric with which the validation nodes choose the best model. The default is accuracy, or micro-f1 if a node may
	// have several classes. It is auc if the rarer of two classes has under a quarter of the training labels, without
	// phones. Classes in order may have rank-mae, the mean error in ranks, or qwk, the quadratic weighted kappa; both
	// predict the median. Numeric targets take r2 (default), mae or rmse, links mrr (default), hits@10 or auc.
	//
	// An AUC is undefined, and chooses nothing, if the validation nodes have one class only: the plan then ends as it
	// does without validation nodes.
	Metric string `yaml:"metric" choices:"accuracy, micro-f1, macro-f1, auc, ap, rank-mae, qwk, r2, mae, rmse, mrr, hits@10" help:"validation metric"`

	// Column by whose values the test nodes of all sites are also counted, as ward, or age:40,65 with the cuts of
	// numbers or ages. Values that fewer than 10 test nodes of a site have, or fewer than 3 sites, are counted
	// together.
	FiguresBy string `yaml:"figures_by" default:"" rule:"policy.figures_by" help:"column that groups test nodes"`

	// The settings of each method. Only Method's settings may be written, the others are zero.
	ClassMeans ClassMeansSection `yaml:"class_means"`
	LayerWise  LayerWiseSection  `yaml:"layer_wise"`
	FullBatch  FullBatchSection  `yaml:"full_batch"`
	MiniBatch  MiniBatchSection  `yaml:"mini_batch"`

	// Number format of neighbors' rows on the network. float32 is exact; int8 and int4 share a scale per row or column.
	// With epsilon rows are whole numbers, sent as float32. With mini-batch, bf16 also rounds the factors of dense
	// products in training, which is faster on processors with AMX.
	Rows string `yaml:"rows" default:"float32" choices:"float32, bf16, int8, int4" rule:"policy.rows" help:"number format of rows that are sent"`
	// Compression of neighbors' rows on the network.
	Compress string `yaml:"compress" experimental:"true" default:"none" choices:"none, zstd" help:"compression of rows that are sent"`

	// Number of peers.
	//
	// -1 takes the number of parts of a partition on disk. Without one it takes the number of sites, if the graph has a
	// site column and policy is auto or by-column, else 4.
	Peers int `yaml:"peers" only:"train" default:"-1" bounds:"[1, )" help:"number of sites (default: as in the data, else 4)"`
	// Which peer owns which node. random, contiguous, by-column, fennel, restream:N or multilevel. auto is by-column if
	// the graph has a site column of 2 to 64 sites and peers is -1 or as many. Otherwise it is random; with full-batch
	// and mini-batch it is multilevel, or restream:5 beyond 20 million stored edges.
	Policy string `yaml:"policy" only:"train" default:"auto" help:"which site gets which node, as random or by-column"`
	// How the peers of one process are connected: over loopback (libp2p) or in memory.
	Transport string `yaml:"transport" only:"train" experimental:"true" default:"libp2p" choices:"libp2p, memory" help:"connections of the peers"`
	// Protocol of the connections. noise is TCP without TLS, ws is WebSocket. auto takes the fastest for each pair of
	// peers.
	Carrier string `yaml:"carrier" default:"quic" choices:"quic, tcp, noise, ws, auto" help:"transport protocol"`
	// Slower network to simulate, as "latency=50ms,rate=5Mbit,loss=1%". Pairs of peers may differ, as "rate=5Mbit; 0-2:
	// latency=150ms".
	Link string `yaml:"link" only:"train" local:"true" help:"simulated slower network, as latency=50ms,rate=5Mbit"`
	// Runs that follow one another, each with the next seed. The model is from the run that validates best. An approval
	// of the plan covers all runs, and each run sends its messages.
	Runs int `yaml:"runs" flag:"seeds" only:"join" default:"1" bounds:"[1, 1000]" help:"runs, each with the next seed"`
	// A session ends after connected peers have exchanged nothing for this time (0 = 5 minutes).
	ProgressTimeout time.Duration `yaml:"progress_timeout" only:"join" experimental:"true" default:"0s" bounds:"[1s, 24h]" help:"silence of connected peers that ends a session"`
	// A peer counts as failed after it has sent nothing for this time (0 = 10 seconds).
	PeerTimeout time.Duration `yaml:"peer_timeout" only:"join" experimental:"true" default:"0s" bounds:"[1s, 10m]" help:"silence after which a peer counts as failed"`
	// Multiaddresses of relays, in addition to the roster's. They end in /p2p/ID.
	Relays []string `yaml:"relays" flag:"relay" only:"join" local:"true" rule:"roster.relays" help:"multiaddress of a relay (may be repeated)"`
	// When phones take part: as soon as the app on them reports all that is named. idle means that nobody uses the
	// phone.
	PhoneWhen string `yaml:"phone_when" only:"join" default:"charging+unmetered" choices:"always, charging, unmetered, charging+unmetered, charging+unmetered+idle" help:"what a phone waits for before it takes part"`

	// The sites by rank: member r has part r.
	Members []Member
}

// ClassMeansSection has the settings of class means.
type ClassMeansSection struct {
	// Aggregations of the features. 0 uses only each node's own features and sends no row. With epsilon or phones the
	// default is 2.
	Hops int `yaml:"hops" default:"6" bounds:"[0, 1000]" rule:"policy.max_hops" help:"aggregations of the features"`
	// Rounds of class means, at most; the best by validation is the model. 0: 3, or 4 with class_target
	// residual; with epsilon 4, and one for each hop.
	ClassRounds int `yaml:"class_rounds" to:"ClassRounds" experimental:"true" default:"0" bounds:"[0, 20]" rule:"policy.max_rounds" help:"most rounds of class means (0 = auto)"`
	// What a round after the first learns from: labels takes the class means of soft labels, residual
	// what the logits so far leave of the training labels. auto: residual if a fifth of all nodes is in
	// training, or a node may have several classes.
	ClassTarget string `yaml:"class_target" to:"Target" experimental:"true" default:"auto" choices:"auto, labels, residual" rule:"policy.leave_one_out" help:"what a round after the first learns from"`
	// Whether a node's own part is taken out of the means that its row is compared with. Otherwise rows that are sent
	// would reveal the class of a training node. auto is true with class_target labels.
	LeaveOneOut string `yaml:"leave_one_out" to:"LeaveOut" experimental:"true" default:"auto" choices:"auto, true, false" rule:"policy.leave_one_out" help:"own part of the means left out of a row"`
	// Random Fourier features that each round adds; nothing is sent for them but their part of the sums of the closed
	// form. At most 32 for each column that the round reads. -1 is 256 with class_target residual, else 64 (0 with
	// epsilon).
	RandomFeatures int `yaml:"random_features" to:"Random" experimental:"true" default:"-1" bounds:"[-1, 4096]" help:"random Fourier features of a round (-1 = auto)"`
	// What is added to the variance of each feature, in units of their mean, before class means are
	// divided by it.
	Shrink float32 `yaml:"shrink" to:"Shrink" experimental:"true" default:"3" bounds:"(0, )" help:"shrinkage of the features' variances"`
	// Whether rows of nodes with few values other than 0 are rounded more coarsely, so that a row reveals at most half
	// of the information that names the columns of these values. It applies to sparse features. If no edge connects the
	// sites, no row is sent, and none is rounded.
	CoarseRows bool `yaml:"coarse_rows" to:"Coarse" experimental:"true" default:"true" help:"coarser rows of nodes with few values"`

	// Differential privacy of edges (0 = no noise). Nobody who sees what leaves a site, or the model, can detect an
	// edge better than this ε and delta allow (docs/explanation/private-edges.md).
	Epsilon float64 `yaml:"epsilon" to:"Epsilon" default:"0" bounds:"[0, 100]" rule:"policy.max_epsilon" help:"differential privacy of edges (0 = none)"`
	// Probability with which the guarantee of epsilon may fail. Choose it well below one over the number of edges.
	Delta float64 `yaml:"delta" to:"Delta" when:"epsilon" default:"1e-05" bounds:"(0, 1)" rule:"policy.max_delta" help:"probability that the guarantee of epsilon fails"`

	// Phones that may take part (0 = none). No list names them, and each has its own graph. They send shares of their
	// numbers to the members with leaf_addresses (docs/explanation/phones.md). Settings that are auto then take what a
	// phone can send.
	Leaves   int `yaml:"phones" only:"join" default:"0" bounds:"[0, 4194304]" help:"most phones that take part (0 = none)"`
	LeafSums `when:"phones"`
	Federation
}

// LeafSums has the additional settings of a run with phones.
type LeafSums struct {
	// Leaves that a sum must have, else it has none. A sum over few reveals something about each.
	LeastLeaves int `yaml:"least_leaves" only:"join" experimental:"true" default:"20" bounds:"[2, 4194304]" help:"fewest phones of a sum"`
	// Leaves with which a sum closes at once (0 = as many as there may be).
	LeafQuorum int `yaml:"leaf_quorum" only:"join" experimental:"true" default:"0" bounds:"[0, 4194304]" help:"phones with which a sum closes (0 = all)"`
	// How long a sum waits for leaves. A run has two sums, four in each round and one at the end.
	LeafWait time.Duration `yaml:"leaf_wait" only:"join" experimental:"true" default:"1m0s" bounds:"[10ms, 20m]" help:"how long a sum waits for phones"`
	// Whether nodes of leaves have edges to nodes of other leaves and of the members with leaf_addresses, which these
	// members know: so a leaf may be one node of their graph. Sums of neighbors' rows are then sent between leaves and
	// members.
	LeafEdges bool `yaml:"leaf_edges" only:"join" experimental:"true" default:"false" help:"use edges between phones, which the sites know"`
}

// Federation has the settings of the methods for sites that may not pool their data: class-means and layer-wise.
type Federation struct {
	// What is sent for a layer that sums rows: all rows (halo), the fewest rows and partial sums (cover), or the one
	// that takes fewer bytes (auto).
	Exchange string `yaml:"exchange" to:"Exchange" experimental:"true" default:"auto" choices:"halo, cover, auto" help:"rows, or the fewest rows and partial sums"`
	// Number format of the parts of sums that find the encoder: float32, or integers of 16 or 8 bits on
	// a grid that the peers agree on first. int8 is made for up to 8 peers and takes up to 63. auto is
	// int8 for up to 8 peers with encoder classes, else int16. Sums over each class are int16 from 5,000
	// training labels on, if the target is soft labels.
	Sums string `yaml:"sums" to:"Sums" when:"encoder=pca" experimental:"true" default:"float32" choices:"auto, float32, int16, int8" help:"number format of the encoder's sums"`
	// Training nodes, of all sites together, below which a class sends no mean in the first round.
	MinClass int `yaml:"min_class" to:"MinClass" when:"encoder=pca:K+classes" default:"5" bounds:"[1, )" help:"fewest training nodes of a class that sends a mean"`
	// Whether sums over the peers are secure. auto is on from 3 peers; more than 64 peers need off. With two, each peer
	// sees the other's part in any case.
	//
	// Each pair of peers hides its parts by masks that cancel in the sum, so nobody sees a single part. Keys come from
	// X25519 and ML-KEM-768.
	SecureSums string `yaml:"secure_sums" default:"auto" choices:"auto, on, off" rule:"policy.min_members_in_sum" help:"secure aggregation, of 3 to 64 peers"`
}

// LayerWiseSection has the settings of training one layer after the other.
type LayerWiseSection struct {
	// Encoding of a node's own features before rows are sent. raw takes features as they are. pca:K takes their K
	// leading components; these rows reveal features, and the log warns. K is at most half the columns, and the default
	// keeps fewer if there are fewer. +classes adds the logits of three rounds of class means, if each node has one of
	// at most 50 classes and inductive is false. mlp is a hidden layer that is trained first.
	Encoder Encoder `yaml:"encoder" default:"pca:128+classes" choices:"raw, mlp, pca:K, pca:K+classes" rule:"policy.encoders" help:"encoding of a node's features"`
	// What a layer passes to the next one: its hidden rows, or its own head's class logits.
	LayerOutput string `yaml:"layer_output" default:"hidden" choices:"hidden, logits" rule:"policy.layer_outputs" help:"what a layer passes to the next"`
	Gradient
	// Optimizer steps between two sums. 1 gives the model of training on pooled data.
	LocalSteps int `yaml:"local_steps" to:"LocalSteps" default:"1" bounds:"[1, 1000000]" help:"optimizer steps between two sums"`
	// Whether the model has all layers, even if it validates better without the last ones. Otherwise it
	// ends with the layer that validates best.
	KeepLast bool `yaml:"keep_last" to:"KeepLast" experimental:"true" help:"all layers, even if fewer validate better"`
	// Passes over the features in which encoder pca finds its components.
	PCAPasses int `yaml:"pca_passes" to:"PCAPasses" when:"encoder=pca" experimental:"true" default:"1" bounds:"[1, 1000]" rule:"policy.max_pca_passes" help:"passes over the features that find components"`
	// Number format of each peer's part of a round's sum. Integers are on a grid that the peers agree on first. int8 is
	// made for up to 8 peers and takes up to 63; int4 takes up to 7. auto is int8 for up to 8 peers, else int16.
	//
	// The next part has what rounding left out: error feedback (Karimireddy et al., ICML 2019).
	Updates string `yaml:"updates" to:"Updates" default:"float32" choices:"auto, float32, int16, int8, int4" help:"number format of a round's updates"`
	Federation
}

// Gradient has the settings that methods share whose layers are trained by gradient steps: all except class means.
type Gradient struct {
	// The graph convolution. rgcn, rsage and rgat read typed edges. gine and gatv2 read columns of edges.
	Model string `yaml:"model" default:"gcn" help:"graph convolution"`
	// Number of graph layers. With full-batch and mini-batch a linear layer follows them for a numeric target, except
	// with appnp, sign and mlp.
	Layers int `yaml:"layers" default:"2" bounds:"[1, 1000]" rule:"policy.max_layers" help:"number of graph layers"`
	// Width of the hidden rows. With attention it is the width of all heads together. For nodes without features rgcn
	// and rsage have other defaults: hidden 16, rounds 50, lr 0.01, decay 0.0005, dropout 0, and eval_every 50, so that
	// the last epoch counts.
	Hidden int `yaml:"hidden" default:"256" bounds:"[1, 16777216]" help:"width of hidden rows"`
	// Aggregations before each layer. With appnp and sign it is the total.
	Hops int `yaml:"hops" when:"model=hops" default:"1" bounds:"[1, 1000]" rule:"policy.max_hops" help:"aggregations before a layer"`
	// Number of attention heads.
	Heads int `yaml:"heads" when:"model=attention" default:"8" bounds:"[1, 1024]" help:"number of attention heads"`
	// Whether a layer's input is added to its output.
	Residual bool `yaml:"residual" help:"add a layer's input to its output"`
	// Model file from whose parameters training starts, instead of random ones. A plan has its SHA-256; a command line
	// names the file itself. Every site needs the file, and its layers, classes and columns must be the run's. A state
	// dict of PyG layers, as safetensors, needs encoder raw. Encoder pca keeps its components. With layer-wise and
	// layer_output hidden each layer but the last starts under a new head.
	Init string `yaml:"init" to:"Init" help:"model file from which training starts"`

	Links `when:"task=links"`

	// Optimizer. adam and sgd add decay to the gradient, adamw shrinks the weights.
	Solver string `yaml:"solver" experimental:"true" default:"adam" choices:"adam, adamw, sgd" help:"optimizer"`
	// Maximum number of rounds of a layer; with full-batch and mini-batch, of epochs.
	Rounds int `yaml:"rounds" to:"Rounds" default:"200" bounds:"[1, 1000000000]" rule:"policy.max_rounds" help:"most rounds of a layer, or epochs"`
	// Learning rate before the schedule.
	LR float32 `yaml:"lr" to:"Optimizer.LR" default:"0.01" bounds:"(0, )" help:"learning rate"`
	// Weight decay. The default is 0.005 if full-batch or mini-batch learns a numeric target of nodes with features, by
	// a model without typed edges. It is 0 if layers see columns of classes (encoder pca:K+classes) and nodes of all
	// peers have 5,000 training labels or more.
	Decay float32 `yaml:"decay" to:"Optimizer.Decay" default:"0.005" bounds:"[0, )" help:"weight decay"`
	// Momentum of sgd.
	Momentum float32 `yaml:"momentum" to:"Optimizer.Momentum" when:"solver=sgd" experimental:"true" default:"0" bounds:"[0, 1)" help:"momentum"`
	// How the learning rate falls over the steps.
	Schedule string `yaml:"schedule" to:"Schedule.Kind" default:"constant" choices:"constant, linear, cosine" help:"schedule of the learning rate"`
	// Probability that a value of a layer's input is left out of a step. For links the default is 0.5 with decoder dot
	// if nodes have features, else 0. It is 0 if full-batch or mini-batch learns a numeric target of nodes with
	// features, by a model without typed edges.
	Dropout float32 `yaml:"dropout" default:"0.3" bounds:"[0, 1)" help:"dropout probability"`
	// Probability that an attention weight is left out of a step.
	AttentionDropout float32 `yaml:"attention_dropout" when:"model=attention" experimental:"true" default:"0" bounds:"[0, 1)" help:"dropout probability of attention weights"`
	// Rounds without a better validation metric after which a layer, or the training, ends (0 = never).
	Patience int `yaml:"patience" to:"Patience" default:"0" bounds:"[0, )" help:"rounds without improvement that end a layer (0 = never)"`
	// Rounds from one validation to the next.
	EvalEvery int `yaml:"eval_every" to:"EvalEvery" experimental:"true" default:"1" bounds:"[1, )" help:"rounds from one validation to the next"`
	// Rounds between two checkpoints. 0 writes one only at the end of each layer.
	CheckpointEvery int `yaml:"checkpoint_every" to:"Checkpoint" default:"20" bounds:"[0, )" local:"true" help:"rounds between two checkpoints"`
}

// Links has the settings of learning links.
type Links struct {
	// Score of a pair of nodes by their hidden rows. dot is the inner product, distmult one with a learned weight for
	// each column and relation, mlp a hidden layer over the products of the columns. All score a pair alike in both
	// directions.
	Decoder string `yaml:"decoder" default:"dot" choices:"dot, distmult, mlp" help:"how two rows give the score of a link"`
	// Fractions of the links that validate and test. No message runs along these links, in either direction.
	LinkHoldout []float64 `yaml:"link_holdout" default:"0.05,0.1" bounds:"(0, 1)" help:"fractions of links for validation and test"`
	// Split of links by time, COLUMN:T1:T2, instead of link_holdout. COLUMN is a column of the edges with numbers or
	// dates, or its number from 0 if columns have no names. Links before T1 or without a time train, links before T2
	// validate, later ones test.
	LinkTime string `yaml:"link_time" help:"split of links by time, COLUMN:T1:T2"`
	// Random pairs for each training link at every epoch, which are taken for no links: its own end with another node
	// of the other end's type that it is not linked with.
	Negatives int `yaml:"negatives" experimental:"true" default:"1" bounds:"[1, 1000]" help:"random pairs for each link of a step"`
	// Source of random pairs, with layer-wise near: all nodes, so that any number of peers trains the same model and
	// the hidden row of every node may be sent to every peer; or near ones, a peer's own nodes and its halo, so that no
	// additional rows are sent.
	NegativesFrom string `yaml:"negatives_from" experimental:"true" default:"all" choices:"all, near" help:"nodes that random pairs are from"`
}

// JointLayers has the settings of the methods that train all layers at once.
type JointLayers struct {
	// Normalization after each layer but the last. layer is by row, batch by column over all nodes.
	Norm string `yaml:"norm" default:"none" choices:"none, layer, batch" help:"normalization after hidden layers"`
	// Weight of a node's own row in the output of each hop of appnp (α in the paper); appnp needs more
	// than 0.
	Alpha float32 `yaml:"alpha" when:"model=restart" experimental:"true" default:"0" bounds:"[0, 1]" help:"restart probability of each hop"`
	// Number of bases that the matrices of the relations share (0 = each relation has its own matrix). If nodes have
	// 1,000 features or more, model rgcn takes 2 instead of 0, and decay 0.1 instead of 0.02.
	Bases int `yaml:"bases" when:"model=relations" experimental:"true" default:"0" bounds:"[0, )" help:"shared bases of the relations' matrices"`
	Gradient
	// Rows that a peer keeps although it could fetch them again. A number without a unit is in MiB. With mini-batch it
	// limits two groups of batches, if group is 0; 0 then means 1024.
	Memory Mebibytes `yaml:"memory" default:"0" bounds:"[0, 1099511627776]" local:"true" help:"most memory for kept rows, as 4GiB (0 = no limit)"`
}

// FullBatchSection has the settings of training all layers at once on the whole graph.
type FullBatchSection struct {
	// Encoding of a node's own features. raw takes features as they are. embedding:K maps them to K columns; each node
	// without features has a row of K numbers that only its peer learns and keeps. A node that comes later has the bias
	// of the map instead.
	Encoder Encoder `yaml:"encoder" default:"raw" choices:"raw, embedding:K" rule:"policy.encoders" help:"encoding of a node's features"`
	// Fraction of the training labels that a step takes as input instead of learning from them; 0:
	// labels are not an input.
	LabelInputs float32 `yaml:"label_inputs" default:"0" bounds:"[0, 1)" help:"fraction of training labels that are input"`
	// Steps in which the training labels correct and smooth the logits of the trained model, by the method Correct &
	// Smooth (0 = none).
	CorrectSmooth int `yaml:"correct_smooth" default:"0" bounds:"[0, )" help:"steps of Correct & Smooth after training (0 = none)"`
	// Weight of the neighbors when errors spread in Correct & Smooth.
	CorrectAlpha float32 `yaml:"correct_alpha" when:"correct_smooth" experimental:"true" default:"0.9" bounds:"[0, 1)" help:"spread of errors in Correct & Smooth"`
	// Weight of the neighbors when labels spread in Correct & Smooth.
	SmoothAlpha float32 `yaml:"smooth_alpha" when:"correct_smooth" experimental:"true" default:"0.8" bounds:"[0, 1)" help:"spread of labels in Correct & Smooth"`
	JointLayers
	// What is sent for a layer that sums rows: all rows (halo), the fewest rows and partial sums (cover), or the one
	// that takes fewer bytes (auto).
	Exchange string `yaml:"exchange" to:"Exchange" experimental:"true" default:"auto" choices:"halo, cover, auto" help:"rows, or the fewest rows and partial sums"`
	// How neighbors' rows are fetched: sar drops them and fetches them again for the gradient, sa
	// keeps them, oneshot fetches all at once, auto keeps what fits in memory.
	Fetch string `yaml:"fetch" to:"Fetch" experimental:"true" default:"auto" choices:"sar, sa, oneshot, auto" help:"fetching of other peers' rows"`
	// Order in which rows are summed: fixed yields the same bits in every run.
	Order string `yaml:"order" to:"Order" experimental:"true" default:"any" choices:"any, fixed" help:"order of summation"`
	// Number of peers whose rows are fetched while rows of others are summed.
	Prefetch int `yaml:"prefetch" to:"Prefetch" default:"1" bounds:"[0, 1000000]" local:"true" help:"peers whose rows are fetched ahead"`
}

// MiniBatchSection has the settings of training on sampled batches.
type MiniBatchSection struct {
	JointLayers
	// Training labels of a step, of all peers together. For links it is the mean number of links of a step.
	BatchSize int `yaml:"batch_size" to:"BatchSize" default:"1024" bounds:"[1, 1000000000]" help:"training labels of a step, of all peers"`
	// In-edges that are sampled of a node, hop by hop, the first from the training nodes. One number serves all layers.
	// With typed edges it is the number for each relation.
	Fanouts []int `yaml:"fanouts" default:"10" bounds:"[-1, 1048576]" help:"sampled in-edges of a node in each hop (-1 = all)"`
	// How the neighbours of a batch are sampled. neighbour samples the in-edges of each node separately, labor
	// (LABOR-0) by numbers that all nodes of a hop share: fewer distinct nodes are then read.
	Sampler string `yaml:"sampler" to:"Sample.Kind" default:"neighbour" choices:"neighbour, labor" help:"how batches are sampled"`
	// Steps of a round (0 = an epoch). Settings that count rounds, as rounds, eval_every, patience and
	// checkpoint_every, then count these: on a large graph a run continues from within an epoch. Batches do not depend
	// on it.
	RoundSteps int `yaml:"round_steps" to:"RoundSteps" experimental:"true" default:"0" bounds:"[0, 1073741824]" help:"steps of a round (0 = an epoch)"`
	// Batches for which the peers sample, and fetch features, at once: a larger group takes fewer messages and more
	// memory (0 = chosen by the latency that the peers measure, within memory). The model does not depend on it.
	Group int `yaml:"group" to:"Group" experimental:"true" default:"0" bounds:"[0, 64]" help:"batches sampled and fetched at once (0 = auto)"`
	// Features of other peers' nodes that a peer keeps for the next batches. A number without a unit is in MiB.
	FeatureCache Mebibytes `yaml:"feature_cache" default:"64" bounds:"[0, 1048576]" local:"true" help:"memory for other peers' features, as 64MiB (0 = none)"`
}

// Member is one site of a run.
type Member struct {
	Name      string   `yaml:"name"`
	ID        string   `yaml:"id"`        // as heddle init prints it
	Addresses []string `yaml:"addresses"` // multiaddresses to dial (empty = it only dials out)

	// Multiaddresses at which it collects shares of phones (none = it collects none). The first two members or more do.
	LeafAddresses []string `yaml:"leaf_addresses,omitempty"`

	// What the roster in federation.yaml has of it, which package admission reads.
	Expires       string `yaml:"expires,omitempty"`
	Role          string `yaml:"role,omitempty"`
	Administrator bool   `yaml:"administrator,omitempty"`
}

// Mebibytes is a number of 2²⁰ bytes. Its text may have a unit, as ParseSize takes it.
type Mebibytes int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mebibytes) UnmarshalText(text []byte) error {
	x, err := ParseSize(string(text), 1<<20)
	x /= 1 << 20
	whole := x == math.Trunc(x) || bytes.ContainsAny(text, "bB") // 1GB is rounded down
	if err != nil || !whole || math.Abs(x) >= 1<<43 || x > 0 && x < 1 {
		return fmt.Errorf("must be a whole number of MiB, or a size, as 512MiB or 4GiB (got %q)", text)
	}
	*m = Mebibytes(x)
	return nil
}

// ParseSize returns the bytes of a size, as 2GiB or 500 MB; a number without a unit has the given one.
func ParseSize(text string, unit float64) (bytes float64, err error) {
	number := strings.TrimSpace(text)
	for _, u := range []struct {
		name string
		size float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	} {
		if n := len(number) - len(u.name); n > 0 && strings.EqualFold(number[n:], u.name) {
			number, unit = strings.TrimSpace(number[:n]), u.size
			break
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(x) {
		return 0, fmt.Errorf("must be a size, as 2GiB or 500MB (got %q)", text)
	}
	return x * unit, nil
}

// AutoPeers, as Plan.Peers, leaves the number of peers to policy and partition.
const AutoPeers = -1

// Encoder is the encoding of a node's own features. Kind is raw, pca, mlp, embedding or, which no text gives and
// class-means always has, classes. K is the number of components of pca, or the width of embedding. Classes is whether
// columns of classes are added to pca. Its text is raw, pca:K, pca:K+classes, mlp or embedding:K.
type Encoder struct {
	Kind    string
	K       int
	Classes bool
}

func (e Encoder) String() string {
	switch {
	case e.Classes:
		return fmt.Sprintf("pca:%d+classes", e.K)
	case e.Kind == "pca" || e.Kind == "embedding":
		return fmt.Sprintf("%s:%d", e.Kind, e.K)
	}
	return e.Kind
}

// form is e's text with K for the number.
func (e Encoder) form() string { return strings.Replace(e.String(), strconv.Itoa(e.K), "K", 1) }

// MarshalText implements encoding.TextMarshaler.
func (e Encoder) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Encoder) UnmarshalText(text []byte) error {
	kind, components, _ := strings.Cut(string(text), ":")
	if kind == "pca" || kind == "embedding" {
		components, beside := strings.CutSuffix(components, "+classes")
		if k, err := strconv.Atoi(components); err == nil && k >= 1 && !(beside && kind != "pca") {
			*e = Encoder{Kind: kind, K: k, Classes: beside}
			return nil
		}
	} else if s := string(text); s == "raw" || s == "mlp" {
		*e = Encoder{Kind: s}
		return nil
	}
	return fmt.Errorf("must be raw, mlp, or pca:K, pca:K+classes or embedding:K with K at least 1 (got %q)", text)
}

// Task is what a model predicts. Kind is auto, classification, regression or links. Relations are those whose edges are
// predicted, each as NAME or NAME=REVERSE; none: all. Its text is its kind, or links:RELATION,…
type Task struct {
	Kind      string
	Relations []string
}

var tasks = []string{"auto", "classification", graph.Numbers.String(), graph.Links.String()}

// Links reports whether t is to predict links.
func (t Task) Links() bool { return t.Kind == graph.Links.String() }

func (t Task) String() string {
	if len(t.Relations) > 0 {
		return t.Kind + ":" + strings.Join(t.Relations, ",")
	}
	return t.Kind
}

// MarshalText implements encoding.TextMarshaler.
func (t Task) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Task) UnmarshalText(text []byte) error {
	kind, relations, some := strings.Cut(string(text), ":")
	one := Task{Kind: kind}
	if some {
		one.Relations = strings.Split(relations, ",")
	}
	if !slices.Contains(tasks, kind) || some && !one.Links() || slices.Contains(one.Relations, "") {
		return fmt.Errorf("must be auto, classification, regression, links or links:RELATION,… (got %q)", text)
	}
	*t = one
	return nil
}
