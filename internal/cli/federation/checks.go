package federation

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pbnjay/memory"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

// Bounds of what the doctor accepts.
const (
	wantUDPBuffer = 7 << 20                // bytes, what quic-go requests
	wantDisk      = 1 << 30                // bytes
	slowSync      = 100 * time.Millisecond // of a file of 4 KiB
	skewNote      = 5 * time.Second        // of two clocks
	skewFault     = time.Minute            // memberships and hours of a policy are then judged at the wrong time

	leastFiles, filesPerMember = 256, 16 // of sockets, checkpoints and arrays
)

// memory compares the memory of the machine with the size of the shard.
func (d *doctor) memory() {
	total := int64(memory.TotalMemory())
	if d.shard == "" {
		d.fine("memory", "%s", cli.Bytes(total))
		return
	}
	var size int64
	err := filepath.WalkDir(d.shard, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	switch {
	case err != nil:
		d.fault("shard", "give the directory that heddle partition wrote", "%v", err)
	case total == 0:
		d.fine("memory", "unknown; the shard has %s", cli.Bytes(size))
	case size > total:
		d.fault("memory", "cut the graph into more parts, or use a larger machine",
			"the shard has %s and the machine %s",
			cli.Bytes(size), cli.Bytes(total))
	case size > total/3:
		d.advise("memory", "the rows of all layers may not fit: use smaller hidden layers, encoder pca, or more parts",
			"the shard has %s and the machine %s", cli.Bytes(size), cli.Bytes(total))
	default:
		d.fine("memory", "%s, the shard has %s", cli.Bytes(total), cli.Bytes(size))
	}
}

// disk measures the disk that checkpoints are written to.
func (d *doctor) disk() {
	if err := os.MkdirAll(d.state, 0o755); err != nil {
		d.fault("disk", "give another --state", "%v", err)
		return
	}
	took, err := syncTime(d.state)
	if err != nil {
		d.fault("disk", "give a --state on a disk that can be written to", "%v", err)
		return
	}
	free, err := cli.DiskFree(d.state)
	space := "space unknown"
	if err == nil {
		space = cli.Bytes(free) + " free"
	}
	switch {
	case err == nil && free < wantDisk:
		d.fault("disk", "free some space, or give another --state: it must hold two checkpoints and the model",
			"%s, fsync %s", space, took)
	case took > slowSync:
		d.advise("disk", "write checkpoints less often: checkpoint_every in the plan", "%s, fsync %s", space, took)
	default:
		d.fine("disk", "%s, fsync %s", space, took)
	}
}

// syncTime is the median time of writing a small file durably.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range 5 {
		begun := time.Now()
		if _, err := f.WriteAt(make([]byte, 4<<10), 0); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun).Round(10*time.Microsecond))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func (d *doctor) buffers() {
	got, err := cli.UDPBuffer(wantUDPBuffer)
	switch {
	case err != nil:
		d.fine("udp", "buffer unknown: %v", err)
	case got < wantUDPBuffer:
		d.advise("udp",
			"sysctl -w net.core.rmem_max=7500000 net.core.wmem_max=7500000 (and in /etc/sysctl.d), or carrier tcp",
			"receive buffer of %s, less than the %s that QUIC requests: fast links lose packets", cli.Bytes(int64(got)),
			cli.Bytes(wantUDPBuffer))
	default:
		d.fine("udp", "receive buffer of %s", cli.Bytes(int64(got)))
	}
}

// sightings reports who was reached and how, and draws conclusions about UDP and the clock.
func (d *doctor) sightings(found []node.Sighting) {
	ways := map[string][]node.Sighting{}
	var order []string
	for _, s := range found {
		key := s.Name + " " + s.ID
		if ways[key] == nil {
			order = append(order, key)
		}
		ways[key] = append(ways[key], s)
	}
	udp, noUDP := 0, 0
	var skews []time.Duration
	for _, key := range order {
		reached, direct := false, false
		for _, s := range ways[key] {
			if s.Err == nil {
				reached, direct = true, direct || s.Via != "relay"
			}
		}
		for _, s := range ways[key] {
			who := fmt.Sprintf("%s (%.10s…)", s.Name, s.ID)
			if s.Via != "" {
				who += " by " + s.Via
			}
			if s.Address != "" {
				who += " at " + s.Address
			}
			switch {
			case s.Err == nil:
				d.fine("reached", "%s: round trip %s, %.1f MB/s", who, s.RoundTrip.Round(10*time.Microsecond),
					s.Rate/1e6)
				skews = append(skews, s.Ahead)
			case reached:
				d.advise("reached", "no action needed: another way works", "not %s: %v", who, s.Err)
			case s.Relay:
				d.fault("relay", "check that heddle relay runs there, and that its roster lists this peer", "%s: %v",
					who, s.Err)
			default:
				port, drops := "port", ""
				if s.Via == "quic" {
					port, drops = "UDP port", "; where UDP is dropped, write the plan with --carrier auto or tcp"
				}
				d.fault("reached", "check that join or doctor runs there now, and that its firewall allows this "+port+
					"; if neither side can be dialled, run a heddle relay"+drops, "not %s: %v", who, s.Err)
			}
			if s.Via == "quic" && s.Err == nil {
				udp++
			}
			if s.Via == "quic" && s.Err != nil && direct {
				noUDP++
			}
		}
		if reached && !direct && !ways[key][0].Relay {
			d.advise("reached", "hole punching may work when the session begins; otherwise open a port on one side",
				"%s only through a relay", key)
		}
	}
	switch {
	case noUDP > 0 && udp == 0:
		d.advise("udp", "use carrier auto or tcp in the plan, or allow UDP to the members' ports",
			"UDP seems to be blocked: %d members answer over TCP and not over QUIC", noUDP)
	case udp > 0:
		d.fine("udp", "not blocked")
	}
	d.nat(found)
	d.clock(skews)
}

// clock reports the median difference to the clocks of the others.
func (d *doctor) clock(skews []time.Duration) {
	if len(skews) == 0 {
		d.fine("clock", "%s; no member answered to compare with", time.Now().UTC().Format(time.RFC3339))
		return
	}
	slices.Sort(skews)
	skew := skews[len(skews)/2]
	// The median, because one member with a wrong clock must not put the blame on this machine.
	const remedy = "set the clock by the network (timedatectl set-ntp true, w32tm /resync), unless the others are wrong"
	switch {
	case skew.Abs() > skewFault:
		d.fault("clock", remedy, "%s behind the others: memberships and hours would be judged at the wrong time",
			skew.Round(time.Second))
	case skew.Abs() > skewNote:
		d.advise("clock", remedy, "%s behind the others: times in logs will not agree", skew.Round(time.Second))
	default:
		d.fine("clock", "%s from the others", skew.Round(time.Millisecond))
	}
}

// files compares the limit of open files with what sockets and files of a run need.
func (d *doctor) files(members int) {
	most, err := cli.OpenFiles()
	switch want := uint64(leastFiles + filesPerMember*members); {
	case err != nil:
		d.fine("files", "limit unknown: %v", err)
	case most < want:
		d.fault("files", "raise it: ulimit -n 4096 in the shell, LimitNOFILE=4096 in the systemd unit",
			"%d open files are allowed, and a run of %d members needs up to %d", most, members, want)
	default:
		d.fine("files", "%d open files are allowed", most)
	}
}
