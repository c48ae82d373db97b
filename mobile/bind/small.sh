# shellcheck shell=bash
# How the library for phones is linked: go build "${small[@]}". Sourced by android.sh and jvm.sh in this folder. It writes
# build/small.mod: go.mod, and protobuf from a copy in which patch/descfmt.go.txt replaces what prints descriptors.
protobuf=$(go mod download -json google.golang.org/protobuf@"$(go list -m -f '{{.Version}}' google.golang.org/protobuf)" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
mkdir -p build
rm -rf build/protobuf
cp -r "$protobuf" build/protobuf
chmod -R u+w build/protobuf
find build/protobuf/internal/descfmt -name '*_test.go' -delete
cp patch/descfmt.go.txt build/protobuf/internal/descfmt/stringer.go
cp go.sum build/small.sum
{ cat go.mod; echo 'replace google.golang.org/protobuf => ./build/protobuf'; } > build/small.mod

# Only what computes is compiled with inlining, the rest without: 1.3 MB less.
small=(-modfile=build/small.mod -buildmode=c-shared -trimpath -tags=no_websocket -gcflags=all=-l)
for one in runtime internal crypto/internal math sync gonum.org \
	github.com/heddle-gnn/heddle/{classmeans,comm,fullbatch,graph,internal,kernels,mat,minibatch,nn,retexo,rng,train}; do
	small+=("-gcflags=$one/...=")
done
for one in internal/{admission,disclosure,leaf,p2p/...} nn nn/modelfile; do
	small+=("-gcflags=github.com/heddle-gnn/heddle/$one=-l")
done
