package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

// As is knowledge about the labels y of a data set that its arrays lack (zero value = nothing).
type As struct {
	Task    string   // classification, regression, or links, which have no labels; else the dtype decides
	Classes int      // classes of the model that predicts: a node of another class has no label (0 = no model)
	Names   []string // names of these classes (nil = their numbers)
}

// labels reads y; the package comment has the rules.
func (a arrays) labels(m meta, as As) (graph.Labels, error) {
	l := graph.Labels{Names: m.ClassNames}
	h, err := a.Header("y")
	if err != nil {
		return l, err
	}
	float, regression := strings.HasPrefix(h.Descr, "<f"), as.Task == "regression"
	wide := len(h.Shape) == 2 && (h.Shape[1] != 1 || m.Classes != nil && *m.Classes == 1)
	switch {
	case wide && !regression && !h.Texts():
		if l, err = a.bits(m, l, h.Shape); err == nil || !float || as.Task == "classification" {
			return l, err
		}
		l.Bits = nil
	case regression && !float:
		l.Names, m.Classes = nil, nil // they apply to classes only
	case !regression && (!float || as.Task == "classification"):
		return a.classes(m, h, as)
	}
	return a.numbers(m, l, h)
}

// numbers reads the targets of a regression, [N] or [N, C]; a node with NaN in all columns has none.
func (a arrays) numbers(m meta, l graph.Labels, h npy.Header) (graph.Labels, error) {
	want := []int{-1}
	if l.Classes = 1; len(h.Shape) == 2 {
		want, l.Classes = []int{-1, -1}, h.Shape[1]
	}
	if err := a.fits(m, l, h.Shape); err != nil {
		return l, err
	}
	var err error
	if h.Texts() {
		texts, _, fault := npy.Texts(a.Archive, "y", want...)
		if fault != nil {
			return l, fault
		}
		for i, text := range texts {
			v, wrong := strconv.ParseFloat(strings.TrimSpace(text), 32)
			if table.Missing(text) {
				v = math.NaN()
			} else if wrong != nil {
				return l, a.Fault("y", fmt.Errorf("entry %d must be a number for a regression (got %.40q)", i, text))
			}
			l.Values = append(l.Values, float32(v))
		}
	} else if l.Values, _, err = npy.Read[float32](a.Archive, "y", want...); err != nil {
		return l, err
	}
	if err := l.Valid(len(l.Values) / l.Classes); err != nil {
		return l, a.Fault("y", err)
	}
	return l, nil
}

// fits checks the columns of y.
func (a arrays) fits(m meta, l graph.Labels, shape []int) error {
	if l.Classes == 0 || l.Classes > MaxClasses || l.Names != nil && len(l.Names) != l.Classes || m.Classes != nil &&
		*m.Classes != l.Classes {
		return a.Fault("y", fmt.Errorf("must have 1 to %d columns, as many as %s has classes and class names "+
			"(got shape %s)", MaxClasses, metaFile, npy.ShapeText(shape)))
	}
	return nil
}

// bits reads a multi-label y: [N, C], 0 or 1.
func (a arrays) bits(m meta, l graph.Labels, shape []int) (graph.Labels, error) {
	l.Classes = shape[1]
	if err := a.fits(m, l, shape); err != nil {
		return l, err
	}
	y, _, err := npy.Read[float32](a.Archive, "y", -1, -1)
	if err != nil {
		return l, err
	}
	l.Bits = make([]uint8, len(y))
	for k, v := range y {
		if v != 0 && v != 1 {
			return l, a.Fault("y", fmt.Errorf("node %d, class %d must be 0 or 1 (got %v)", k/l.Classes, k%l.Classes, v))
		}
		l.Bits[k] = uint8(v)
	}
	return l, nil
}

// classes reads a y of one class a node, [N]: whole numbers, texts or, for task classification, floats.
func (a arrays) classes(m meta, h npy.Header, as As) (l graph.Labels, err error) {
	if !h.Texts() && h.Descr[:2] != "<f" && (m.Classes != nil || len(m.ClassNames) > 0) {
		l, err = a.fixed(m, as.Classes > 0)
		return as.only(l, true), err
	}
	if as.Classes > 0 {
		m.ClassNames = nil
	}
	y, err := a.texts(h, m.ClassNames)
	if err != nil {
		return l, err
	}
	names := map[string]bool{}
	for _, text := range y {
		names[text] = true
	}
	missing := names[""]
	if delete(names, ""); !h.Texts() && !missing && names["-1"] {
		if missing, err = a.unlabelled(y, names, as); err != nil {
			return l, err
		}
		if missing {
			delete(names, "-1")
		}
	}
	if l.Names = SortNames(names); m.ClassNames != nil {
		l.Names = m.ClassNames
	}
	if l.Classes = len(l.Names); l.Classes > MaxClasses {
		return l, a.Fault("y", fmt.Errorf("classes must be at most %d (got %d)", MaxClasses, l.Classes))
	}
	index, plain := make(map[string]int32, l.Classes), true
	for c, name := range l.Names {
		index[name], plain = int32(c), plain && name == strconv.Itoa(c)
	}
	l.Class = make([]int32, len(y))
	for i, text := range y {
		c, ok := index[text]
		if l.Class[i] = c; !ok {
			if l.Class[i] = -1; names[text] {
				return l, a.Fault("y", fmt.Errorf("class of node %d must be one of %s (got %.40q)", i, shorten(l.Names),
					text))
			}
		}
	}
	if plain {
		l.Names = nil
	}
	return as.only(l, false), nil
}

// texts reads the classes of y, [N], as texts: a whole number without a fraction, no label as an empty text. A text of
// names is a class.
func (a arrays) texts(h npy.Header, names []string) (y []string, err error) {
	switch {
	case h.Texts():
		y, _, err = npy.Texts(a.Archive, "y", -1)
		for i, text := range y {
			if y[i] = strings.TrimSpace(text); table.Missing(text) && !slices.Contains(names, y[i]) {
				y[i] = ""
			}
		}
	case h.Descr[:2] == "<f":
		floats, _, fault := npy.Read[float32](a.Archive, "y", -1)
		for _, v := range floats {
			text := strconv.FormatFloat(float64(v), 'f', -1, 32)
			if v != v {
				text = ""
			}
			y = append(y, text)
		}
		return y, fault
	default:
		whole, _, fault := npy.Read[int64](a.Archive, "y", -1)
		for _, v := range whole {
			y = append(y, strconv.FormatInt(v, 10))
		}
		return y, fault
	}
	return y, err
}

// fixed reads classes that are numbers from 0 to meta.json's number of classes, and -1 for none. If unknown is set, any
// other number means none, too.
func (a arrays) fixed(m meta, unknown bool) (graph.Labels, error) {
	l := graph.Labels{Names: m.ClassNames, Classes: len(m.ClassNames)}
	if c := m.Classes; c != nil {
		if *c < 0 || *c > MaxClasses || l.Classes > 0 && l.Classes != *c {
			return l, a.Fault("y", fmt.Errorf("%s must have at most %d classes and a name for each (got %d "+
				"classes, %d names)", metaFile, MaxClasses, *c, l.Classes))
		}
		l.Classes = *c
	}
	y, _, err := npy.Read[int64](a.Archive, "y", -1)
	l.Class = make([]int32, len(y))
	for i, c := range y {
		if l.Class[i] = int32(c); c < -1 || c >= int64(l.Classes) {
			if l.Class[i] = -1; !unknown {
				return l, a.Fault("y", fmt.Errorf("label of node %d must be 0 to %d, or -1 for none (got %d)", i,
					l.Classes-1, c))
			}
		}
	}
	return l, err
}

// unlabelled reports whether -1 among whole numbers of those names means that a node has no label.
func (a arrays) unlabelled(y []string, names map[string]bool, as As) (bool, error) {
	others, plain := len(names)-1, true
	for c := range others {
		plain = plain && names[strconv.Itoa(c)]
	}
	below := false
	for name := range names {
		below = below || name[0] == '-' && name != "-1"
	}
	switch {
	case as.Task == "links":
		return true, nil
	case as.Classes > 0:
		return !slices.Contains(as.Names, "-1"), nil
	case below || others == 1 && names["1"]:
		return false, nil
	case plain && others != 2:
		return true, nil
	}
	marked := make([]bool, len(y))
	masks, some, all := false, false, true
	for _, name := range maskNames {
		if name == "" || !a.Has(name) {
			continue
		}
		h, err := a.Header(name)
		if err != nil {
			return false, err
		}
		mask, _, err := npy.Read[uint8](a.Archive, name, []int{len(y), -1}[:max(1, min(2, len(h.Shape)))]...)
		if err != nil {
			return false, err
		}
		masks = true
		for k, v := range mask {
			i := k / (len(mask) / len(y))
			marked[i] = marked[i] || v != 0
		}
	}
	for i, text := range y {
		if text == "-1" {
			some, all = some || marked[i], all && marked[i]
		}
	}
	if !masks || some && !all {
		return false, a.Fault("y",
			fmt.Errorf("-1 together with %s may be a class or no label (got no masks with all or none of its nodes, "+
				"which show it): "+
				"for a class give texts, as by astype(str), for no label names of the other classes (class_names)",
				shorten(SortNames(names)[1:])))
	}
	return !some, nil
}

// only returns l as the classes of a model: by their names or, if only one of the two has names, by their numbers.
// titled means that meta.json names the numbers of l.
func (as As) only(l graph.Labels, titled bool) graph.Labels {
	if as.Classes == 0 {
		return l
	}
	index, whole := map[string]int{}, true
	for c := range as.Classes {
		name := graph.Labels{Names: as.Names}.Name(c)
		_, err := strconv.Atoi(name)
		index[name], whole = c, whole && err == nil
	}
	for i, c := range l.Class {
		if c < 0 {
			continue
		}
		name, number := l.Name(int(c)), int(c)
		if value, err := strconv.Atoi(name); !titled {
			number = value
			if err != nil {
				number = -1
			}
		}
		at, ok := index[name]
		if !ok && (titled && as.Names == nil || !titled && !whole) && number < as.Classes {
			at, ok = number, true
		}
		if l.Class[i] = -1; ok {
			l.Class[i] = int32(at)
		}
	}
	l.Classes, l.Names = as.Classes, as.Names
	return l
}
