#!/usr/bin/env bash
# Writes build/small.mod, with which the library for phones is linked: go.mod, and protobuf from a copy in which
# patch/descfmt.go.txt takes the place of what prints descriptors.
#   ./small.sh && go build -modfile=build/small.mod -tags=no_websocket ...
set -euo pipefail
cd "$(dirname "$0")"
protobuf=$(go mod download -json google.golang.org/protobuf@"$(go list -m -f '{{.Version}}' google.golang.org/protobuf)" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
mkdir -p build
rm -rf build/protobuf
cp -r "$protobuf" build/protobuf
chmod -R u+w build/protobuf
find build/protobuf/internal/descfmt -name '*_test.go' -delete
cp patch/descfmt.go.txt build/protobuf/internal/descfmt/stringer.go
cp go.sum build/small.sum
{ cat go.mod; echo 'replace google.golang.org/protobuf => ./build/protobuf'; } > build/small.mod
