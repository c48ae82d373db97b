package table

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn is a column of the file: one column of the table, or several if it has lists of numbers.
type parquetColumn struct {
	name  string
	first int // first column of the table
	width int
	list  bool
	texts bool                       // a list of texts becomes one cell, separated by ;
	text  func(parquet.Value) string // nil = the values are not read
}

// parquetRows reads the rows of a Parquet file.
type parquetRows struct {
	t       *Table
	rows    parquet.RowReader
	columns []parquetColumn
	halves  []bool  // columns of 16-bit floats, which the library does not report
	counter []int64 // start and step of pandas' index if it is not a column; nil = there is none
	buf     []parquet.Row
	have    []parquet.Row
	cells   []string
	used    []int // values of the current row in each column
	line    int
	rowSize int64 // bytes
}

// openParquet reads the columns of a Parquet file as text, so that the rules of CSV apply. Null is the empty cell,
// numbers are written so that they read back to the same value, dates and times in ISO 8601. A list of numbers becomes
// one column for each index up to the longest list of the first rows. A list of texts becomes one cell with ; between
// them, a group one column for each field.
func (t *Table) openParquet(f *os.File) (err error) {
	defer recovered(&err)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The library allocates the footer before it compares its length with the file's.
	var tail [8]byte
	if _, err := f.ReadAt(tail[:], info.Size()-8); err != nil || string(tail[4:]) != "PAR1" {
		return errors.New("truncated or not a Parquet file: it must end in PAR1")
	}
	if n := binary.LittleEndian.Uint32(tail[:]); int64(n) > info.Size()-12 {
		return fmt.Errorf("footer of %d bytes in a file of %d", n, info.Size())
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("truncated or not a Parquet file: %w", err)
	}
	rows := parquet.NewReader(file)
	p := &parquetRows{t: t, rows: rows, buf: make([]parquet.Row, 64),
		rowSize: info.Size() / max(1, file.NumRows())}
	t.files = append(t.files, rows)
	t.Unit = "row"
	for _, e := range file.Metadata().Schema {
		if e.Type.Valid { // a column of values
			l := e.LogicalType
			_, is := l.Value.(*format.Float16Type)
			p.halves = append(p.halves, is && e.TypeLength.Valid && e.TypeLength.V == 2)
		}
	}
	for _, c := range file.Root().Columns() {
		p.add(c, c.Name())
	}
	if err := p.fill(); err != nil && err != io.EOF {
		return err
	}
	p.layOut()
	if text, ok := file.Lookup("pandas"); ok {
		p.index(text)
	}
	p.cells, p.used = make([]string, len(t.Columns)), make([]int, len(p.columns))
	t.Read = p.read
	return nil
}

// add adds the columns below c: one column for one value a row or one list, or, for a group of values, one column for
// each field, NAME.FIELD. Anything else becomes one column of empty cells, with the reason in Unread.
func (p *parquetRows) add(c *parquet.Column, name string) {
	leaf := c
	for inner := c.Columns(); !leaf.Leaf() && len(inner) == 1; inner = leaf.Columns() {
		leaf = inner[0]
	}
	if inner := c.Columns(); !c.Leaf() && c.MaxRepetitionLevel() == 0 && (leaf.MaxRepetitionLevel() == 0 ||
		len(inner) > 1) {
		for _, field := range inner {
			p.add(field, name+"."+field.Name())
		}
		return
	}
	column, err := newParquetColumn(leaf, name, p.halves)
	if err == nil {
		p.columns = append(p.columns, column)
		return
	}
	if p.t.Unread == nil {
		p.t.Unread = map[string]error{}
	}
	p.t.Unread[name] = err
	for k := range leaves(c) {
		p.columns = append(p.columns, parquetColumn{name: name, width: max(0, 1-k)})
	}
}

// leaves returns how many columns of values are below c, including itself.
func leaves(c *parquet.Column) int {
	if c.Leaf() {
		return 1
	}
	n := 0
	for _, inner := range c.Columns() {
		n += leaves(inner)
	}
	return n
}

// newParquetColumn returns a column of one value a row, or of one list.
func newParquetColumn(leaf *parquet.Column, name string, halves []bool) (parquetColumn, error) {
	out := parquetColumn{name: name, width: 1, list: leaf.MaxRepetitionLevel() > 0}
	if !leaf.Leaf() || leaf.MaxRepetitionLevel() > 1 {
		return out, errors.New("must hold one value, a group of values or a list of values a row " +
			"(got a list of lists or groups)")
	}
	var err error
	if k := leaf.Index(); k >= 0 && k < len(halves) && halves[k] {
		out.text = func(v parquet.Value) string {
			return strconv.FormatFloat(float64(half(binary.LittleEndian.Uint16(v.ByteArray()))), 'g', -1, 32)
		}
	} else if out.text, err = cellText(leaf.Type()); err != nil {
		return out, err
	}
	kind := leaf.Type().Kind()
	out.texts = out.list && (kind == parquet.ByteArray || kind == parquet.Boolean)
	return out, nil
}

// fill reads the next rows.
func (p *parquetRows) fill() error {
	n, err := p.rows.ReadRows(p.buf)
	if n == 0 && err != nil {
		return err
	}
	if n == 0 {
		return io.ErrNoProgress
	}
	p.have = p.buf[:n]
	if watch := p.t.format.Watch; watch != nil {
		return watch(int64(n) * p.rowSize)
	}
	return nil
}

// layOut sets the names of the table's columns.
func (p *parquetRows) layOut() {
	for _, row := range p.have {
		count := make([]int, len(p.columns))
		for _, v := range row {
			if k := v.Column(); k >= 0 && k < len(count) {
				count[k]++
				if c := &p.columns[k]; c.list && !c.texts {
					c.width = max(c.width, count[k])
				}
			}
		}
	}
	for k := range p.columns {
		c := &p.columns[k]
		c.first = len(p.t.Columns)
		if c.width == 0 {
			continue
		}
		if !c.list || c.texts {
			p.t.Columns = append(p.t.Columns, c.name)
			continue
		}
		for i := range c.width {
			p.t.Columns = append(p.t.Columns, fmt.Sprintf("%s[%d]", c.name, i))
		}
	}
}

// index finds the column with the names of the rows according to pandas or, if they are numbers in steps, adds it.
func (p *parquetRows) index(text string) {
	var meta struct {
		Index []json.RawMessage `json:"index_columns"`
	}
	if json.Unmarshal([]byte(text), &meta) != nil || len(meta.Index) != 1 {
		return
	}
	var name string
	if json.Unmarshal(meta.Index[0], &name) == nil {
		if p.t.index = slices.Index(p.t.Columns, name); p.t.index >= 0 && strings.HasPrefix(name, "__index_level_") {
			p.t.Columns[p.t.index] = ""
		}
		return
	}
	var steps struct {
		Start, Step int64
	}
	if json.Unmarshal(meta.Index[0], &steps) == nil && steps.Step != 0 {
		p.counter, p.t.index = []int64{steps.Start, steps.Step}, len(p.t.Columns)
		p.t.Columns = append(p.t.Columns, "")
	}
}

func (p *parquetRows) read() (_ []string, _ int, err error) {
	defer recovered(&err)
	if len(p.have) == 0 {
		if err := p.fill(); err != nil {
			return nil, 0, err
		}
	}
	row := p.have[0]
	p.have, p.line = p.have[1:], p.line+1
	clear(p.cells)
	clear(p.used)
	for _, v := range row {
		k := v.Column()
		if k < 0 || k >= len(p.columns) {
			return nil, 0, fmt.Errorf("row %d has a value of column %d of %d", p.line, k, len(p.columns))
		}
		c, at := &p.columns[k], p.used[k]
		p.used[k]++
		if v.IsNull() || c.text == nil {
			continue
		}
		switch {
		case c.texts && at > 0:
			p.cells[c.first] += ";" + c.text(v)
		case at >= c.width:
			return p.cells, p.line,
				p.t.Fault(p.line, c.first, "list must have at most %d values, as in the first rows (got more)", c.width)
		default:
			p.cells[c.first+at] = c.text(v)
		}
	}
	for k, n := range p.used {
		if n == 0 {
			return nil, 0, fmt.Errorf("row %d has no value of column %s", p.line, p.columns[k].name)
		}
	}
	if p.counter != nil {
		p.cells[p.t.index] = strconv.FormatInt(p.counter[0]+int64(p.line-1)*p.counter[1], 10)
	}
	return p.cells, p.line, nil
}

// cellText returns how values of type t are written.
func cellText(t parquet.Type) (func(parquet.Value) string, error) {
	unsigned := false
	if l := t.LogicalType(); l != nil {
		switch i := l.Value.(type) {
		case *format.IntType:
			unsigned = !i.IsSigned
		case *format.DateType:
			return func(v parquet.Value) string { return isoTime(time.Unix(int64(v.Int32())*86400, 0)) }, nil
		case *format.TimestampType:
			unit := int64(i.Unit.Value.Duration())
			return func(v parquet.Value) string {
				each := int64(time.Second) / unit // of a second; floored, since years before 1970 are below 0
				s := v.Int64() / each
				if v.Int64()%each < 0 {
					s--
				}
				return isoTime(time.Unix(s, (v.Int64()-s*each)*unit))
			}, nil
		case *format.NullType:
			return func(parquet.Value) string { return "" }, nil
		case *format.DecimalType:
			return decimalText(t.Kind(), int(i.Scale))
		}
	}
	switch k := t.Kind(); {
	case k == parquet.Boolean:
		return func(v parquet.Value) string { return strconv.FormatBool(v.Boolean()) }, nil
	case k == parquet.Int32 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) }, nil
	case k == parquet.Int32:
		return func(v parquet.Value) string { return strconv.FormatInt(int64(v.Int32()), 10) }, nil
	case k == parquet.Int64 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }, nil
	case k == parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(v.Int64(), 10) }, nil
	case k == parquet.Int96:
		return func(v parquet.Value) string { return int96Time(v.Int96()) }, nil
	case k == parquet.Float:
		return func(v parquet.Value) string { return decimal(float64(v.Float()), 1<<24, 32) }, nil
	case k == parquet.Double:
		return func(v parquet.Value) string { return decimal(v.Double(), 1<<53, 64) }, nil
	case k == parquet.ByteArray:
		return func(v parquet.Value) string { return string(v.ByteArray()) }, nil
	}
	return nil, fmt.Errorf("type must be boolean, integer, float, decimal, date, timestamp or string (got %v)", t)
}

// half returns the value of a 16-bit float (IEEE 754 binary16).
func half(b uint16) float32 {
	bits := uint32(b>>15)<<31 | uint32(b&(1<<15-1))<<13
	if b>>10&31 == 31 { // infinite, or no number
		return math.Float32frombits(bits | 255<<23)
	}
	return math.Float32frombits(bits) * 0x1p112 // exact: the factor corrects the exponent
}

// isoTime writes a point in time in UTC, without the hour if it is midnight.
func isoTime(at time.Time) string {
	at = at.UTC()
	if at.Equal(at.Truncate(24 * time.Hour)) {
		return at.Format("2006-01-02")
	}
	return at.Format("2006-01-02T15:04:05.999999999Z")
}

// int96Time writes a time as Spark and Impala store it: nanoseconds of the day and the Julian day.
func int96Time(v deprecated.Int96) string {
	const epoch = 2440588 // the Julian day of 1970-01-01
	nanos := int64(v[1])<<32 | int64(v[0])
	return isoTime(time.Unix((int64(v[2])-epoch)*86400, nanos))
}

// decimalText returns how decimals of that scale are written.
func decimalText(kind parquet.Kind, scale int) (func(parquet.Value) string, error) {
	if scale < 0 || scale > 76 {
		return nil, fmt.Errorf("scale of a decimal must be 0 to 76 (got %d)", scale)
	}
	write := func(n *big.Int) string {
		sign, digits := "", n.String()
		if n.Sign() < 0 {
			sign, digits = "-", digits[1:]
		}
		if scale == 0 {
			return sign + digits
		}
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	switch kind {
	case parquet.Int32:
		return func(v parquet.Value) string { return write(big.NewInt(int64(v.Int32()))) }, nil
	case parquet.Int64:
		return func(v parquet.Value) string { return write(big.NewInt(v.Int64())) }, nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(v parquet.Value) string {
			b := v.ByteArray() // two's complement, the highest byte first
			n := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return write(n)
		}, nil
	}
	return nil, fmt.Errorf("a decimal must be stored as integer or bytes (got %v)", kind)
}

// recovered turns a panic of the Parquet library into an error: on damaged files it may index out
// of range.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged Parquet file: %v", r)
	}
}

// decimal writes a number: as an integer if it is whole and its type represents it exactly, as for all below most.
func decimal(v, most float64, bits int) string {
	form := byte('g')
	if math.Abs(v) < most && v == math.Trunc(v) {
		form = 'f'
	}
	return strconv.FormatFloat(v, form, -1, bits)
}
