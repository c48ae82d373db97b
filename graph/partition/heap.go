package partition

// heap is a queue of nodes: the highest key first, then the lowest node.
type heap struct {
	node []int32
	key  []int32 // [n]
	at   []int32 // [n] index in node, or −1
}

// reset empties the queue for nodes [0, n).
func (h *heap) reset(n int) {
	h.node = h.node[:0]
	if len(h.at) != n {
		h.key, h.at = make([]int32, n), make([]int32, n)
	}
	for v := range h.at {
		h.at[v] = -1
	}
}

func (h *heap) len() int { return len(h.node) }

// put sets the key of v, and adds v if it is absent.
func (h *heap) put(v, key int32) {
	at := h.at[v]
	if at < 0 {
		at = int32(len(h.node))
		h.node = append(h.node, v)
	} else if h.key[v] == key {
		return
	}
	h.key[v], h.at[v] = key, at
	h.down(h.up(at))
}

// top returns the first one's key.
func (h *heap) top() int32 { return h.key[h.node[0]] }

// pop removes the first node.
func (h *heap) pop() (v, key int32) {
	v = h.node[0]
	h.drop(v)
	return v, h.key[v]
}

// drop removes v, if it is present.
func (h *heap) drop(v int32) {
	at := h.at[v]
	if at < 0 {
		return
	}
	last := h.node[len(h.node)-1]
	h.node, h.at[v] = h.node[:len(h.node)-1], -1
	if last != v {
		h.node[at], h.at[last] = last, at
		h.down(h.up(at))
	}
}

// before reports whether u leaves the queue before v.
func (h *heap) before(u, v int32) bool {
	return h.key[u] > h.key[v] || h.key[u] == h.key[v] && u < v
}

// up moves the node at an index towards the top until its parent comes first, and returns its new index.
func (h *heap) up(at int32) int32 {
	v := h.node[at]
	for at > 0 && h.before(v, h.node[(at-1)/2]) {
		u := h.node[(at-1)/2]
		h.node[at], h.at[u] = u, at
		at = (at - 1) / 2
	}
	h.node[at], h.at[v] = v, at
	return at
}

// down moves the node at an index away from the top until it comes before its children.
func (h *heap) down(at int32) {
	v := h.node[at]
	for {
		child := 2*at + 1
		if int(child) >= len(h.node) {
			break
		}
		if int(child)+1 < len(h.node) && h.before(h.node[child+1], h.node[child]) {
			child++
		}
		u := h.node[child]
		if !h.before(u, v) {
			break
		}
		h.node[at], h.at[u] = u, at
		at = child
	}
	h.node[at], h.at[v] = v, at
}
