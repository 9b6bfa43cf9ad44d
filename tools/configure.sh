#!/bin/sh
# Configures a build: tools/configure.sh PRESET [-DOPTION=… …].
#
# A build directory that was copied or moved together with its clone still contains the old path, so
# CMake rejects it. This script then deletes it and configures a new one.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
case $preset in
  release | test) build=build ;;
  *) build=build/$preset ;;
esac
home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
if [ -n "$home" ] && [ "$(cd "$home" 2>/dev/null && pwd -P)" != "$(pwd -P)" ]; then
  echo "$build was made in $home: making it anew"
  rm -rf "$build"
fi
exec cmake --log-level=WARNING --preset "$preset" "$@" >/dev/null
