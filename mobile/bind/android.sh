#!/usr/bin/env bash
# Builds heddle.aar for Android from 9 (API 28) on: Kotlin and Java classes, and a library for each instruction set. Needs the
# SDK's android.jar, NDK r28 or later and Maven. OUT/maven is a Maven repository with it.
#   ANDROID_HOME=... ANDROID_NDK_HOME=... ./android.sh OUT VERSION
#
# UNTESTED: no NDK could be had where this was written. jvm.sh goes the same way with gcc and is tested, and so is kotlin.sh; what
# differs is the C compiler, and the log and Context of the system instead of stubs. Flags and layout are from the documentation
# of NDK, AAR and Maven.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
version=$2
cd "$(dirname "$0")"
api=28
clang=$ANDROID_NDK_HOME/toolchains/llvm/prebuilt/$(uname -s | tr '[:upper:]' '[:lower:]')-x86_64/bin
platform=$(find "$ANDROID_HOME/platforms" -name android.jar | sort -V | tail -n 1)
work=build/android
trap 'rm -rf build' EXIT
rm -rf "$work"
mkdir -p "$work/aar" "$work/classes"
go tool gobind -lang=java,go -tags=no_websocket -outdir="$work" github.com/heddle-gnn/heddle/mobile
. ./small.sh

# Pages of 16 KiB: Google Play requires them, and the linker of NDK r27 and before does not make them by itself.
# Packed relocations take 2 MB less; Android reads them from API 28 on, under the tags of its own before API 30.
link='-s -w -extldflags=-Wl,-soname=libgojni.so,-z,max-page-size=16384,--pack-dyn-relocs=android+relr,--use-android-relr-tags'
build() { # ABI GOARCH TRIPLE
	mkdir -p "$work/aar/jni/$1"
	CC="$clang/$3$api-clang" CGO_ENABLED=1 CGO_CFLAGS='-O2 -D__GOBIND_ANDROID__' GOOS=android GOARCH=$2 GOARM=7 \
		go build "${small[@]}" -ldflags="$link" -o "$work/aar/jni/$1/libgojni.so" "./$work/src/gobind"
	rm -f "$work/aar/jni/$1/libgojni.h"
}
build arm64-v8a arm64 aarch64-linux-android
build armeabi-v7a arm armv7a-linux-androideabi
build x86_64 amd64 x86_64-linux-android

find "$work/java" -name '*.java' -print0 | xargs -0 javac -nowarn -source 8 -target 8 -bootclasspath "$platform" -d "$work/classes"
kotlin/kotlin.sh "$work/classes" kotlin/*.kt > "$work/libraries"
jar --create --file "$work/aar/classes.jar" -C "$work/classes" .
printf '<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="go.mobile.gojni">\n  <uses-sdk android:minSdkVersion="%s"/>\n  <uses-permission android:name="android.permission.INTERNET"/>\n</manifest>\n' "$api" > "$work/aar/AndroidManifest.xml"
printf -- '-keep class go.** { *; }\n-keep class mobile.** { *; }\n' > "$work/aar/proguard.txt"
: > "$work/aar/R.txt"
cp ../../LICENSE "$work/aar"
CGO_ENABLED=1 go run github.com/heddle-gnn/heddle/packaging/notices -out "$work/aar/NOTICES" -targets android/arm64,android/arm,android/amd64 -tags no_websocket .

at=$out/maven/io/github/heddle-gnn/heddle/$version
rm -rf "$at"
mkdir -p "$at"
(cd "$work/aar" && zip -qr "$at/heddle-$version.aar" .)
{
	printf '<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n'
	printf '  <groupId>io.github.heddle-gnn</groupId>\n  <artifactId>heddle</artifactId>\n  <version>%s</version>\n' "$version"
	printf '  <packaging>aar</packaging>\n  <dependencies>\n'
	# The versions that the classes were compiled with; coroutines for Android have those of the core.
	for one in org.jetbrains.kotlin:kotlin-stdlib org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm; do
		printf '    <dependency>\n      <groupId>%s</groupId>\n      <artifactId>%s</artifactId>\n      <version>%s</version>\n    </dependency>\n' \
			"${one%:*}" "${one#*:}" "$(grep -o "${one#*:}-[0-9.]*[0-9]\.jar" "$work/libraries" | sed "s/^${one#*:}-\(.*\)\.jar$/\1/")"
	done
	printf '  </dependencies>\n</project>\n'
} > "$at/heddle-$version.pom"
cp "$at/heddle-$version.aar" "$out/heddle.aar"
