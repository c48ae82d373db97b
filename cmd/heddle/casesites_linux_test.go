package main

import (
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

var processCases = []fieldCase{
	{"31-port-busy", "", func(c *trial) {
		c.sites(40, nil, nil)
		c.plan("")
		// while north waits, its key starts once more, and another key comes
		c.run(0, `met north --wait 4s > x1.log 2>&1 & sleep 1; met north --wait 3s --out x2
			met south --identity other.key --wait 3s --out x3; wait`,
			`port is in use.*--listen|--listen.*port is in use`, "is not among the 2 listed")
		c.run(1, "met north --wait 3s", `south, 12D3KooW\w+\): [^\n]*127\.0\.0\.1`)
		c.run(2, "heddle plan --out twice.yaml {north=$(cat north.id),south=$(cat south.id)}@127.0.0.1:4001",
			"south: its address must not be another member's|port.*another member")
		c.run(0, `sed 's,^seed: .*,seed: 7,' plan.yaml > other.yaml
			met south --plan other.yaml --wait 10s > south.log 2>&1 &
			met north --wait 10s; wait; cat south.log`,
			`has another plan.*seed is "1" at north and "7" at south.*has another plan.*seed`)
	}},
	{"34-sigterm", "long", func(c *trial) {
		c.patients(2000, 2, patientColumns, nil)
		c.run(0, "heddle import --nodes n.csv --edges e.csv"+byOutcome+"a")
		kept := `for k in {1..300}; do [ -n "$(find %[1]s -name 'state-*' 2> /dev/null)" ] && break; sleep .1; done; `
		train := "$PEER train --data a --method full-batch --peers 2 --model sage --rounds 100000 -q --out r"
		for signal, code := range map[string]string{"TERM": "143", "HUP": "129"} {
			c.run(0, "rm -rf r; "+train+" > t.log 2>&1 & p=$!; "+fmt.Sprintf(kept, "r")+"kill -"+signal+
				" $p; SECONDS=0; wait $p; echo code $? after $SECONDS s; cat t.log; ls r",
				"code "+code+" after [0-2] s", map[string]string{"TERM": "interrupted.*--resume"}[signal],
				"checkpoints")
		}
		c.run(0, "timeout -s TERM 5 "+train+" --resume; echo code $?", "interrupted.*code 124")
		c.sites(200, nil, nil)
		c.plan("--method full-batch --model sage --rounds 1500 --hidden 32")
		c.run(0, "meet plan.yaml", "south exits 0")
		c.run(0, `join() { exec timeout 90 "$PEER" join --plan plan.yaml --identity $1.key --shard $1-part/part-* \
				--state st-$1 --checkpoint-every 5 --wait 20s --rejoin 40s -q --out $1-run > $1.log 2>&1; }
			join north & n=$!; join south & s=$!
			`+fmt.Sprintf(kept, "st-south")+`kill -TERM $s; wait $s; echo south $?
			(join south); echo again $?; wait $n; echo north $?
			cmp {north,south}-run/model.safetensors && echo one model; tail -n 3 *.log`,
			"south 143.*again 0.*north 0.*one model")
	}},
	{"35-limits", "", func(c *trial) {
		c.patients(240, 2, patientColumns+"|site", func(k int, x row) { x["site"] = fmt.Sprintf("s%02d", k%24) })
		c.run(0, "heddle import --nodes n.csv --edges e.csv --site-column site"+byOutcome+"a", "24 sites")
		train := "timeout 60 $PEER train --data a -q --rounds 5 --method full-batch --out r --peers "
		files := "open files.*ulimit -n|ulimit -n.*open files"
		for _, limit := range []string{"ulimit -n 20; %s24", "ulimit -n 64; %s24 --carrier tcp"} {
			text := c.run(either, fmt.Sprintf(limit, train), files+"|accuracy [0-9.]+ % test", "!goroutine")
			if strings.Contains(text, "interrupted") {
				c.fault("%s hangs:\n%s", limit, text)
			}
		}
		c.run(0, "GOMEMLIMIT=20MiB "+train+"1", tested)
		c.run(0, "GOMAXPROCS=1 "+train+"2 && cp r/model.safetensors one && "+train+"2 && cmp one r/model.safetensors",
			tested)
		c.run(0, "TMPDIR=/nonexistent "+train+"2", tested)
	}},
	{"39-doctor-at-both", "", func(c *trial) {
		for range 3 {
			c.plan("")
			c.run(0,
				`for x in north south; do
					timeout 30 "$PEER" doctor --plan plan.yaml --identity $x.key --wait 10s > $x.log 2>&1 &
				done; wait; cat north.log south.log`,
				"reached +south.*reached +north", "!FAULT")
		}
	}},
}

// apart is a separate network, with only the loopback.
const apart = `unshare -n -m bash -c 'ip link set lo up; `

var networkCases = []fieldCase{
	{"28-udp-dropped", "root", func(c *trial) {
		c.sites(40, nil, nil)
		c.plan("")
		// A - R - B: R silently drops UDP
		c.write("net.sh", prelude+`
			mount -t tmpfs none /run; mkdir -p /run/netns
			for x in A R B; do ip netns add $x && ip -n $x link set lo up || exit 1; done
			link() { # NAMESPACE ITS-ADDRESS ROUTER'S-ADDRESS
				ip link add v$1 type veth peer name r$1; ip link set v$1 netns $1; ip link set r$1 netns R
				ip -n $1 addr add $2/24 dev v$1; ip -n R addr add $3/24 dev r$1
				ip -n $1 link set v$1 up; ip -n R link set r$1 up; ip -n $1 route add default via $3
			}
			link A 10.0.1.1 10.0.1.2; link B 10.0.2.1 10.0.2.2; ip netns exec R sysctl -qw net.ipv4.ip_forward=1
			ip -n R rule add pref 0 ipproto udp blackhole; ip -n R rule del pref 0 from all lookup local
			ip -n R rule add pref 100 from all lookup local
			heddle plan $1 --out plan.yaml north=$(cat north.id)@10.0.1.1:4001 \
				south=$(cat south.id)@10.0.2.1:4001 || exit 1
			export PEER; export -f met peer; rm -rf *-part
			for s in "A north" "B south"; do
				case $2 in
				doctor) ip netns exec ${s% *} $PEER doctor --plan plan.yaml --identity ${s#* }.key --wait 6s \
					> ${s#* }.log 2>&1 & ;;
				meet) ip netns exec ${s% *} bash -c "met ${s#* } --wait 8s" > ${s#* }.log 2>&1 & ;;
				esac
			done
			SECONDS=0; wait; echo ended after $SECONDS s; cat north.log south.log`)
		for _, flags := range []string{"--carrier auto", "--carrier tcp", "--carrier ws"} {
			c.run(0, "unshare -n -m bash net.sh '"+flags+"' meet; ls -d north-part south-part", "ended after \\d s",
				"north-part\nsouth-part")
		}
		for _, flags := range []string{"", "--carrier quic"} {
			c.run(either, "unshare -n -m bash net.sh '"+flags+"' meet; ls", "UDP.*--carrier|north-part\nsouth-part")
		}
		c.run(either, "unshare -n -m bash net.sh '--carrier quic' doctor", "UDP.*--carrier (tcp|auto)")
	}},
	{"29-address-not-here", "root", func(c *trial) {
		c.sites(40, nil, nil)
		c.plan("--carrier quic")
		c.run(0, "heddle plan --carrier quic --out plan.yaml north=$(cat north.id)@203.0.113.7:21300 "+
			"south=$(cat south.id)")
		c.write("meet.sh", prelude+`
			ip link set lo up; north="--wait 2s"
			if [ $1 != here ]; then
				ip addr add 203.0.113.7/32 dev lo
				north="--wait 12s --listen /ip4/0.0.0.0/udp/21300/quic-v1"
			fi
			met north $north > north.log 2>&1 & [ $1 = here ] || met south --wait 12s; wait; cat north.log`)
		c.run(0, "unshare -n -m bash meet.sh here", "listen[^\n]* /ip4/0.0.0.0/udp/21300/quic-v1")
		c.run(0, "unshare -n -m bash meet.sh forwarded",
			"nodes here are neighbours there.*nodes here are neighbours there")
	}},
	{"30-names-and-ipv6", "root", func(c *trial) {
		c.sites(40, nil, nil)
		c.plan("")
		c.write("meet.sh", prelude+"\nmeet plan.yaml")
		go2 := func(north, south, before, more string) string {
			return fmt.Sprintf("heddle plan --out plan.yaml %s north=$(cat north.id)@%s south=$(cat south.id)@%s "+
				"&& %s %s; bash meet.sh'", more, north, south, apart, before)
		}
		for _, carrier := range []string{"quic", "tcp", "ws", "auto"} {
			c.run(0, go2("[::1]:4001", "[::1]:4002", "true", "--carrier "+carrier), "north exits 0.*south exits 0")
			c.run(0, go2("localhost:4001", "localhost:4002", "true", "--carrier "+carrier),
				"north exits 0.*south exits 0")
		}
		hosts := "echo 127.0.0.1 localhost > hosts; mount --bind hosts /etc/hosts"
		c.run(0, fmt.Sprintf("heddle plan --out plan.yaml north=$(cat north.id)@hospital-a.invalid:4001 "+
			"south=$(cat south.id)@127.0.0.1:%d", testenv.FreePorts(c, 1)))
		c.run(1, "met south --wait 4s --out x", "hospital-a.invalid.*(resolve|lookup|no such host|no address)")
		c.run(0, go2("hospital-a.test:4001", "127.0.0.1:4002", hosts+"; (sleep 3; echo 127.0.0.1 "+
			"hospital-a.test >> hosts) & true", ""), "north exits 0.*south exits 0")
	}},
	{"32-no-home", "root", func(c *trial) {
		c.patients(90, 2, patientColumns, nil)
		bare := "env -i " + asPeer + "=1 "
		c.run(0, bare+"$PEER import --nodes n.csv --edges e.csv"+byOutcome+"a", imported)
		c.run(0, bare+"$PEER train --data a"+oneMachine+"--rounds 5 --out r", tested)
		c.run(2, bare+"$PEER init", "--identity")
		c.run(0, "ls -A; [ ! -e .config ] && [ ! -e identity.key ] && [ ! -e heddle ]")
		c.run(0, bare+"$PEER init --identity k.key", "12D3KooW")
		c.run(either, bare+"$PEER doctor", "kernels")
		c.run(0, "[ ! -e .config ] && [ ! -e identity.key ]")
		c.run(2, "unshare -m bash -c 'mkdir ro; mount -t tmpfs -o ro none ro; "+bare+"HOME=$PWD/ro $PEER init'",
			"identity.*read-only")
		c.run(2, "unshare -m bash -c 'mount -t tmpfs -o ro none ro; cd ro; $PEER train --data ../a"+
			oneMachine+"--rounds "+
			"100000'", "cannot write.*read-only", "!interrupted")
		c.run(0,
			`t=$(mktemp -d); cp -r a "$PEER" $t; chmod -R a+rwX $t; cd $t; chmod a+x $(basename "$PEER")
			setpriv --reuid 54321 --regid 54321 --clear-groups `+bare+
				`TMPDIR=/tmp ./$(basename "$PEER") train --data a`+oneMachine+
				"--rounds 5 --out r; code=$?; rm -rf $t; exit $code",
			tested)
	}},
	{"33-full-disk", "root", func(c *trial) {
		c.patients(3000, 2, patientColumns, nil)
		c.run(0, "mkdir small; heddle import --nodes n.csv --edges e.csv"+byOutcome+"a")
		small := "unshare -m bash -c 'mount -t tmpfs -o size=%s none small; %s'"
		whole := "; code=$?; ls -A small/*; exit $code"
		c.run(1, fmt.Sprintf(small, "40k", "$PEER import --nodes n.csv --edges e.csv"+byOutcome+"small/a"+whole),
			"small/.*no space left", `!graph\.npz\n`)
		train := "$PEER train --data a" + oneMachine + "--rounds 5 --out small/r --hidden "
		c.run(1, fmt.Sprintf(small, "30k", train+"128"+whole), "write small/r/.*no space left", `!model\.safetensors\n`)
		c.run(1, fmt.Sprintf(small, "400k", train+"16 > first.log; cp small/r/model.safetensors "+
			"old; head -c 400k /dev/zero > small/fill; "+train+
			"16 --seed 9; code=$?; cmp old small/r/model.safetensors "+
			"&& echo kept; exit $code"),
			"no space left.*kept")
		predict := "heddle predict --model r/model.safetensors --data a --out "
		c.run(1, "heddle train --data a"+oneMachine+"--rounds 5 --out r && "+predict+"/dev/full",
			"write /dev/full: no space left")
		c.run(0, predict+"- | head -1; echo code ${PIPESTATUS[0]}", "id,class,probability.*code (141|0|1)")
		c.run(1, "heddle import --nodes n.csv --edges e.csv --out b --label-column outcome > /dev/full",
			"no space left")
	}},
}
