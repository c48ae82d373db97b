"""Settings of a run. Generated: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan"""

from __future__ import annotations

from typing import Literal, TypedDict


class Settings(TypedDict, total=False):
    """Settings of `train` and `compare`; one that is not given has its default."""

    mode: Literal["retexo", "fullbatch", "minibatch", "standalone"]
    """Training algorithm.

    How the model is trained: retexo trains one layer after the other, and neighbours' rows cross the
    network once per layer; fullbatch trains all layers at once over the peers; standalone does the
    same at one peer.
    """

    preset: Literal["frugal", "retexo", "auto"]
    """Settings to start from.

    Settings to start from: frugal has rounds of class means in closed form and sends the fewest
    bytes, retexo has the settings of the Retexo paper. Other settings override those of the preset.
    auto trains by several plans, one after the other, and takes the best by validation; of model and
    training only seed, threshold, balanced, inductive, metric and min_class may be set with it. It
    is the default of a plan in mode retexo that sets nothing else of model and training, and no
    epsilon.
    """

    budget: float | str
    """MB that all plans tried may send together.

    Megabytes that all peers together may send for all plans that preset auto tries, frame headers
    included, with or without a unit: 50, 50MB, 1.5GB, 900kB. What is sent again after a failure
    comes on top.
    """

    seed: int
    """Random seed.

    Every random choice follows from the seed: the same seed gives the same model.
    """

    task: str
    """Labels of nodes (auto), links or links:RELATION,….

    What is predicted: what the labels of nodes are (auto), or links, which are edges that the graph
    may lack. links:RELATION,… predicts those of these relations only, each as NAME, where relation
    "NAME (inverse)" runs the other way, or as NAME=REVERSE. Edges that are held out are taken out of
    the reverse as well. Mode retexo learns links by convolutions that sum rows, in rounds of
    gradients; closed forms do not.
    """

    model: Literal["gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "gine", "appnp", "sign", "rgcn", "rsage", "rgat", "mlp"]
    """Graph convolution.

    The graph convolution. rgcn, rsage and rgat read typed edges, gine and gatv2 columns of edges.
    Mode retexo trains gcn, sage, sage-pool, gat, gatv2 and gin.
    """

    encoder: str
    """Raw, mlp, pca:K[+classes], classes, embedding:K.

    Encoding of a node's own features before anything travels: raw leaves them unchanged, pca:K keeps
    their K leading components, mlp trains a hidden layer, classes maps them to one column a class in
    each of a few rounds of class means. With pca:K+classes trained layers see K components and,
    where each node has one of at most 50 classes, the logits that three rounds of class means give
    it; other plans than inductive false and solver adam, adamw or sgd leave these out, and the log
    says so. Modes fullbatch, minibatch and standalone take raw. In fullbatch and standalone,
    embedding:K maps features to K columns, and each node without features has a row of K numbers
    that its peer alone learns and holds; for a node without such a row, as one that comes later, the
    bias of the map stands in.
    """

    layer_output: Literal["hidden", "logits"]
    """What a layer passes to the next.

    What a layer passes to the next one: its hidden rows, or the class logits of a head of its own.
    """

    layers: int
    """Number of graph layers.

    Number of graph layers. End to end, a linear layer follows them for a numeric target, except with
    appnp, sign and mlp.
    """

    hidden: int
    """Width of hidden rows.

    Width of the hidden rows; with attention, of all heads together. Where nodes have no features,
    models rgcn and rsage take other values in place of their defaults: hidden 16, rounds 50, lr
    0.01, decay 0.0005, dropout 0, and eval_every 50, so that the last epoch counts.
    """

    hops: int
    """Aggregations before a layer.

    Aggregations before a layer; of appnp and sign, in total. 0 is for encoder classes: each node's
    own features alone, and no row travels.
    """

    alpha: float
    """Restart probability of each hop.

    Weight of a node's own row in the output of each hop of appnp (α in the paper); appnp needs more
    than 0.
    """

    bases: int
    """Shared bases of the relations' matrices.

    Number of bases that the matrices of the relations share; 0: each relation has its own matrix.
    Where nodes have 1,000 features or more, model rgcn takes 2 in place of 0, and decay 0.1 in place
    of 0.02.
    """

    heads: int
    """Number of attention heads.

    Number of attention heads.
    """

    norm: Literal["none", "layer", "batch"]
    """Normalisation after hidden layers.

    Normalisation after each layer but the last: of each row (layer), or over all nodes (batch). In
    mode retexo it is layer; in the other modes none, layer or batch.
    """

    residual: bool
    """Residual connections.

    Whether a layer's input is added to its output.
    """

    row_norm: Literal["none", "l1", "l2", "auto"]
    """Norm that divides each node's features.

    Norm by which each node's features are divided before training: l1 is the sum of their absolute
    values, l2 their Euclidean length. auto: l2, but none for a numeric target, about which sizes say
    much.
    """

    label_augmentation: float
    """Fraction of training labels that are input.

    Fraction of the training labels that a step takes as input instead of learning from them; 0:
    labels are not an input.
    """

    correct_smooth: int
    """Steps of Correct & Smooth after training.

    Steps in which the training labels correct and smooth the logits of the trained model (Correct &
    Smooth); 0: none.
    """

    correct_alpha: float
    """Spread of errors in Correct & Smooth.

    Weight of the neighbours when errors spread in Correct & Smooth.
    """

    smooth_alpha: float
    """Spread of labels in Correct & Smooth.

    Weight of the neighbours when labels spread in Correct & Smooth.
    """

    solver: Literal["adam", "adamw", "sgd", "ridge"]
    """Optimiser.

    Optimiser; ridge is the closed form of encoder classes, and of nothing else.
    """

    rounds: int
    """Rounds of a layer, or epochs, at most.

    Maximum number of rounds of a layer; in modes fullbatch, minibatch and standalone, of epochs.
    """

    local_steps: int
    """Optimiser steps between two reductions.

    Optimiser steps between two reductions; 1 yields the model of training on pooled data.
    """

    lr: float
    """Learning rate.

    Learning rate before the schedule.
    """

    decay: float
    """Weight decay.

    Weight decay; adam and sgd add it to the gradient, adamw shrinks the weights. In place of the
    default it is 0.005 where a model without typed edges is trained end to end for a numeric target
    of nodes with features, and 0 where layers see columns of classes (encoder pca:K+classes) and
    nodes of all peers have 5,000 training labels or more.
    """

    momentum: float
    """Momentum.

    Momentum of sgd.
    """

    schedule: Literal["constant", "linear", "cosine"]
    """Schedule of the learning rate.

    How the learning rate falls over the steps.
    """

    dropout: float
    """Dropout probability.

    Probability that a value of a layer's input is left out of a step. Of task links it is by default
    0.5 with decoder dot where nodes have features, else 0. Where a model without typed edges is
    trained end to end for a numeric target of nodes with features, 0 takes the place of the default.
    """

    attention_dropout: float
    """Dropout probability of attention weights.

    Probability that an attention weight is left out of a step.
    """

    keep_last: bool
    """All layers, even if fewer validate better.

    Whether the model has all layers, even if it validates better without the last ones. Otherwise it
    ends with the layer that validates best.
    """

    threshold: str
    """Goal of the threshold of two, or of several classes.

    What the threshold between two classes is chosen for, on the validation nodes: f1,
    recall@precision=P or precision@recall=R, all of class 1, with P or R as the least that is
    accepted. Where nodes have several classes, each class has its own threshold, chosen in the same
    way. Empty: the more probable class is predicted, or each of several that is more probable than
    not.
    """

    balanced: bool
    """Equal weight of all classes.

    Whether a class is weighted by the inverse of its fraction of the training labels.
    """

    class_weights: list[float]
    """Weights of classes, CLASS=WEIGHT, or a file of them.

    What a training label of a class counts in the loss, as CLASS=WEIGHT; other classes count 1. Of
    nodes with several classes it is the weight of the class's own decision, which encoder classes
    does not read. On a command line it may be a file, of lines CLASS,WEIGHT.
    """

    inductive: bool
    """Training without validation and test nodes.

    Whether validation and test nodes, and their edges, are absent while the model trains.
    """

    neighbours: int
    """Sampled in-edges of a node; 0: all.

    In-edges of a node that a layer trains on, drawn anew in each round; 0: all are used. What is
    validated, and what the next layer reads, is computed from all.
    """

    pca_passes: int
    """Passes over the features that find components.

    Passes over the features in which encoder pca finds its components.
    """

    patience: int
    """Rounds without improvement that end a layer.

    Rounds without a better validation metric after which a layer, or training, ends; 0: never.
    """

    eval_every: int
    """Rounds from one validation to the next.

    Rounds from one validation to the next.
    """

    init: str
    """Model file from which training starts.

    SHA-256 of a model file from whose parameters training starts, in place of random ones; on a
    command line the file itself. Its layers, classes and columns must be those of the run, and every
    site needs the file. Encoder pca keeps its components. In mode retexo with layer_output hidden
    each layer but the last starts under a new head.
    """

    metric: Literal["accuracy", "micro-f1", "macro-f1", "auc", "ap", "rank-mae", "qwk", "r2", "mae", "rmse", "mrr", "hits@10"]
    """Validation metric.

    Metric by which the validation nodes choose the best model; empty: accuracy, or micro-f1 if a
    node may have several classes. Of classes in order it is rank-mae, by how many ranks a prediction
    is off, or qwk, the quadratic weighted kappa; the median of the probabilities is then predicted.
    Of a numeric target it is r2, mae or rmse; empty: r2. Of links it is mrr, hits@10 or auc; empty:
    mrr.
    """

    batch_size: int
    """Training labels of a step, of all peers.

    Training labels of a step, of all peers together; each peer computes those of its own nodes. With
    task links the links of a step, on average, each at both of its ends.
    """

    fanouts: list[int]
    """In-edges sampled of a node in each hop; -1: all.

    In-edges that are sampled of a node, hop by hop, the first from the training nodes; one number
    stands for all layers, -1 takes every edge. With typed edges it is the number for each relation.
    """

    sampler: Literal["neighbour", "labor"]
    """How batches are sampled.

    neighbour samples the in-edges of each node by itself. labor (LABOR-0) samples as many on
    average, by numbers that all nodes of a hop share, so that fewer distinct nodes are read.
    """

    round_steps: int
    """Steps of a round; 0: an epoch.

    Steps of a round; 0: an epoch. What counts rounds, as rounds, eval_every, patience and
    checkpoint_every, then counts these: on a large graph a run continues from within an epoch.
    Batches do not depend on it.
    """

    group: int
    """Batches sampled and fetched at once; 0: auto.

    Batches for which the peers sample, and fetch features, at once: a larger group takes fewer
    messages and more memory. 0: chosen by the latency that the peers measure, within memory. The
    model does not depend on it.
    """

    feature_cache: int
    """MiB of other peers' features to keep; 0: none.

    MiB of features of other peers' nodes that a peer keeps for the next batches. The model does not
    depend on it.
    """

    decoder: Literal["dot", "distmult", "mlp"]
    """How two rows make the score of a link.

    Score of a pair of nodes by their hidden rows: the inner product (dot), one with a learned weight
    for each column and relation (distmult), or a hidden layer over the products of the columns
    (mlp). All of them score a pair alike in both directions.
    """

    link_holdout: list[float]
    """Fractions of links for validation and test.

    Fractions of the links that validate and test: no message runs along them, in either direction.
    """

    link_time: str
    """Split of links by time, COLUMN:T1:T2; empty: drawn.

    Split of links by time, in place of link_holdout: COLUMN:T1:T2, where COLUMN is a column of the
    edges that holds numbers or dates (its number from 0 where a data set has no names of columns).
    Links before T1 train, those before T2 validate, the others test; links without a time train.
    """

    negatives: int
    """Pairs drawn for each link of a step.

    Pairs drawn for each training link at every epoch, which are taken for no links: its own end with
    another node of the other end's type that it is not linked with.
    """

    negatives_from: Literal["all", "near"]
    """Nodes that pairs are drawn from: all, or near.

    Where drawn pairs come from, in mode retexo near: all nodes, so that any number of peers trains
    the same model and the hidden row of every node may travel to every peer; or near ones, a peer's
    own nodes and its halo, so that only rows travel that travel anyway.
    """

    class_rounds: int
    """Rounds of class means at most; 0: auto.

    Rounds of class means, at most; the best by validation is the model. 0: 3, or 4 with class_target
    residual; with epsilon 4, and one for each hop.
    """

    class_target: Literal["auto", "labels", "residual"]
    """What a round after the first learns from.

    What a round after the first learns from: labels takes the class means of soft labels, residual
    what the logits so far leave of the training labels. auto: residual if a fifth of all nodes is in
    training, or a node may have several classes.
    """

    leave_one_out: Literal["auto", "true", "false"]
    """Own part of the means left out of a row.

    Whether a node's own part is taken out of the means that its row is compared with. Rows that
    travel would tell the class of a training node otherwise. auto: true with class_target labels.
    """

    hops_kept: Literal["auto", "last", "all"]
    """Hops whose aggregates are read.

    Which aggregates the closed form reads: those of the last hop, or of all hops. auto: all with
    class_target residual.
    """

    random_features: int
    """Random Fourier features of a round; -1: auto.

    Random Fourier features that each round adds; nothing travels for them but their part of the sums
    of the closed form. At most 32 for each column that the round reads. -1: 256 with class_target
    residual, else 0.
    """

    shrink: float
    """Shrinkage of the features' variances.

    What is added to the variance of each feature, in units of their mean, before class means are
    divided by it.
    """

    coarse_rows: bool
    """Coarser rows of nodes with few values.

    Whether rows of nodes with few values other than 0 are rounded more coarsely, so that a row tells
    at most half of what it takes to name the columns of these values. It applies to sparse features.
    Where no edge connects the sites, no row crosses, and none is rounded.
    """

    rounds_alone: int
    """First rounds in which no row crosses; -1: auto.

    First rounds of class means that use each node's own features only: no row crosses in them, so
    that what other sites receive tells less of features. class_rounds is then one more, unless it is
    given. -1: 2 of 6 with class_target residual of classes and more than 64 features, else 0. After
    them logits alone cross with residuals, and no columns.
    """

    withhold_few: bool
    """No rows of nodes with at most five values.

    Whether rows of nodes with at most five values other than 0 are withheld: zeros are sent in their
    place. Preset auto sets it in all plans but its usual one and, of more than 64 features, plan
    residual. Where edges connect the sites, only one of these two sends rows: rows of several runs
    together could give such a node back.
    """

    min_class: int
    """Fewest training nodes of a class with a mean.

    Training nodes, of all sites together, below which a class sends no mean in the first round.
    """

    epsilon: float
    """Privacy of edges: epsilon of the run; 0: none.

    Differential privacy of edges: nobody who sees what leaves a site, or the model, can tell an
    edge's presence better than this ε says, at the delta of the run. Each node's sum of its
    neighbours' rows then has noise, in hops rounds of their own, and nothing else is learned from
    edges. The preset is frugal unless another one is given. 0: no noise.
    """

    delta: float
    """Delta of epsilon.

    Probability with which the guarantee of epsilon may fail; choose it well below one over the
    number of edges.
    """

    rows: Literal["float32", "bf16", "int8", "int4"]
    """Number format of rows on the network.

    Number format of neighbours' rows on the network: float32 is exact; int8 and int4 share a scale
    per row or column. With epsilon rows are whole numbers, sent as float32.
    """

    compress: Literal["none", "zstd"]
    """Compression of rows on the network.

    Compression of neighbours' rows on the network.
    """

    exchange: Literal["halo", "cover", "auto"]
    """Rows, or the fewest rows and partial sums.

    What travels where a layer sums rows: all rows (halo), the fewest rows and partial sums (cover),
    or whichever takes fewer bytes (auto).
    """

    sums: Literal["auto", "float32", "int16", "int8"]
    """Number format of the encoder's sums.

    Number format of the parts of sums that find the encoder: float32, or integers of 16 or 8 bits on
    a grid that the peers agree on first. int8 is made for up to 8 peers and takes up to 63. auto is
    int8 for up to 8 peers with encoder classes, else int16. Sums over each class are int16 from
    5,000 training labels on, if the target is soft labels.
    """

    updates: Literal["auto", "float32", "int16", "int8", "int4"]
    """Number format of a round's updates.

    Number format of each peer's part of a round's sum: float32, or integers of 16, 8 or 4 bits on a
    grid that the peers agree on first. What rounding leaves out of a part, a peer adds to its next
    one (error feedback; Karimireddy et al., ICML 2019). int8 is made for up to 8 peers and takes up
    to 63; int4 takes up to 7. auto is int8 for up to 8 peers, else int16.
    """

    secure_sums: Literal["auto", "on", "off"]
    """Sums whose parts nobody sees, of 3 to 64 peers.

    Whether sums over the peers are secure: each pair of peers hides its parts by masks that cancel
    in the sum, so that nobody sees the part of a single peer. auto is on with 3 peers or more; with
    two, each peer sees the other's part of every sum in any case. Secure sums take at most 64 peers.
    Keys rest on X25519 and ML-KEM-768.
    """

    fetch: Literal["sar", "sa", "oneshot", "auto"]
    """Fetching of other peers' rows.

    How neighbours' rows are fetched: sar drops them and fetches them again for the gradient, sa
    keeps them, oneshot fetches all at once, auto keeps what fits in memory.
    """

    boundary: str
    """Rows of others in a step: exact, sample:P or none.

    Which rows of other peers a step reads: all (exact), a fraction P sampled at every step
    (sample:P), or none.
    """

    order: Literal["any", "fixed"]
    """Order of summation.

    Order in which rows are summed: fixed yields the same bits in every run.
    """

    prefetch: int
    """Peers whose rows are fetched ahead.

    Number of peers whose rows are fetched while rows of others are summed.
    """

    memory: int
    """MiB of rows to hold in memory; 0: no limit.

    MiB of rows that a peer keeps although it could fetch them again; 0: no limit. Of mode minibatch:
    those of two groups of batches where group is 0; 0: 1024.
    """

    peers: int
    """Number of peers; -1: as data and mode say.

    Number of peers; -1: 1 in mode standalone, the number of the parts of a partition on disk, the
    number of sites where the graph has a site column and policy is auto or by-column, else 4.
    """

    policy: str
    """Partitioning policy.

    Which peer owns which node: random, contiguous, contiguous-edges, hash, by-column, ldg, fennel,
    restream:N or multilevel. auto is by-column where the graph has a site column of 2 to 64 sites
    and peers is -1 or as many, else random; in modes fullbatch and minibatch else multilevel, or
    restream:5 beyond 20 million stored edges.
    """

    transport: Literal["libp2p", "memory"]
    """Connections of the peers.

    How the peers of one process are connected: over loopback (libp2p) or in memory.
    """

    carrier: Literal["quic", "tcp", "noise", "ws", "auto"]
    """Transport protocol.

    Protocol of the connections: noise is TCP without TLS, ws is WebSocket, auto takes the fastest
    for each pair.
    """

    link: str
    """Simulated slower network, as latency=50ms,rate=5Mbit.

    Slower network to simulate, as "latency=50ms,rate=5Mbit,loss=1%". Pairs of peers may have values
    of their own, as "rate=5Mbit; 0-2: latency=150ms".
    """

    checkpoint_every: int
    """Rounds between two checkpoints.

    Rounds between two checkpoints; 0: only at the end of each layer.
    """
