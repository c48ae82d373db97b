package fullbatch

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// job is what the workers of apart find in their directory.
type job struct {
	Settings settings
	Fetch    string
	Parts    int
}

// apart trains with one process a worker.
func apart(ctx context.Context, s settings, fetch string, shards []*shard.Shard) ([]measured, error) {
	dir, err := os.MkdirTemp("", "fullbatch")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := shard.WriteDir(filepath.Join(dir, "parts"), shards, shard.Meta{}); err != nil {
		return nil, err
	}
	b, err := json.Marshal(job{s, fetch, len(shards)})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "job"), b, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := make([]measured, len(shards))
	group, ctx := errgroup.WithContext(ctx)
	for r := range shards {
		group.Go(func() error {
			c := exec.CommandContext(ctx, self, About.Name, "-child", dir+":"+strconv.Itoa(r))
			c.Stderr = os.Stderr
			out, err := c.Output()
			if err != nil {
				return fmt.Errorf("worker %d: %w", r, err)
			}
			return json.Unmarshal(out, &all[r])
		})
	}
	return all, group.Wait()
}

// work is one of the processes of apart. Garbage is collected when it is a tenth of what is in use.
func work(ctx context.Context, where string) error {
	debug.SetGCPercent(10)
	k := strings.LastIndexByte(where, ':')
	dir := where[:max(k, 0)]
	rank, err := strconv.Atoi(where[k+1:])
	if err != nil {
		return fmt.Errorf("child must be DIR:RANK (got %q)", where)
	}
	b, err := os.ReadFile(filepath.Join(dir, "job"))
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	shard, file, err := shard.ReadShard(filepath.Join(dir, "parts", fmt.Sprintf("part-%d", rank)))
	if err != nil {
		return err
	}
	defer file.Close()
	mesh, err := dial(dir, rank, j.Parts)
	if err != nil {
		return err
	}
	touch(shard)
	runtime.GC()
	debug.FreeOSMemory()
	before := measure.Resident("VmRSS", true)
	group := comm.NewGroup(mesh, rank, j.Parts)
	defer group.Close()
	t, err := trainOne(ctx, j.Settings.plan(j.Fetch, ""), shard, group, j.Settings.Late)
	if err != nil {
		return err
	}
	t.Resident = measure.Resident("VmHWM", false) - before
	return json.NewEncoder(os.Stdout).Encode(t)
}

// touch reads all of a shard, so that what is mapped is resident.
func touch(s *shard.Shard) (sum float32) {
	for _, j := range s.Adj.Col {
		sum += float32(j)
	}
	for _, v := range s.X.Dense.Data {
		sum += v
	}
	return sum
}

// mesh is a comm.Transport between processes of one machine, over sockets in a directory.
type mesh struct {
	to   []net.Conn
	from []*bufio.Reader
}

// dial connects to all others: each waits for those of higher rank.
func dial(dir string, rank, parts int) (*mesh, error) {
	m := &mesh{make([]net.Conn, parts), make([]*bufio.Reader, parts)}
	l, err := net.Listen("unix", filepath.Join(dir, strconv.Itoa(rank)))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for q := range rank {
		var c net.Conn
		for until := time.Now().Add(time.Minute); c == nil; {
			if c, err = net.Dial("unix", filepath.Join(dir, strconv.Itoa(q))); err != nil {
				if time.Now().After(until) {
					return nil, err
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		if _, err := c.Write([]byte{byte(rank)}); err != nil {
			return nil, err
		}
		m.to[q], m.from[q] = c, bufio.NewReaderSize(c, 1<<16)
	}
	for range parts - 1 - rank {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		r := bufio.NewReaderSize(c, 1<<16)
		q, err := r.ReadByte()
		if err != nil || int(q) <= rank || int(q) >= parts {
			return nil, fmt.Errorf("rank %d called, of %d: %w", q, parts, err)
		}
		m.to[q], m.from[q] = c, r
	}
	return m, nil
}

func (m *mesh) Send(_ context.Context, to int, head, body []byte) error {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(head)+len(body)))
	buffers := net.Buffers{n[:], head, body}
	_, err := buffers.WriteTo(m.to[to])
	return err
}

func (m *mesh) Recv(_ context.Context, from int) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(m.from[from], n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(n[:]))
	_, err := io.ReadFull(m.from[from], b)
	return b, err
}

func (m *mesh) Free([]byte) {}

func (m *mesh) Close() error {
	for _, c := range m.to {
		if c != nil {
			c.Close()
		}
	}
	return nil
}
