"""Settings of a run. Generated: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan"""

from __future__ import annotations

from typing import Literal, TypedDict


class Settings(TypedDict, total=False):
    """Settings of `train` and `compare`; one that is not given has its default."""

    method: Literal["class-means", "full-batch", "layer-wise", "mini-batch"]
    """Way to train.

    How the model is trained. class-means sends a few sums and one short row of each boundary node,
    and solves the model in closed form. layer-wise trains one layer after the other and sends
    boundary rows once a layer. full-batch trains all layers at once, with the same result for any
    number of peers. mini-batch trains on sampled batches. The last two are for the machines of one
    owner: boundary rows are sent in every epoch.
    """

    seed: int
    """Random seed.

    Every random choice follows from the seed, except the noise of epsilon.
    """

    task: str
    """Auto, classification, regression, links[:RELATION,…].

    What is predicted: the labels of nodes, or links, which are edges that the graph may lack. With
    auto, labels are what the data set has; classification makes its numbers classes, regression
    makes them targets. links:RELATION,… predicts only those relations, each as NAME, where
    relation "NAME (inverse)" runs the other way, or as NAME=REVERSE. Edges that are held out are
    taken out of the reverse as well. Without a method, links are learned by layer-wise.
    """

    row_norm: Literal["auto", "l1", "l2", "none"]
    """Norm that divides each node's features.

    Norm by which each node's features are divided before training: l1 is the sum of their absolute
    values, l2 their Euclidean length. auto: l2, but none for a numeric target, about which sizes say
    much. With class-means of up to 64 columns it is what validates better of the two. With the other
    methods it is l2 only with more than 64 columns, if no value of any site is below 0 and most
    nodes have two or more other than 0, in at most half of the columns (a sum over the sites counts
    them); with init it is that of the model file.
    """

    positive: str
    """Class of two that figures are of (default: the rarer).

    The class of two that average precision, the threshold and all other figures of one class are of.
    Empty: the class that fewer training nodes of all sites have, or the second one if both have as
    many.
    """

    threshold: str
    """Goal of the threshold of two, or of several classes.

    What the threshold between two classes is chosen for, on the validation nodes: f1,
    recall@precision=P or precision@recall=R, all of the positive class, with P or R as the least
    that is accepted. Where nodes have several classes, each class has its own threshold, chosen in
    the same way. Empty: the more probable class is predicted, or each of several that is more
    probable than not.
    """

    class_weights: list[float]
    """Balanced, or weights of classes, CLASS=WEIGHT.

    What a training label of a class counts in the loss, as CLASS=WEIGHT; other classes count 1.
    balanced weights each class by the inverse of its fraction of the training labels. If nodes have
    several classes it is the weight of the class's own decision, and class-means takes none. On a
    command line it may be a file of lines CLASS,WEIGHT.
    """

    inductive: bool
    """Training without validation and test nodes.

    Whether validation and test nodes, and their edges, are absent while the model trains.
    """

    metric: Literal["accuracy", "ap", "auc", "hits@10", "macro-f1", "mae", "micro-f1", "mrr", "qwk", "r2", "rank-mae", "rmse"]
    """Validation metric.

    Metric by which the validation nodes choose the best model. Empty: accuracy, or micro-f1 if a
    node may have several classes, or auc if the rarer of two classes has under a quarter of the
    training labels. With phones it is then accuracy. An AUC is undefined, and chooses nothing, if
    the validation nodes have one class only: the plan then ends as it does without validation nodes.
    Of classes in order it is rank-mae, by how many ranks a prediction is off, or qwk, the quadratic
    weighted kappa; the median of the probabilities is then predicted. Of a numeric target it is r2,
    mae or rmse; empty: r2. Of links it is mrr, hits@10 or auc; empty: mrr.
    """

    hops: int
    """Aggregations of the features.

    With class-means: Aggregations of the features. 0 uses each node's own features only, and no row
    is sent. With epsilon or phones the default is 2. With layer-wise: Aggregations before a layer;
    with appnp and sign, in total.
    """

    epsilon: float
    """Privacy of edges: epsilon of the run; 0: none.

    Differential privacy of edges: nobody who sees what leaves a site, or the model, can tell an
    edge's presence better than this ε says, at the delta of the run. Each node's sum of its
    neighbours' rows then has noise, in hops rounds of their own, and nothing else is learned from
    edges. 0: no noise.
    """

    delta: float
    """Delta of epsilon.

    Probability with which the guarantee of epsilon may fail; choose it well below one over the
    number of edges.
    """

    min_class: int
    """Fewest training nodes of a class with a mean.

    Training nodes, of all sites together, below which a class sends no mean in the first round.
    """

    secure_sums: Literal["auto", "off", "on"]
    """Sums whose parts nobody sees, of 3 to 64 peers.

    Whether sums over the peers are secure: each pair of peers hides its parts by masks that cancel
    in the sum, so that nobody sees the part of a single peer. auto is on with 3 peers or more; with
    two, each peer sees the other's part of every sum in any case. Secure sums take at most 64 peers.
    Keys rest on X25519 and ML-KEM-768.
    """

    rows: Literal["bf16", "float32", "int4", "int8"]
    """Number format of rows on the network.

    Number format of neighbours' rows on the network: float32 is exact; int8 and int4 share a scale
    per row or column. With epsilon rows are whole numbers, sent as float32.
    """

    peers: int
    """Number of peers (-1 = as the data have it).

    Number of peers. -1 takes the number of parts of a partition on disk; or the number of sites, if
    the graph has a site column and policy is auto or by-column; or 4.
    """

    policy: str
    """Partitioning policy.

    Which peer owns which node: random, contiguous, by-column, fennel, restream:N or multilevel. auto
    is by-column if the graph has a site column of 2 to 64 sites and peers is -1 or as many.
    Otherwise it is random, or with full-batch and mini-batch multilevel, or restream:5 beyond 20
    million stored edges.
    """

    carrier: Literal["auto", "noise", "quic", "tcp", "ws"]
    """Transport protocol.

    Protocol of the connections: noise is TCP without TLS, ws is WebSocket, auto takes the fastest
    for each pair.
    """

    link: str
    """Simulated slower network, as latency=50ms,rate=5Mbit.

    Slower network to simulate, as "latency=50ms,rate=5Mbit,loss=1%". Pairs of peers may have values
    of their own, as "rate=5Mbit; 0-2: latency=150ms".
    """

    encoder: str
    """Encoding of a node's features.

    With layer-wise: Encoding of a node's own features before rows are sent: raw (as they are), pca:K
    (their K leading components; rows of components reveal features, and the log warns; K at most
    half the columns, and the default keeps fewer where there are fewer), pca:K+classes (also the
    logits that three rounds of class means give, if each node has one of at most 50 classes and
    inductive is false) or mlp (a hidden layer that is trained first). With full-batch: Encoding of a
    node's own features: raw (as they are) or embedding:K, which maps features to K columns, and each
    node without features has a row of K numbers that only its peer learns and keeps; a node that
    comes later has the bias of the map instead.
    """

    layer_output: Literal["hidden", "logits"]
    """What a layer passes to the next.

    What a layer passes to the next one: its hidden rows, or the class logits of a head of its own.
    """

    model: Literal["appnp", "gat", "gatv2", "gcn", "gin", "gine", "mlp", "rgat", "rgcn", "rsage", "sage", "sage-pool", "sign"]
    """Graph convolution.

    The graph convolution. rgcn, rsage and rgat read typed edges, gine and gatv2 columns of edges.
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

    heads: int
    """Number of attention heads.

    Number of attention heads.
    """

    residual: bool
    """Residual connections.

    Whether a layer's input is added to its output.
    """

    init: str
    """Model file from which training starts.

    SHA-256 of a model file from whose parameters training starts, in place of random ones; on a
    command line the file itself. Its layers, classes and columns must be those of the run, and every
    site needs the file. Encoder pca keeps its components. With layer-wise and layer_output hidden
    each layer but the last starts under a new head.
    """

    decoder: Literal["distmult", "dot", "mlp"]
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

    solver: Literal["adam", "adamw", "sgd"]
    """Optimiser.

    Optimiser.
    """

    rounds: int
    """Rounds of a layer, or epochs, at most.

    Maximum number of rounds of a layer; with full-batch and mini-batch, of epochs.
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

    schedule: Literal["constant", "cosine", "linear"]
    """Schedule of the learning rate.

    How the learning rate falls over the steps.
    """

    dropout: float
    """Dropout probability.

    Probability that a value of a layer's input is left out of a step. Of task links it is by default
    0.5 with decoder dot where nodes have features, else 0. Where a model without typed edges is
    trained end to end for a numeric target of nodes with features, 0 takes the place of the default.
    """

    patience: int
    """Rounds without improvement that end a layer.

    Rounds without a better validation metric after which a layer, or training, ends; 0: never.
    """

    checkpoint_every: int
    """Rounds between two checkpoints.

    Rounds between two checkpoints; 0: only at the end of each layer.
    """

    local_steps: int
    """Optimiser steps between two reductions.

    Optimiser steps between two reductions; 1 yields the model of training on pooled data.
    """

    updates: Literal["auto", "float32", "int16", "int4", "int8"]
    """Number format of a round's updates.

    Number format of each peer's part of a round's sum: float32, or integers of 16, 8 or 4 bits on a
    grid that the peers agree on first. What rounding leaves out of a part, a peer adds to its next
    one (error feedback; Karimireddy et al., ICML 2019). int8 is made for up to 8 peers and takes up
    to 63; int4 takes up to 7. auto is int8 for up to 8 peers, else int16.
    """

    label_inputs: float
    """Fraction of training labels that are input.

    Fraction of the training labels that a step takes as input instead of learning from them; 0:
    labels are not an input.
    """

    correct_smooth: int
    """Steps of Correct & Smooth after training.

    Steps in which the training labels correct and smooth the logits of the trained model (Correct &
    Smooth); 0: none.
    """

    norm: Literal["batch", "layer", "none"]
    """Normalisation after hidden layers.

    Normalisation after each layer but the last: of each row (layer), or over all nodes (batch).
    """

    memory: int
    """Rows to hold in memory, as 4GiB (0 = no limit).

    Rows that a peer keeps although it could fetch them again: a size, as 4GiB, or a number of MiB (0
    = no limit). With mini-batch: those of two groups of batches where group is 0; 0: 1024.
    """

    prefetch: int
    """Peers whose rows are fetched ahead.

    Number of peers whose rows are fetched while rows of others are summed.
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

    sampler: Literal["labor", "neighbour"]
    """How batches are sampled.

    neighbour samples the in-edges of each node by itself. labor (LABOR-0) samples as many on
    average, by numbers that all nodes of a hop share, so that fewer distinct nodes are read.
    """

    feature_cache: int
    """Other peers' features to keep, as 64MiB (0 = none).

    Features of other peers' nodes that a peer keeps for the next batches: a size, as 64MiB, or a
    number of MiB. The model does not depend on it.
    """
