#!/usr/bin/env bash
# Compiles Kotlin against Android's classes, by a compiler that Maven brings (pom.xml). Needs a JDK and Maven.
#   ./kotlin.sh CLASSES SOURCE...
# CLASSES has what the sources use, as jvm.sh or android.sh made it, and gets what is compiled. Prints the class path
# of the libraries. Exits with 3 if Maven cannot bring the compiler.
set -euo pipefail
classes=$(cd "$1" && pwd)
shift
at=$(dirname "$0")
jars=$(mktemp)
trap 'rm -f "$jars"' EXIT
mvn -q -B -f "$at/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile="$jars" >&2 || exit 3
libraries=$(cat "$jars")
compose=$(grep -o '[^:]*kotlin-compose-compiler[^:]*' "$jars")
java -Xmx1g -cp "$libraries" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -jvm-target 11 \
	-Xplugin="$compose" -module-name heddle -Werror -cp "$libraries:$classes" -d "$classes" "$@" >&2
tr : '\n' < "$jars" | grep -e /kotlin-stdlib- -e /kotlinx-coroutines- | paste -sd :
