#!/usr/bin/env bash
# Builds heddle.aar for Android from 9 (API 28) on: classes and a library for each instruction set. Needs the SDK's android.jar
# and NDK r28 or later.
#   ANDROID_HOME=... ANDROID_NDK_HOME=... ./android.sh OUT
#
# UNTESTED: no NDK could be had where this was written. jvm.sh goes the same way with gcc and is tested; what differs is the
# compiler, and the log and Context of the system in place of stubs. Flags and layout are from the documentation of NDK and AAR.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
api=28
clang=$ANDROID_NDK_HOME/toolchains/llvm/prebuilt/$(uname -s | tr '[:upper:]' '[:lower:]')-x86_64/bin
platform=$(find "$ANDROID_HOME/platforms" -name android.jar | sort -V | tail -n 1)
work=build/android
trap 'rm -rf build' EXIT
rm -rf "$work"
mkdir -p "$work/aar" "$work/classes"
go tool gobind -lang=java,go -tags=no_websocket -outdir="$work" github.com/heddle-gnn/heddle/mobile
./small.sh

# Pages of 16 KiB: Google Play requires them, and the linker of NDK r27 and before does not make them by itself.
# Packed relocations take 2 MB less; Android reads them from API 28 on, under the tags of its own before API 30.
link='-s -w -extldflags=-Wl,-soname=libgojni.so,-z,max-page-size=16384,--pack-dyn-relocs=android+relr,--use-android-relr-tags'
build() { # ABI GOARCH TRIPLE
	mkdir -p "$work/aar/jni/$1"
	CC="$clang/$3$api-clang" CGO_ENABLED=1 CGO_CFLAGS='-O2 -D__GOBIND_ANDROID__' GOOS=android GOARCH=$2 GOARM=7 \
		go build -modfile=build/small.mod -buildmode=c-shared -trimpath -tags=no_websocket -gcflags=github.com/...=-l -gcflags=golang.org/...=-l -gcflags=google.golang.org/...=-l -gcflags=go.uber.org/...=-l -gcflags=github.com/heddle-gnn/...= -gcflags=github.com/heddle-gnn/heddle/plan=-l -gcflags=github.com/heddle-gnn/heddle/internal/admission=-l -gcflags=crypto/tls=-l -gcflags=crypto/x509=-l -gcflags=net=-l -ldflags="$link" \
		-o "$work/aar/jni/$1/libgojni.so" "./$work/src/gobind"
	rm -f "$work/aar/jni/$1/libgojni.h"
}
build arm64-v8a arm64 aarch64-linux-android
build armeabi-v7a arm armv7a-linux-androideabi
build x86_64 amd64 x86_64-linux-android

find "$work/java" -name '*.java' -print0 | xargs -0 javac -nowarn -source 8 -target 8 -bootclasspath "$platform" -d "$work/classes"
jar --create --file "$work/aar/classes.jar" -C "$work/classes" .
printf '<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="go.mobile.gojni">\n  <uses-sdk android:minSdkVersion="%s"/>\n  <uses-permission android:name="android.permission.INTERNET"/>\n</manifest>\n' "$api" > "$work/aar/AndroidManifest.xml"
printf -- '-keep class go.** { *; }\n-keep class mobile.** { *; }\n' > "$work/aar/proguard.txt"
: > "$work/aar/R.txt"
rm -f "$out/heddle.aar"
(cd "$work/aar" && zip -qr "$out/heddle.aar" .)
