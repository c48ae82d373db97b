package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heddle-gnn/heddle/mat"
)

// Numbers of TensorProto.DataType and AttributeProto.AttributeType, and of the operator set and format version that files
// have (onnx.proto of ONNX 1.13).
const (
	typeFloat = 1
	typeInt   = 7
	typeBool  = 9

	attributeFloat = 1
	attributeInt   = 2
	attributeText  = 3

	opset     = 18
	irVersion = 8
)

// message is an encoded message of protocol buffers.
type message []byte

func (m *message) number(field protowire.Number, v int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *message) bytes(field protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

func (m *message) text(field protowire.Number, v string) { m.bytes(field, []byte(v)) }

// value is the name of a tensor in the graph.
type value string

// attribute is one of a node: a number, an integer or a text.
type attribute struct {
	name string
	of   any
}

// builder puts a GraphProto together.
type builder struct {
	graph message
	names int
	held  map[string]value // constants by their bytes
}

// add adds a node of a kind and returns its only output.
func (b *builder) add(kind string, inputs []value, attributes ...attribute) value {
	return b.several(kind, 1, inputs, attributes...)[0]
}

// several adds a node with so many outputs.
func (b *builder) several(kind string, outputs int, inputs []value, attributes ...attribute) (all []value) {
	var node message
	for _, in := range inputs {
		node.text(1, string(in))
	}
	for range outputs {
		b.names++
		all = append(all, value(fmt.Sprintf("%s_%d", kind, b.names)))
		node.text(2, string(all[len(all)-1]))
	}
	node.text(4, kind)
	for _, a := range attributes {
		var one message
		one.text(1, a.name)
		switch v := a.of.(type) {
		case float32:
			one = protowire.AppendFixed32(protowire.AppendTag(one, 2, protowire.Fixed32Type), math.Float32bits(v))
			one.number(20, attributeFloat)
		case int:
			one.number(3, int64(v))
			one.number(20, attributeInt)
		case string:
			one.text(4, v)
			one.number(20, attributeText)
		}
		node.bytes(5, one)
	}
	b.graph.bytes(1, node)
	return all
}

// constant adds a tensor of raw little-endian values; one that is there is used again.
func (b *builder) constant(kind int64, shape []int, raw []byte) value {
	key := fmt.Sprint(kind, shape, string(raw))
	if name, ok := b.held[key]; ok && len(raw) <= 64 {
		return name
	}
	b.names++
	name := value(fmt.Sprintf("constant_%d", b.names))
	b.tensor(string(name), kind, shape, raw)
	if len(raw) <= 64 {
		b.held[key] = name
	}
	return name
}

func (b *builder) tensor(name string, kind int64, shape []int, raw []byte) {
	var t message
	for _, d := range shape {
		t.number(1, int64(d))
	}
	t.number(2, kind)
	t.text(8, name)
	t.bytes(9, raw)
	b.graph.bytes(5, t)
}

// float is a scalar.
func (b *builder) float(v float64) value {
	return b.constant(typeFloat, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))))
}

// floats is a vector.
func (b *builder) floats(all []float32) value {
	var raw []byte
	for _, v := range all {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return b.constant(typeFloat, []int{len(all)}, raw)
}

// ints is a vector.
func (b *builder) ints(all ...int64) value {
	var raw []byte
	for _, v := range all {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return b.constant(typeInt, []int{len(all)}, raw)
}

// scalar is a single integer.
func (b *builder) scalar(v int64) value {
	return b.constant(typeInt, nil, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// parameter adds a matrix under its own name.
func (b *builder) parameter(name string, m mat.Dense, shape ...int) value {
	var raw []byte
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	b.tensor(name, typeFloat, shape, raw)
	return value(name)
}

// declare declares an input (field 11) or output (12), whose extents are numbers or names.
func (b *builder) declare(field protowire.Number, name string, kind int64, shape ...any) {
	var dims, tensor, of, info message
	for _, d := range shape {
		var dim message
		switch v := d.(type) {
		case int:
			dim.number(1, int64(v))
		case string:
			dim.text(2, v)
		}
		dims.bytes(1, dim)
	}
	tensor.number(1, kind)
	tensor.bytes(2, dims)
	of.bytes(1, tensor)
	info.text(1, name)
	info.bytes(2, of)
	b.graph.bytes(field, info)
}

// file returns the ModelProto; facts are its metadata, name and text in turn.
func (b *builder) file(name string, facts []string) []byte {
	b.graph.text(2, name)
	var set, all message
	set.number(2, opset)
	all.number(1, irVersion)
	all.text(2, "heddle")
	all.bytes(7, b.graph)
	all.bytes(8, set)
	for k := 0; k < len(facts); k += 2 {
		var one message
		one.text(1, facts[k])
		one.text(2, facts[k+1])
		all.bytes(14, one)
	}
	return all
}
