package train

import (
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Content is what the numbers of a message are of.
type Content string

const (
	Rows   Content = "rows"   // of a node, to each peer with an edge from it
	Errors Content = "errors" // gradients of another peer's rows, back to it
	Sums   Content = "sums"   // a peer's part of a sum over all peers
)

// Message is one sum or one exchange of rows: what a peer sends, in which format, and how often at most.
type Message struct {
	Name    string // of the sum (comm.ReduceID.Kind) or of the exchange
	What    string // the same for people
	Kind    Content
	Times   int64
	Numbers int64  // each time: of a node, or of the peer's part of a sum
	Counts  int64  // whole numbers besides a part's numbers
	Format  string // of the numbers: float32, bf16, int8, int4, int16
	Fresh   bool   // of rows: not merely sums over neighbours of numbers that are sent as well

	bits    int   // of a number of a sum, as in comm.Contribution
	parts   int64 // in how many parts a sum may come (0 = in one)
	asks    bool  // it names rows and edges of the reader's, as many as there are
	most    int64 // rows that all peers together read at most, each time (0 = all that they read)
	payload int64 // bytes of a row, or of a part
	head    int64 // bytes besides them to each other peer, each time
}

// Messages are all that a peer of a run may send, in order, if no patience ends a stage early and no peer fails. Times
// of equal messages are added up.
type Messages struct {
	Members
	List []Message
}

const (
	// framesOfSum is the most frames that a reduction sends from one peer to another: meta, floats and counts to their
	// owner, and the sums of both.
	framesOfSum = 5
	// statement is the meta of a reduction of layer-wise training (wire.md), and greeting what a peer sends in
	// greetings and otherwise once a run, at most.
	statement, greeting = 9, 4096
	// keysOfSums is what a peer sends to another to agree on the keys of secure sums at most, and gridBytes
	// the bytes of a step's sum (package secagg).
	keysOfSums, gridBytes = 2700, 32
)

// Members are the peers of a run.
type Members struct {
	Peers  int
	Nodes  int64 // of the whole graph
	Train  int64 // of them, possible training nodes; in models of links, links that train, each at both ends
	Secure bool  // their sums are (package secagg)
	Phones bool  // their sums have parts of phones (package leaf)
	Cuts   bool  // thresholds are chosen by the validation nodes
	Groups int   // values of the column that groups test nodes (0 = none groups them)
	Norm   bool  // features of all sites decide how they are divided
	Types  int   // of nodes, if a model of links is asked (0 = they have none)
}

// NewMessages returns the messages of a run before its method's own.
func NewMessages(m Members) *Messages {
	l := &Messages{Members: m}
	if m.Secure {
		l.add(Message{What: "keys of secure sums", Kind: Sums, Times: 1, head: keysOfSums})
	}
	if m.Norm {
		l.Count("features", "nodes with values below 0, and with few values", 1, 2, 0)
	}
	return l
}

// add appends m unless it is never sent; if the list has an equal message, add increases its times instead.
func (l *Messages) add(m Message) {
	if m.Times == 0 {
		return
	}
	for k, held := range l.List {
		held.Times = m.Times
		if held == m {
			l.List[k].Times += m.Times
			return
		}
	}
	l.List = append(l.List, m)
}

// Sum adds sums of that name, each of some float32 and of some whole numbers of 8 bytes.
func (l *Messages) Sum(name, what string, times, floats, counts int64) {
	l.SumInParts(name, what, times, 1, floats, counts)
}

// SumInParts is Sum of sums that may each come in some parts.
func (l *Messages) SumInParts(name, what string, times, parts, floats, counts int64) {
	m := Message{Name: name, What: what, Kind: Sums, Times: times, Numbers: floats, Counts: counts, Format: "float32",
		parts: parts, payload: 4*floats + 8*counts, head: framesOfSum*comm.HeaderLen + statement}
	if floats == 0 {
		m.Format = "int64"
	} else if l.Secure { // in 64 bits, after a sum that finds the grid
		l.grid(times, 1)
		m.Format, m.payload = "int64", 8*(floats+counts)
	}
	l.add(m)
	l.add(Message{What: what, Kind: Sums, Times: times * (parts - 1), Format: "float32",
		head: framesOfSum * comm.HeaderLen})
}

// Count adds sums of whole numbers up to the number of nodes; some of them are wide (comm.Contribution).
func (l *Messages) Count(name, what string, times, counts, wide int64) {
	bits := comm.CountBits(l.Nodes)
	l.add(Message{Name: name, What: what, Kind: Sums, Times: times, Counts: counts,
		Format:  map[int]string{0: "int64", 16: "uint16", 32: "uint32"}[bits],
		payload: comm.CountBytes(counts, wide, bits, l.Peers), head: framesOfSum*comm.HeaderLen + statement})
}

// Fixed adds sums of numbers in columns, or parts, each with a grid, in a fixed-point format (float32 = no grid), and
// sums of whole numbers, some of them wide.
func (l *Messages) Fixed(name, what string, times, numbers, columns, counts, wide int64, format string) {
	bits, whole := bitsOf[format], comm.CountBytes(counts, wide, comm.CountBits(l.Nodes), l.Peers)
	if format == "float32" && !l.Secure {
		l.add(Message{Name: name, What: what, Kind: Sums, Times: times, Numbers: numbers, Counts: counts,
			Format: format, payload: 4*numbers + whole, head: framesOfSum*comm.HeaderLen + statement})
		return
	}
	if format == "float32" {
		format = "int32"
	}
	if l.Secure {
		l.grid(times, columns)
	}
	l.add(Message{Name: name, What: what, Kind: Sums, Times: times, Numbers: numbers, Counts: counts, Format: format,
		bits: bits, payload: int64(bitsOf[format])*numbers/8 + 4 + whole,
		head: 2*framesOfSum*comm.HeaderLen + statement + 4*columns})
}

// bitsOf has the bits of a number of a sum in fixed point, by its format.
var bitsOf = map[string]int{"int32": 32, "int16": 16, "int8": 8, "int4": 4}

// FormatOf names the format of a sum of numbers of `bits` bits (0 = float32).
func FormatOf(bits int) string {
	if bits == 0 {
		return "float32"
	}
	return fmt.Sprintf("int%d", bits)
}

// grid adds the sums that find the quantization steps of the columns of secure sums.
func (l *Messages) grid(times, columns int64) {
	l.add(Message{What: "largest magnitudes, for the grid of secure sums", Kind: Sums, Times: times, Numbers: columns,
		Format: "int64", payload: gridBytes * columns, head: framesOfSum * comm.HeaderLen})
}

// Send adds exchanges of that name of rows of some columns.
func (l *Messages) Send(name, what string, times int64, width int, fresh bool, c comm.Coding) {
	m := Message{Name: name, What: what, Kind: Rows, Times: times, Numbers: int64(width), Format: formatOf(c),
		Fresh: fresh, payload: int64(c.RowLen(width)), head: 2*comm.HeaderLen + 8}
	if c.Columns {
		m.head += 4 * int64(width) // a scale for each
	}
	l.add(m)
}

// Return adds gradients of others' rows, which are sent back to their owners.
func (l *Messages) Return(name, what string, times int64, width int, c comm.Coding) {
	l.add(Message{Name: name, What: what, Kind: Errors, Times: times, Numbers: int64(width), Format: formatOf(c),
		payload: int64(c.RowLen(width)), head: 2*comm.HeaderLen + 8})
}

// AddOwners adds how peers learn who owns which node (LearnOwners).
func (l *Messages) AddOwners() {
	l.add(Message{Name: "owners", What: "ID and type of each node", Kind: Rows, Times: 1, Numbers: 2, Format: "int64",
		payload: 11, head: 2*comm.HeaderLen + 8})
}

// Publish adds bytes that a peer may send about itself, besides sums.
func (l *Messages) Publish(name, what string, bytes int64) {
	l.add(Message{Name: name, What: what, Kind: Sums, Times: 1, head: comm.HeaderLen + bytes})
}

// SendExact is Send of rows that are not rounded.
func (l *Messages) SendExact(name, what string, times int64, width int, fresh bool) {
	l.Send(name, what, times, width, fresh, comm.Coding{})
}

// SendMost is Send, but all peers together read at most `most` of the rows each time.
func (l *Messages) SendMost(name, what string, times, most int64, width int, c comm.Coding) {
	l.add(Message{Name: name, What: what, Kind: Rows, Times: times, Numbers: int64(width), Format: formatOf(c),
		Fresh: true, most: most, payload: int64(c.RowLen(width)), head: 2*comm.HeaderLen + 8})
}

// SendSamples adds answers with the in-edges that were sampled of at most some nodes each time: k edges of a node in
// some relations, with columns.
func (l *Messages) SendSamples(name, what string, times, most, k, relations, columns int64) {
	l.add(Message{Name: name, What: what, Kind: Rows, Times: times, Numbers: (2+columns)*k + 1, Format: "float32",
		Fresh: true, most: most, payload: 4 + 10*relations + (8+4*columns)*k + 4, head: 4*comm.HeaderLen + 16})
}

// AddComponents adds the sums that find components of the features in some passes (linear.Components); columns is
// linear.SumColumns, format is a fixed-point format, "auto", or "" for none.
func (l *Messages) AddComponents(name string, passes, features, columns int, format string) {
	switch format {
	case "":
		format = "float32"
	case "auto":
		format = "int16"
	}
	w := int64(columns)
	l.Fixed(name, "XᵀXQ, from which components are found", int64(passes), int64(features)*w, w, 0, 0, format)
	l.Fixed("projected Gram matrix", "second moments of the components", 1, w*w, w, 0, 0, format)
}

// AddLabels adds the sum that counts labels (CountLabels).
func (l *Messages) AddLabels(k graph.TargetKind, classes int) {
	what := "label counts"
	if k == graph.Numbers {
		what = "label counts, and sums and squares of targets"
	}
	l.Count("label counts", what, 1, int64(LabelsLen(k, classes)), int64(LabelReals(k, classes)))
}

// AddView adds what the peers send to know the graph without its validation and test nodes (Sender.InductiveView).
func (l *Messages) AddView(inductive bool) {
	if inductive {
		l.SendExact("which halo nodes are held out", "whether a node is held out", 1, 1, false)
	}
}

// AddDegrees adds the degrees of boundary nodes (Sender.WithDegrees).
func (l *Messages) AddDegrees(times int64) {
	l.SendExact("degrees", "degrees of the nodes", times, 1, false)
}

// AddCovers adds how peers agree on sums that are sent instead of rows.
func (l *Messages) AddCovers(name string, times int64) {
	l.Ask(name, "which rows are wanted, and which as sums", times)
}

// Ask adds messages that name rows and edges of their reader, mostly with 4 bytes or fewer for each row.
func (l *Messages) Ask(name, what string, times int64) {
	l.add(Message{Name: name, What: what, Kind: Rows, Times: times, Format: "float32", asks: true, payload: 4,
		head: 8 * comm.HeaderLen})
}

// SiteBytes returns the bytes that the peer of that rank sends at most. gives is the sum over the other peers of its
// rows that they read, takes the sum of their rows that it reads.
func (l *Messages) SiteBytes(rank int, gives, takes int64) int64 {
	peers := int64(l.Peers)
	if peers < 2 {
		return 0
	}
	sum := int64(0)
	for _, m := range l.List {
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

// rowsOf returns how many rows are sent if others read `read` of them.
func (m Message) rowsOf(read int64) int64 {
	if m.most > 0 {
		read = min(read, m.most)
	}
	return m.Times * read
}

// framed returns the length of n bytes with a header in each frame of 256 KiB.
func framed(n int64) int64 { return n + n/(1<<14) }

// NumbersOf returns how many numbers some parameters have.
func NumbersOf(params []*tape.Param) (n int64) {
	for _, p := range params {
		n += int64(len(p.Value.Data))
	}
	return n
}

// OverHops writes a number of hops.
func OverHops(hops int) string {
	if hops == 1 {
		return "over 1 hop"
	}
	return fmt.Sprintf("over %d hops", hops)
}

// OfNode returns how many numbers each peer with an edge from a node receives about it, and how many of them are fresh:
// the others follow from the fresh ones of the node and of its neighbours. In an average over k nodes each node has a
// k-th of the numbers.
func (l *Messages) OfNode() (all, fresh float64) {
	for _, m := range l.List {
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
func formatOf(c comm.Coding) string {
	if c.Values == "" {
		return "float32"
	}
	return c.Values
}

// AddClassRows adds the rows that class means send before each hop of round r (the first is 0): columns, and the logits
// of the round before. Logits reveal nothing beyond the columns from which they are computed.
func (l *Messages) AddClassRows(spec closed.Layout, r int, views int64, classes int, rows comm.Coding) {
	send := func(name, what string, width int, fresh bool) {
		for at := columnsAtOnce(l.Nodes, width); width > 0; width -= at {
			l.Send(name, what, views, min(at, width), fresh, rows)
		}
	}
	for hop := range spec.HopsOf(r) {
		what := "columns of the node"
		if hop > 0 {
			what = "columns aggregated " + OverHops(hop)
		}
		send(fmt.Sprintf("rows of round %d, hop %d", r+1, hop), what, spec.MapWidth(r, classes), hop == 0)
	}
	for hop := range spec.LogitHopsOf(r) {
		what, fresh := "logits of the round before, and their aggregates", false
		switch {
		case spec.Hops == 0 && hop == 0:
			what, fresh = "logits of the node in the round before", true
		case spec.Hops == 0:
			what = "aggregates of these logits"
		}
		send(fmt.Sprintf("logits of round %d, hop %d", r, hop), what, spec.Width(classes), fresh)
	}
}
