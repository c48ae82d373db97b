"""Settings of a run. Generated: HEDDLE_WRITE=1 go test -run TestSettingsPage ./plan"""

from __future__ import annotations

from typing import Literal, TypedDict


class Settings(TypedDict, total=False):
    """Settings of `train` and `compare`; one that is not given has its default.

    Attributes:
        method: Way to train.
        seed: Random seed.
        task: What is predicted (auto, classification, regression, links).
        row_norm: Norm that divides each node's features.
        positive: Positive class of two (default: the rarer).
        threshold: Objective for choosing the decision threshold.
        class_weights: Weights of classes, CLASS=WEIGHT or balanced.
        inductive: Train without validation and test nodes.
        metric: Validation metric.
        figures_by: Column that groups test nodes.
        hops: Aggregations of the features.
        epsilon: Differential privacy of edges (0 = none).
        delta: Probability that the guarantee of epsilon fails.
        min_class: Fewest training nodes of a class that sends a mean.
        secure_sums: Secure aggregation, of 3 to 64 peers.
        rows: Number format of rows that are sent.
        peers: Number of sites (default: as in the data, else 4).
        policy: Which site gets which node, as random or by-column.
        carrier: Transport protocol.
        link: Simulated slower network, as latency=50ms,rate=5Mbit.
        encoder: Encoding of a node's features.
        layer_output: What a layer passes to the next.
        model: Graph convolution.
        layers: Number of graph layers.
        hidden: Width of hidden rows.
        heads: Number of attention heads.
        residual: Add a layer's input to its output.
        init: Model file from which training starts.
        decoder: How two rows give the score of a link.
        link_holdout: Fractions of links for validation and test.
        link_time: Split of links by time, COLUMN:T1:T2.
        rounds: Most rounds of a layer, or epochs.
        lr: Learning rate.
        decay: Weight decay.
        schedule: Schedule of the learning rate.
        dropout: Dropout probability.
        patience: Rounds without improvement that end a layer (0 = never).
        checkpoint_every: Rounds between two checkpoints.
        local_steps: Optimizer steps between two sums.
        updates: Number format of a round's updates.
        label_inputs: Fraction of training labels that are input.
        correct_smooth: Steps of Correct & Smooth after training (0 = none).
        norm: Normalization after hidden layers.
        memory: Most memory for kept rows, as 4GiB (0 = no limit).
        prefetch: Peers whose rows are fetched ahead.
        batch_size: Training labels of a step, of all peers.
        fanouts: Sampled in-edges of a node in each hop (-1 = all).
        sampler: How batches are sampled.
        feature_cache: Memory for other peers' features, as 64MiB (0 = none).
    """

    method: Literal["class-means", "full-batch", "layer-wise", "mini-batch"]
    """Way to train.

    How the model is trained. class-means solves a closed form, layer-wise trains layer after layer,
    full-batch all layers at once, mini-batch on sampled batches. The last two are for the machines
    of one owner: they send boundary rows in every epoch.
    """

    seed: int
    """Random seed.

    Every random choice follows from the seed, except the noise of epsilon.
    """

    task: str
    """What is predicted (auto, classification, regression, links).

    What is predicted: the labels of nodes, or links, which are edges that the graph may lack. auto
    takes the labels of the data set; classification makes its numbers classes, regression makes them
    targets. links:RELATION,… predicts only these relations, each as NAME with the reverse "NAME
    (inverse)", or as NAME=REVERSE. For links the default method is layer-wise.
    """

    row_norm: Literal["auto", "l1", "l2", "none"]
    """Norm that divides each node's features.

    Norm that divides each node's features before training. l1 is the sum of absolute values, l2 the
    Euclidean length. With auto, class-means takes l2, or with up to 64 columns the norm that
    validates better. Other methods take l2 for more than 64 columns without a value below 0. Most
    nodes must then have two or more values other than 0, in at most half of the columns. Otherwise,
    and for a numeric target, auto is none. With init it is the model file's.
    """

    positive: str
    """Positive class of two (default: the rarer).

    The class of two that average precision, the threshold and all other figures of one class are of.
    """

    threshold: str
    """Objective for choosing the decision threshold.

    What the threshold between two classes is chosen for, on the validation nodes. f1,
    recall@precision=P or precision@recall=R of the positive class, with at least P or R. If nodes
    have several classes, each class has its own threshold. By default a class is predicted if it is
    the most probable or, of several, more probable than not.
    """

    class_weights: list[float]
    """Weights of classes, CLASS=WEIGHT or balanced.

    What a training label of a class counts in the loss, as CLASS=WEIGHT. balanced weights each class
    by the inverse of its fraction of the training labels. Other classes count 1. If nodes have
    several classes, the weight is of the class's own decision, and class-means takes none. On a
    command line it may be a file of lines CLASS,WEIGHT.
    """

    inductive: bool
    """Train without validation and test nodes.

    Whether validation and test nodes, and their edges, are absent while the model trains.
    """

    metric: Literal["accuracy", "ap", "auc", "hits@10", "macro-f1", "mae", "micro-f1", "mrr", "qwk", "r2", "rank-mae", "rmse"]
    """Validation metric.

    Metric with which the validation nodes choose the best model. The default is accuracy, or
    micro-f1 if a node may have several classes. It is auc if the rarer of two classes has under a
    quarter of the training labels, without phones. Classes in order may have rank-mae, the mean
    error in ranks, or qwk, the quadratic weighted kappa; both predict the median. Numeric targets
    take r2 (default), mae or rmse, links mrr (default), hits@10 or auc.
    """

    figures_by: str
    """Column that groups test nodes.

    Column by whose values the test nodes of all sites are also counted, as ward, or age:40,65 with
    the cuts of numbers or ages. Values that fewer than 10 test nodes of a site have, or fewer than 3
    sites, are counted together.
    """

    hops: int
    """Aggregations of the features.

    With class-means: Aggregations of the features. 0 uses only each node's own features and sends no
    row. With epsilon or phones the default is 2. With layer-wise: Aggregations before each layer.
    With appnp and sign it is the total.
    """

    epsilon: float
    """Differential privacy of edges (0 = none).

    Differential privacy of edges (0 = no noise). Nobody who sees what leaves a site, or the model,
    can detect an edge better than this ε and delta allow (docs/explanation/private-edges.md).
    """

    delta: float
    """Probability that the guarantee of epsilon fails.

    Probability with which the guarantee of epsilon may fail. Choose it well below one over the
    number of edges.
    """

    min_class: int
    """Fewest training nodes of a class that sends a mean.

    Training nodes, of all sites together, below which a class sends no mean in the first round.
    """

    secure_sums: Literal["auto", "off", "on"]
    """Secure aggregation, of 3 to 64 peers.

    Whether sums over the peers are secure. auto is on from 3 peers; more than 64 peers need off.
    With two, each peer sees the other's part in any case.
    """

    rows: Literal["bf16", "float32", "int4", "int8"]
    """Number format of rows that are sent.

    Number format of neighbors' rows on the network. float32 is exact; int8 and int4 share a scale
    per row or column. With epsilon rows are whole numbers, sent as float32. With mini-batch, bf16
    also rounds the factors of dense products in training, which is faster on processors with AMX.
    """

    peers: int
    """Number of sites (default: as in the data, else 4).

    Number of peers.
    """

    policy: str
    """Which site gets which node, as random or by-column.

    Which peer owns which node. random, contiguous, by-column, fennel, restream:N or multilevel. auto
    is by-column if the graph has a site column of 2 to 64 sites and peers is -1 or as many.
    Otherwise it is random; with full-batch and mini-batch it is multilevel, or restream:5 beyond 20
    million stored edges.
    """

    carrier: Literal["auto", "noise", "quic", "tcp", "ws"]
    """Transport protocol.

    Protocol of the connections. noise is TCP without TLS, ws is WebSocket. auto takes the fastest
    for each pair of peers.
    """

    link: str
    """Simulated slower network, as latency=50ms,rate=5Mbit.

    Slower network to simulate, as "latency=50ms,rate=5Mbit,loss=1%". Pairs of peers may differ, as
    "rate=5Mbit; 0-2: latency=150ms".
    """

    encoder: str
    """Encoding of a node's features.

    With layer-wise: Encoding of a node's own features before rows are sent. raw takes features as
    they are. pca:K takes their K leading components; these rows reveal features, and the log warns.
    K is at most half the columns, and the default keeps fewer if there are fewer. +classes adds the
    logits of three rounds of class means, if each node has one of at most 50 classes and inductive
    is false. mlp is a hidden layer that is trained first. With full-batch: Encoding of a node's own
    features. raw takes features as they are. embedding:K maps them to K columns; each node without
    features has a row of K numbers that only its peer learns and keeps. A node that comes later has
    the bias of the map instead.
    """

    layer_output: Literal["hidden", "logits"]
    """What a layer passes to the next.

    What a layer passes to the next one: its hidden rows, or its own head's class logits.
    """

    model: Literal["appnp", "gat", "gatv2", "gcn", "gin", "gine", "mlp", "rgat", "rgcn", "rsage", "sage", "sage-pool", "sage-sum", "sign"]
    """Graph convolution.

    The graph convolution. rgcn, rsage and rgat read typed edges. gine and gatv2 read columns of
    edges.
    """

    layers: int
    """Number of graph layers.

    Number of graph layers. With full-batch and mini-batch a linear layer follows them for a numeric
    target, except with appnp, sign and mlp.
    """

    hidden: int
    """Width of hidden rows.

    Width of the hidden rows. With attention it is the width of all heads together. For nodes without
    features rgcn and rsage have other defaults: hidden 16, rounds 50, lr 0.01, decay 0.0005, dropout
    0, and eval_every 50, so that the last epoch counts.
    """

    heads: int
    """Number of attention heads.

    Number of attention heads.
    """

    residual: bool
    """Add a layer's input to its output.

    Whether a layer's input is added to its output.
    """

    init: str
    """Model file from which training starts.

    Model file from whose parameters training starts, instead of random ones. A plan has its SHA-256;
    a command line names the file itself. Every site needs the file, and its layers, classes and
    columns must be the run's. A state dict of PyG layers, as safetensors, needs encoder raw. Encoder
    pca keeps its components. With layer-wise and layer_output hidden each layer but the last starts
    under a new head.
    """

    decoder: Literal["distmult", "dot", "mlp"]
    """How two rows give the score of a link.

    Score of a pair of nodes by their hidden rows. dot is the inner product, distmult one with a
    learned weight for each column and relation, mlp a hidden layer over the products of the columns.
    All score a pair alike in both directions.
    """

    link_holdout: list[float]
    """Fractions of links for validation and test.

    Fractions of the links that validate and test. No message runs along these links, in either
    direction.
    """

    link_time: str
    """Split of links by time, COLUMN:T1:T2.

    Split of links by time, COLUMN:T1:T2, instead of link_holdout. COLUMN is a column of the edges
    with numbers or dates, or its number from 0 if columns have no names. Links before T1 or without
    a time train, links before T2 validate, later ones test.
    """

    rounds: int
    """Most rounds of a layer, or epochs.

    Maximum number of rounds of a layer; with full-batch and mini-batch, of epochs.
    """

    lr: float
    """Learning rate.

    Learning rate before the schedule.
    """

    decay: float
    """Weight decay.

    Weight decay. The default is 0.005 if full-batch or mini-batch learns a numeric target of nodes
    with features, by a model without typed edges. It is 0 if layers see columns of classes (encoder
    pca:K+classes) and nodes of all peers have 5,000 training labels or more.
    """

    schedule: Literal["constant", "cosine", "linear"]
    """Schedule of the learning rate.

    How the learning rate falls over the steps.
    """

    dropout: float
    """Dropout probability.

    Probability that a value of a layer's input is left out of a step. For links the default is 0.5
    with decoder dot if nodes have features, else 0. It is 0 if full-batch or mini-batch learns a
    numeric target of nodes with features, by a model without typed edges.
    """

    patience: int
    """Rounds without improvement that end a layer (0 = never).

    Rounds without a better validation metric after which a layer, or the training, ends (0 = never).
    """

    checkpoint_every: int
    """Rounds between two checkpoints.

    Rounds between two checkpoints. 0 writes one only at the end of each layer.
    """

    local_steps: int
    """Optimizer steps between two sums.

    Optimizer steps between two sums. 1 gives the model of training on pooled data.
    """

    updates: Literal["auto", "float32", "int16", "int4", "int8"]
    """Number format of a round's updates.

    Number format of each peer's part of a round's sum. Integers are on a grid that the peers agree
    on first. int8 is made for up to 8 peers and takes up to 63; int4 takes up to 7. auto is int8 for
    up to 8 peers, else int16.
    """

    label_inputs: float
    """Fraction of training labels that are input.

    Fraction of the training labels that a step takes as input instead of learning from them; 0:
    labels are not an input.
    """

    correct_smooth: int
    """Steps of Correct & Smooth after training (0 = none).

    Steps in which the training labels correct and smooth the logits of the trained model, by the
    method Correct & Smooth (0 = none).
    """

    norm: Literal["batch", "layer", "none"]
    """Normalization after hidden layers.

    Normalization after each layer but the last. layer is by row, batch by column over all nodes.
    """

    memory: int
    """Most memory for kept rows, as 4GiB (0 = no limit).

    Rows that a peer keeps although it could fetch them again. A number without a unit is in MiB.
    With mini-batch it limits two groups of batches, if group is 0; 0 then means 1024.
    """

    prefetch: int
    """Peers whose rows are fetched ahead.

    Number of peers whose rows are fetched while rows of others are summed.
    """

    batch_size: int
    """Training labels of a step, of all peers.

    Training labels of a step, of all peers together. For links it is the mean number of links of a
    step.
    """

    fanouts: list[int]
    """Sampled in-edges of a node in each hop (-1 = all).

    In-edges that are sampled of a node, hop by hop, the first from the training nodes. One number
    serves all layers. With typed edges it is the number for each relation.
    """

    sampler: Literal["labor", "neighbour"]
    """How batches are sampled.

    How the neighbours of a batch are sampled. neighbour samples the in-edges of each node
    separately, labor (LABOR-0) by numbers that all nodes of a hop share: fewer distinct nodes are
    then read.
    """

    feature_cache: int
    """Memory for other peers' features, as 64MiB (0 = none).

    Features of other peers' nodes that a peer keeps for the next batches. A number without a unit is
    in MiB.
    """
