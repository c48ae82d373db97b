#!/usr/bin/env bash
# Builds the Swift package Heddle for iPhones and their simulator: OUT/Heddle, with HeddleCore.xcframework. Needs macOS with
# Xcode.
#   ./ios.sh OUT
#
# UNTESTED: Xcode runs on macOS only. gobind's Objective-C for the package is made, and compared with testdata/api.txt, by the
# tests of this folder, which also parse the Swift; nothing has compiled either.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
trap 'rm -rf build' EXIT
mkdir -p build
rm -rf "$out/Heddle"
cp -R swift "$out/Heddle"
# gomobile looks for gobind beside it, of the same version.
GOBIN=$PWD/build go install golang.org/x/mobile/cmd/gomobile golang.org/x/mobile/cmd/gobind
PATH=$PWD/build:$PATH gomobile bind -target=ios,iossimulator -iosversion=15.0 -trimpath -tags=no_websocket -ldflags='-s -w' \
	-o "$out/Heddle/HeddleCore.xcframework" github.com/heddle-gnn/heddle/mobile
cp ../../LICENSE "$out/Heddle"
CGO_ENABLED=1 go run github.com/heddle-gnn/heddle/packaging/notices -out "$out/Heddle/NOTICES" -targets ios/arm64 -tags no_websocket .
