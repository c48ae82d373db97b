package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/internal/disk"
)

var run = Fingerprints{Config: [32]byte{1}, Model: [32]byte{2}, Shard: [32]byte{3}}

// stateOf returns a state that differs from the states of other numbers.
func stateOf(n int) *State {
	return &State{
		Fingerprints: run,
		Header:       []byte(`{"layer":1}`),
		F32:          map[string][]float32{"layer1.nbr.weight": {float32(n), -0.5, float32(math.Inf(1))}, "empty": {}},
		F64:          map[string][]float64{"best": {1.0 / 3, math.Copysign(0, -1)}},
		I64:          map[string][]int64{"steps": {int64(n), math.MinInt64}},
		U8:           map[string][]byte{"digest": {0, 255}},
	}
}

func checkState(t *testing.T, got *State, n int) {
	t.Helper()
	want := stateOf(n)
	want.Seq = uint64(n)
	if got == nil {
		t.Fatalf("no state, want number %d", n)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v\nwant  %+v", *got, want)
	}
}

// latest returns the newest state that can be read, and how many are damaged.
func latest(s *Store) (st *State, damaged int, err error) {
	all, err := s.List()
	if err != nil {
		return nil, 0, err
	}
	seqs, st, err := s.Readable(run)
	return st, len(all) - len(seqs), err
}

func save(t *testing.T, s *Store, n int) {
	t.Helper()
	if err := s.Save(uint64(n), stateOf(n)); err != nil {
		t.Fatal(err)
	}
}

func checkList(t *testing.T, s *Store, want ...uint64) {
	t.Helper()
	if got, err := s.List(); err != nil || !slices.Equal(got, want) {
		t.Errorf("states %d (%v), want %d", got, err, want)
	}
	files, err := os.ReadDir(s.Dir)
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files (%v), want the %d states alone", len(files), err, len(want))
	}
}

func TestStoreKeepsTheTwoNewest(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "new", "dir")}
	if st, _, err := latest(s); st != nil || err != nil {
		t.Fatalf("of an empty store: %v, %v", st, err)
	}
	for n := range 12 {
		save(t, s, n)
		st, damaged, err := latest(s)
		if err != nil || damaged != 0 {
			t.Fatal(err, st)
		}
		checkState(t, st, n)
	}
	checkList(t, s, 11, 10)
	st, err := s.Load(10, run)
	if err != nil {
		t.Fatal(err)
	}
	checkState(t, st, 10)
	if _, err := s.Load(9, run); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a state that was removed: %v", err)
	}
	// The same number again replaces; a run that went back leaves nothing newer.
	save(t, s, 11)
	checkList(t, s, 11, 10)
	save(t, s, 5)
	checkList(t, s, 5)
	save(t, s, 6)
	checkList(t, s, 6, 5)
}

// A run that went back to a state keeps it until there are two newer ones. A newer state from before is gone as soon as
// the older one is restored, and stays if it is not.
func TestRestoreRemovesNewerStates(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 10)
	save(t, s, 17)
	other := run
	other.Config[0]++
	if _, err := s.Restore(10, other); err == nil {
		t.Error("a state of another run was restored")
	}
	if _, err := s.Restore(11, run); err == nil {
		t.Error("a state that is not there was restored")
	}
	checkList(t, s, 17, 10)
	st, err := s.Restore(10, run)
	if err != nil {
		t.Fatal(err)
	}
	checkState(t, st, 10)
	checkList(t, s, 10)
	save(t, s, 25)
	checkList(t, s, 25, 10)
	if _, err := s.Restore(25, run); err != nil {
		t.Fatal(err)
	}
	checkList(t, s, 25, 10)
	if _, err := (&Store{Dir: filepath.Join(t.TempDir(), "none")}).Restore(3, run); err == nil {
		t.Error("restored from no directory")
	}
}

func TestDamagedNewestFallsBack(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 1)
	save(t, s, 2)
	path := s.Path(2)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"empty": {}, "short": good[:len(good)-1], "long": append(slices.Clone(good), 0)}
	for i := range good {
		b := slices.Clone(good)
		b[i] ^= 1 << (i % 8)
		damaged[fmt.Sprintf("byte %d", i)] = b
	}
	for name, b := range damaged {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		st, damaged, err := latest(s)
		if err != nil || damaged != 1 {
			t.Fatalf("%s: %d damaged, %v, must be one", name, damaged, err)
		}
		checkState(t, st, 1)
		if _, err := s.Load(2, run); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: %v does not name %s", name, err, path)
		}
	}
	if err := os.WriteFile(s.Path(1), good, 0o600); err != nil { // complete, but of another number
		t.Fatal(err)
	}
	if st, damaged, err := latest(s); st != nil || damaged != 2 || err != nil {
		t.Errorf("without a readable state: %v, %d damaged, %v", st, damaged, err)
	}
	if _, err := s.Load(1, run); err == nil || !strings.Contains(err.Error(), "must hold state 1 (got 2)") {
		t.Errorf("a state under another number: %v", err)
	}
}

func TestStateOfAnotherRunIsRefused(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 1)
	for want, change := range map[string]func(*Fingerprints){
		"config":        func(f *Fingerprints) { f.Config[31]++ },
		"model":         func(f *Fingerprints) { f.Model[0]++ },
		"shard":         func(f *Fingerprints) { f.Shard[5]++ },
		"config, shard": func(f *Fingerprints) { f.Config[0]++; f.Shard[0]++ },
	} {
		fp := run
		change(&fp)
		_, _, err := s.Readable(fp)
		var other *MismatchError
		if !errors.As(err, &other) || strings.Join(other.Which, ", ") != want || other.Path != s.Path(1) {
			t.Errorf("other %s: %v", want, err)
		}
	}
}

// A newest state of another run is no reason to go on from an older one.
func TestMismatchDoesNotFallBack(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 1)
	st := stateOf(2)
	st.Fingerprints.Model[9]++
	if err := s.Save(2, st); err != nil {
		t.Fatal(err)
	}
	if _, _, err := latest(s); !errors.As(err, new(*MismatchError)) {
		t.Errorf("want a mismatch, got %v", err)
	}
}

// fullDisk takes room bytes and then fails, as a full disk does.
type fullDisk struct {
	disk.OS
	room int
}

func (d *fullDisk) CreateTemp(dir, pattern string) (disk.File, error) {
	f, err := d.OS.CreateTemp(dir, pattern)
	return &fullFile{f, d}, err
}

type fullFile struct {
	disk.File
	on *fullDisk
}

var errFull = errors.New("no space left on device")

func (f *fullFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:min(len(b), f.on.room)])
	f.on.room -= n
	if err == nil && n < len(b) {
		err = errFull
	}
	return n, err
}

func TestFullDiskKeepsWhatWasSaved(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 1)
	save(t, s, 2)
	info, err := os.Stat(s.Path(2))
	if err != nil {
		t.Fatal(err)
	}
	for room := 0; room < int(info.Size()); room += 7 {
		s.on = &fullDisk{room: room}
		err := s.Save(3, stateOf(3))
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), s.Path(3)) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		checkList(t, s, 2, 1)
	}
	if err := s.Save(2, stateOf(7)); !errors.Is(err, errFull) { // over one that is there
		t.Fatal(err)
	}
	s.on = nil
	st, _, err := latest(s)
	if err != nil {
		t.Fatal(err)
	}
	checkState(t, st, 2)
	save(t, s, 3)
	checkList(t, s, 3, 2)
}

func TestUnwritableDirectory(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: inTheWay}
	if err := s.Save(1, stateOf(1)); err == nil || !strings.Contains(err.Error(), inTheWay) {
		t.Errorf("saved into a file: %v", err)
	}
	if _, _, err := latest(s); err == nil {
		t.Errorf("read from a file: %v", err)
	}
	// A directory where the state should go stops the rename, after all has been written.
	s = &Store{Dir: dir}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	save(t, s, 1)
	if err := os.MkdirAll(filepath.Join(s.Path(2), "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(2, stateOf(2)); err == nil || !strings.Contains(err.Error(), s.Path(2)) {
		t.Errorf("saved over a directory: %v", err)
	}
	if st, _, err := latest(s); err != nil {
		t.Error(err)
	} else {
		checkState(t, st, 1)
	}
	if os.Geteuid() == 0 {
		t.Log("root may write everywhere: a read-only directory is not tried")
		return
	}
	s = &Store{Dir: t.TempDir()}
	save(t, s, 1)
	if err := os.Chmod(s.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.Dir, 0o700)
	if err := s.Save(2, stateOf(2)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("saved into a read-only directory: %v", err)
	}
	checkList(t, s, 1)
}

// What a process that was killed while it wrote left behind goes with the next Save; other files
// stay.
func TestLeftoversGo(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	save(t, s, 1)
	left := filepath.Join(s.Dir, "."+filepath.Base(s.Path(2))+".123.tmp")
	other := filepath.Join(s.Dir, "state-7.ckpt")
	for _, path := range []string{left, other} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(t, s, 2)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half-written file is still there: %v", err)
	}
	if all, err := s.List(); err != nil || !slices.Equal(all, []uint64{2, 1}) {
		t.Errorf("states %d, %v", all, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

func TestSaveRefusesNames(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	st := stateOf(1)
	st.I64["no spaces"] = nil
	if err := s.Save(1, st); err == nil || !strings.Contains(err.Error(), "no spaces") {
		t.Errorf("a name with a space: %v", err)
	}
	checkList(t, s)
}

// Section files that are whole but no states.
func TestReadStateRefuses(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	head := section.Array("state", []byte(`{"seq":1,"config":"`+zeros+`","model":"`+zeros+`","shard":"`+zeros+`"}`))
	header := section.Array("header", []byte("{}"))
	path := filepath.Join(t.TempDir(), "state")
	for want, list := range map[string][]section.Section{
		"":                        {head, header},
		"missing":                 {head},
		"header is":               {header},
		"section \"state\"":       {section.Array("state", []byte("{")), header},
		"64 hexadecimal":          {section.Array("state", []byte(`{"seq":1,"config":"00"}`)), header},
		"begin with f32/":         {head, header, section.Array("f16/x", []int32{1})},
		"must be f32 of shape":    {head, header, section.Array("f32/x", []int32{1})},
		"must be i64 of shape":    {head, header, section.Array("f64/x", []float32{1})},
		"(got u8 of shape [1 1])": {head, header, section.Array("u8/x", []byte{1}, 1, 1)},
	} {
		if _, err := section.Write(path, stateKind, list); err != nil {
			t.Fatal(err)
		}
		_, err := readState(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
	if _, err := section.Write(path, "shard", []section.Section{head, header}); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(path); err == nil || !strings.Contains(err.Error(), `must be "state" (got "shard")`) {
		t.Errorf("a file of another kind: %v", err)
	}
}

// TestNote: the text that was kept last is read, whatever becomes of the states.
func TestNote(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "states")}
	if b, err := s.Note("generation"); b != nil || err != nil {
		t.Errorf("got %q, %v, must be empty", b, err)
	}
	for _, text := range []string{"1\n", "18\n"} {
		if err := errors.Join(s.KeepNote("generation", []byte(text)), s.KeepNote("usage", []byte("{}"))); err != nil {
			t.Fatal(err)
		}
		if b, err := (&Store{Dir: s.Dir}).Note("generation"); err != nil || string(b) != text {
			t.Errorf("got %q, %v, must be %q", b, err, text)
		}
	}
	save(t, s, 3)
	if err := s.rewind(0); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Note("generation"); err != nil || string(b) != "18\n" {
		t.Errorf("after states were removed: %q, %v", b, err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir, "sent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Note("sent"); err == nil || !strings.Contains(err.Error(), "the sent") {
		t.Errorf("a note that cannot be read: %v", err)
	}
}
