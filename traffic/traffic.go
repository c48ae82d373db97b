// Package traffic lists what the peers of a run send one another, before the run, from its configuration alone: how many
// numbers of what, how often and in what format, and how many bytes at most.
//
// Letters in comments: F features, C classes, K components, P peers.
package traffic

import (
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Kind is what the numbers of a message are of.
type Kind string

const (
	Rows   Kind = "rows"   // of a node, to each peer with an edge from it
	Errors Kind = "errors" // gradients of another peer's rows, back to it
	Sums   Kind = "sums"   // a peer's part of a sum over all peers
)

// Message is what each peer of a run sends of one kind.
type Message struct {
	What    string
	Kind    Kind
	Times   int64
	Numbers int64  // each time: of a node, or of the peer's part of a sum
	Counts  int64  // whole numbers beside those of a part
	Format  string // of the numbers: float32, bf16, int8, int4, int16
	Fresh   bool   // of rows: not merely sums over neighbours of numbers that are sent as well

	most    int64 // rows that the peers read at most, all of them together, each time; 0: all that they read
	payload int64 // bytes of a row, or of a part
	head    int64 // bytes to each other peer beside them, each time
}

// List is all that the peers of a run send, in order, where no patience ends a stage early and no peer fails. Times of
// equal messages are added up.
type List []Message

const (
	// framesOfSum is the most frames that a reduction sends from one peer to another: meta, floats and counts to their
	// owner, and the sums of both.
	framesOfSum = 5
	// statement is the meta of a reduction of layer-wise training (wire.md), and greeting what a peer greets another with
	// and the rest that is sent once a run, at most.
	statement, greeting = 9, 4096
	// oversample is how many directions more than its components encoder pca sums (linear.Components).
	oversample = 8
	// keysOfSums is what a peer sends to another to agree on the keys of secure sums at most, and gridBytes
	// the bytes of a step's sum (package secagg).
	keysOfSums, gridBytes = 2700, 32
)

// Members are the peers of a run.
type Members struct {
	Peers  int
	Nodes  int64 // of the whole graph
	Train  int64 // of them, those that may be training nodes; of task links, links that train, each at both ends
	Secure bool  // their sums are (package secagg)
	Cuts   bool  // thresholds are chosen by the validation nodes
	Norm   bool  // features of all sites decide how they are divided
	Types  int   // of nodes, where a model of links is asked; 0: they have none
}

// sending is a list that is being made.
type sending struct {
	List
	Members
}

func begin(m Members) *sending {
	l := &sending{Members: m}
	if m.Secure {
		l.add(Message{What: "keys of secure sums", Kind: Sums, Times: 1, head: keysOfSums})
	}
	if m.Norm {
		l.counts("nodes with values below 0, and with few values", 1, 2, 0)
	}
	return l
}

// add appends m, or adds its times to those of an equal message.
func (l *List) add(m Message) {
	for k, held := range *l {
		held.Times = m.Times
		if held == m {
			(*l)[k].Times += m.Times
			return
		}
	}
	*l = append(*l, m)
}

// sum adds so many reductions, each of so many float32 and whole numbers of 8 bytes.
func (l *sending) sum(what string, times, floats, counts int64) {
	m := Message{What: what, Kind: Sums, Times: times, Numbers: floats, Counts: counts, Format: "float32", payload: 4*floats + 8*counts,
		head: framesOfSum*comm.HeaderLen + statement}
	if floats == 0 {
		m.Format = "int64"
	} else if l.Secure { // in 64 bits, after a sum that finds the grid
		l.grid(times, 1)
		m.Format, m.payload = "int64", 8*(floats+counts)
	}
	l.add(m)
}

// counts adds so many reductions of whole numbers up to that of the nodes, but for so many wide ones (comm.CountBits).
func (l *sending) counts(what string, times, counts, wide int64) {
	bits := comm.CountBits(l.Nodes)
	l.add(Message{What: what, Kind: Sums, Times: times, Counts: counts, Format: map[int]string{0: "int64", 16: "uint16", 32: "uint32"}[bits],
		payload: comm.CountBytes(counts, wide, bits, l.Peers), head: framesOfSum*comm.HeaderLen + statement})
}

// labels adds the sums that count labels, or the moments of numbers.
func (l *sending) labels(k target.Kind, classes int) {
	what := "label counts"
	if k == target.Numbers {
		what = "label counts, and sums and squares of targets"
	}
	l.counts(what, 1, int64(train.LabelsLen(k, classes)), int64(train.LabelReals(k, classes)))
}

// figures adds the sums that measure the final model.
func (l *sending) figures(k target.Kind, classes int) {
	var goal eval.Goal
	if l.Cuts {
		goal.Best = "f1" // sums are the same for all goals
	}
	parts, wide := figures.Numbers(k, classes, goal)
	first, last := "label counts, bytes sent", "confusion, ranking and reliability of validation and test nodes"
	if k == target.Numbers {
		first, last = "label counts, sums and squares of targets, bytes sent", "sums of errors of validation and test nodes, and of their squares"
	}
	for k, what := range []string{first, "log-likelihoods of validation nodes", last} {
		l.counts(what, 1, parts[k], wide[k])
	}
	l.add(Message{What: "figures of single sites", Kind: Sums, Times: 1, head: comm.HeaderLen + figures.PublishedBytes}) // if any tells them
}

// parts adds so many reductions of numbers in columns, or parts, that have a grid each, in the format of
// retexo.Config.Sums, or int4.
func (l *sending) parts(what string, times, numbers, columns int64, format string) {
	exact := format == "" || format == "float32"
	switch {
	case exact && !l.Secure:
		l.sum(what, times, numbers, 0)
		return
	case exact:
		format = "int32"
	case format == "auto":
		format = "int16"
	}
	if l.Secure {
		l.grid(times, columns)
	}
	width := map[string]int64{"int32": 32, "int16": 16, "int8": 8, "int4": 4}[format]
	l.add(Message{What: what, Kind: Sums, Times: times, Numbers: numbers, Format: format, payload: width*numbers/8 + 4,
		head: 2*framesOfSum*comm.HeaderLen + statement + 4*columns})
}

// grid adds the sums that find the steps of so many columns of secure sums.
func (l *sending) grid(times, columns int64) {
	l.add(Message{What: "largest magnitudes, for the grid of secure sums", Kind: Sums, Times: times, Numbers: columns, Format: "int64", payload: gridBytes * columns,
		head: framesOfSum * comm.HeaderLen})
}

// rows adds so many exchanges of rows.
func (l *sending) rows(what string, times int64, width int, fresh bool, c wire.Coding) {
	m := Message{What: what, Kind: Rows, Times: times, Numbers: int64(width), Format: formatOf(c), Fresh: fresh, payload: int64(c.RowLen(width)), head: 2*comm.HeaderLen + 8}
	if c.Columns {
		m.head += 4 * int64(width) // a scale for each
	}
	l.add(m)
}

// Bytes returns the bytes that all of so many peers send at most, frames included. halo is the sum over the peers of the
// rows of others that each of them reads.
func (l List) Bytes(peers, halo int64) int64 {
	if peers < 2 {
		return 0
	}
	pairs, sum := peers*(peers-1), int64(0)
	for _, m := range l {
		if m.Kind == Sums {
			sum += m.Times * 2 * (peers - 1) * m.payload
		} else {
			sum += m.rowsOf(halo) * m.payload
		}
		sum += m.Times * pairs * m.head
	}
	return framed(sum) + pairs*greeting
}

// SiteBytes returns the bytes that the peer of that rank sends at most. gives is the sum over the other peers of its rows
// that they read, takes of theirs that it reads.
func (l List) SiteBytes(rank int, peers, gives, takes int64) int64 {
	if peers < 2 {
		return 0
	}
	sum := int64(0)
	for _, m := range l {
		switch m.Kind {
		case Rows:
			sum += m.rowsOf(gives) * m.payload
		case Errors:
			sum += m.Times * takes * m.payload
		case Sums: // a short one has one owner, the first peer; of a long one each peer owns a chunk
			owned := 2 * (peers - 1) * (m.payload/peers + 8)
			if rank == 0 {
				owned = max(owned, (peers-1)*m.payload)
			} else {
				owned = max(owned, m.payload)
			}
			sum += m.Times * owned
		}
		sum += m.Times * (peers - 1) * m.head
	}
	return framed(sum) + (peers-1)*greeting
}

// rowsOf returns how many rows are sent of so many that others read.
func (m Message) rowsOf(read int64) int64 {
	if m.most > 0 {
		read = min(read, m.most)
	}
	return m.Times * read
}

// framed returns so many bytes with a header in each frame of 256 KiB.
func framed(n int64) int64 { return n + n/(1<<14) }

// over writes a number of hops.
func over(hops int) string {
	if hops == 1 {
		return "over 1 hop"
	}
	return fmt.Sprintf("over %d hops", hops)
}

// OfNode returns how many numbers are sent of a node to each peer with an edge from it, and how many of them are fresh:
// the others add nothing about a row to what these say of it and of its neighbours. Of an average over k nodes, each has
// its share of the numbers.
func (l List) OfNode() (all, fresh float64) {
	for _, m := range l {
		if m.Kind == Rows {
			n := float64(m.Times * m.Numbers)
			all += n
			if m.Fresh {
				fresh += n
			}
		}
	}
	return all, fresh
}

// formatOf names the number format of rows.
func formatOf(c wire.Coding) string {
	if c.Values == "" {
		return "float32"
	}
	return c.Values
}
