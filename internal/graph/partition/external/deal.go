package external

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
)

// dealing gives each part the elements of a section for the part's own nodes, in the order of IDs, which is the order
// of the part's rows.
type dealing struct {
	name, ptr string // of the section and of its pointers, if it has some
	do        func(r *runner) error
}

// dealings returns the sections to deal. Pointers are dealt with the first section that they point into.
func (r *runner) dealings() []dealing {
	classes := r.classes
	list := []dealing{
		deal("split", "", 1, func(row []graph.Split) error { return row[0].Valid() }),
		deal("adj/0/col", "adj/0/row_ptr", 0, func(row []int32) error { return ascending(row, int64(r.nodes)) }),
	}
	if r.weighted {
		list = append(list, deal("adj/0/weight", "adj/0/row_ptr", 0, func(row []float32) error {
			for _, w := range row {
				if !(w >= 0 && w <= math.MaxFloat32) {
					return fmt.Errorf("weight of an edge must be a finite number, 0 or more (got %v)", w)
				}
			}
			return nil
		}))
	}
	if r.xcols > 0 && !r.sparse {
		list = append(list, deal("x/dense", "", r.xcols, finite))
	}
	if r.sparse && r.xcols > 0 {
		list = append(list,
			deal("x/col", "x/row_ptr", 0, func(row []int32) error { return ascending(row, int64(r.xcols)) }),
			deal("x/val", "x/row_ptr", 0, finite))
	}
	if r.has("y/class", section.I32) {
		list = append(list, deal("y/class", "", 1, func(row []int32) error {
			if row[0] < -1 || int(row[0]) >= classes {
				return fmt.Errorf("label must be -1 (none) or a class in [0, %d) (got %d)", classes, row[0])
			}
			return nil
		}))
	}
	if r.has("y/bits", section.U8) {
		list = append(list, deal("y/bits", "", classes, func(row []uint8) error {
			for c, b := range row {
				if b > 1 {
					return fmt.Errorf("label for class %d must be 0 or 1 (got %d)", c, b)
				}
			}
			return nil
		}))
	}
	if r.has("y/values", section.F32) {
		list = append(list, deal("y/values", "", classes, func(row []float32) error {
			return graph.Labels{Classes: len(row), Values: row}.Valid(1)
		}))
	}
	if r.has("ids/ptr", section.I64) {
		list = append(list, deal("ids/text", "ids/ptr", 0, func([]uint8) error { return nil }))
	}
	return list
}

func ascending(row []int32, most int64) error {
	last := int32(-1)
	for _, j := range row {
		if j <= last || int64(j) >= most {
			return fmt.Errorf("%d is not ascending, or out of [0, %d)", j, most)
		}
		last = j
	}
	return nil
}

func finite(row []float32) error {
	for c, x := range row {
		if !(x >= -math.MaxFloat32 && x <= math.MaxFloat32) {
			return fmt.Errorf("value %d must be a finite number (got %v)", c, x)
		}
	}
	return nil
}

// deal returns the dealing of a section in which a node has width elements or, where ptr names its
// pointers, elements [ptr[v], ptr[v+1]).
func deal[T section.Element](name, ptr string, width int, check func(row []T) error) dealing {
	return dealing{name, ptr, func(r *runner) error {
		if err := r.phase("deal", int64(r.nodes)); err != nil {
			return err
		}
		for lo := 0; lo < r.Parts; lo += filesAtOnce {
			if err := dealTo(r, name, ptr, width, check, lo, min(lo+filesAtOnce, r.Parts)); err != nil {
				return err
			}
		}
		r.end(0)
		return nil
	}}
}

const filesAtOnce = 200 // that are written; a process may open 256 on some systems

// spill returns the file that has what part p got of a section.
func (r *runner) spill(name string, p int) string {
	return filepath.Join(r.dir, spills, fmt.Sprintf("%s.%d", strings.ReplaceAll(name, "/", "."), p))
}

// dealTo deals to the parts [lo, hi).
func dealTo[T section.Element](r *runner, name, ptr string, width int, check func(row []T) error,
	lo, hi int) (err error) {
	shape, err := r.shapeOf(name)
	if err != nil {
		return err
	}
	size := int64(1)
	for _, d := range shape {
		size *= int64(d)
	}
	if ptr == "" && size != int64(r.nodes)*int64(width) {
		return r.file.Errorf(name, "must have %d elements for each of %d nodes (got shape %v)", width, r.nodes, shape)
	}
	out, err := r.create(name, lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	var ptrs *outputs
	var ends io.Reader
	if ptr != "" {
		if ptrs, err = r.create(ptr, lo, hi); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ptrs.close()) }()
		if ends, err = r.file.Elements(ptr, 0, int64(r.nodes)+1); err != nil {
			return err
		}
		ends = bufio.NewReaderSize(ends, 1<<16)
		if err := r.beginPointers(ptr, ends, ptrs); err != nil {
			return err
		}
	}
	in, err := r.file.Elements(name, 0, size)
	if err != nil {
		return err
	}
	from := bufio.NewReaderSize(in, 1<<20)
	var row []T
	var end [1]int64
	at, local := int64(0), make([]int64, hi-lo)
	for v, p := range r.owner {
		n := width
		if ptr != "" {
			if err := r.readEnd(ptr, ends, end[:], v, at, size); err != nil {
				return err
			}
			n = int(end[0] - at)
		}
		at += int64(n)
		row = room(row, n)
		if err := section.ReadArray(from, row); err != nil {
			return r.file.Errorf(name, "node %d: %w", v, err)
		}
		if n > 0 {
			if err := check(row); err != nil {
				return r.file.Errorf(name, "node %d: %w", v, err)
			}
		}
		if k := int(p) - lo; k >= 0 && k < len(local) {
			if err := section.WriteArray(out.to[k], row); err != nil {
				return err
			}
			if ptr != "" {
				local[k] += int64(n)
				if err := section.WriteArray(ptrs.to[k], local[k:k+1]); err != nil {
					return err
				}
			}
		}
		if v%runNodes == runNodes-1 {
			if err := r.advance(runNodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEnd reads the pointer behind node v, whose elements begin at at, of size in all.
func (r *runner) readEnd(ptr string, ends io.Reader, end []int64, v int, at, size int64) error {
	if err := section.ReadArray(ends, end); err != nil {
		return r.file.Errorf(ptr, "node %d: %w", v, err)
	}
	if end[0] < at || end[0] > size || v == r.nodes-1 && end[0] != size {
		return r.file.Errorf(ptr, "node %d ends at %d, before its start %d or not within the %d elements", v, end[0],
			at, size)
	}
	return nil
}

// beginPointers reads the first pointer of a section, which must be 0, and begins the pointers of the parts with it.
func (r *runner) beginPointers(name string, ends io.Reader, to *outputs) error {
	var zero [1]int64
	if err := section.ReadArray(ends, zero[:]); err != nil || zero[0] != 0 {
		return r.file.Errorf(name, "the first pointer must be 0 (got %d): %w", zero[0], err)
	}
	for _, w := range to.to {
		if err := section.WriteArray(w, zero[:]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stored) shapeOf(name string) ([]int, error) {
	for _, one := range s.file.Sections() {
		if one.Name == name {
			return one.Shape, nil
		}
	}
	return nil, s.file.Errorf(name, "missing")
}

// outputs are files that are written at the same time.
type outputs struct {
	to    []*bufio.Writer
	files []*os.File
}

// create opens the files of a section for the parts [lo, hi).
func (r *runner) create(name string, lo, hi int) (*outputs, error) {
	var paths []string
	for p := lo; p < hi; p++ {
		paths = append(paths, r.spill(name, p))
	}
	return createOutputs(paths, int(bufferOf(r.Parts)))
}

func createOutputs(paths []string, buffer int) (*outputs, error) {
	o := new(outputs)
	for _, path := range paths {
		f, err := os.Create(path)
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
		o.files, o.to = append(o.files, f), append(o.to, bufio.NewWriterSize(f, buffer))
	}
	return o, nil
}

// close writes what is buffered.
func (o *outputs) close() (err error) {
	for k, f := range o.files {
		err = errors.Join(err, o.to[k].Flush(), f.Close())
	}
	return err
}
