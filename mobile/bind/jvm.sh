#!/usr/bin/env bash
# Builds package mobile for a Java machine on this host, from the classes and the JNI code that gobind makes for Android:
# OUT/libgojni.so and OUT/classes. Needs gcc and a JDK.
#   ./jvm.sh OUT [SOURCE.java...]
set -euo pipefail
out=$(mkdir -p "$1/classes" && cd "$1" && pwd)
shift
cd "$(dirname "$0")"
java_home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
work=build/jvm # inside the module, as what gobind makes imports from it
trap 'rm -rf build' EXIT
rm -rf "$work"
mkdir -p "$work/include/android" "$work/java/android/content"
go tool gobind -lang=java,go -tags=no_websocket -outdir="$work" github.com/heddle-gnn/heddle/mobile

# Android's names of files keep them out of a build for Linux. Its log and its Context are all that is used of the system.
for file in "$work"/src/gobind/*_android.{c,go}; do
	sed -e 's/-llog//' -e 's/#cgo CFLAGS: -Werror/#cgo CFLAGS: -Wno-incompatible-pointer-types/' "$file" > "${file/_android./_jvm.}"
	rm "$file"
done
cat > "$work/include/android/log.h" <<-'END'
	#pragma once
	#include <stdio.h>
	enum { ANDROID_LOG_INFO = 4, ANDROID_LOG_FATAL = 7 };
	#define __android_log_print(level, tag, ...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
END
printf 'package android.content;\npublic class Context { public Context getApplicationContext() { return this; } }\n' > "$work/java/android/content/Context.java"

. ./small.sh
CGO_ENABLED=1 go run github.com/heddle-gnn/heddle/packaging/notices -out "$out/NOTICES" -targets "$(go env GOOS)/$(go env GOARCH)" -tags no_websocket .
CGO_ENABLED=1 CGO_CFLAGS="-O2 -D__GOBIND_ANDROID__ -I$java_home/include -I$java_home/include/linux -I$PWD/$work/include" \
	go build "${small[@]}" -ldflags='-s -w -extldflags=-Wl,-z,pack-relative-relocs,-z,max-page-size=16384' -o "$out/libgojni.so" "./$work/src/gobind"
find "$work/java" -name '*.java' -print0 | xargs -0 javac -nowarn -d "$out/classes" "$@"
