#!/bin/sh
# Compares the C library with what it was: tools/abi.sh LIBRARY [LIST]. Fails on anything but additions.
#
#     tools/abi.sh build/libleat.so            with tests/capi/libleat.abi, the list of what programs rely on
#     tools/abi.sh build/libleat.so --write    makes that list anew
#
# The library must have debug information, or a file with it beside it, as the tests build it. Whatever is
# not in leat.h does not count. docs/internals/capi.md, "How it may change"
set -eu
library=$(readlink -f "$1")
list=$(cd "$(dirname "$0")/.." && pwd)/tests/capi/libleat.abi
directory=$(dirname "$library")

list_symbols() {
  abidw --exported-interfaces-only --headers-dir "$directory/capi" --drop-private-types --no-show-locs \
    --no-corpus-path --no-comp-dir-path --no-elf-needed --debug-info-dir "$directory" --out-file "$1" "$library"
  sed -i "s|path='[^']*/|path='|" "$1"  # Where it was built is nobody's concern.
}

if [ "${2:-}" = --write ]; then
  list_symbols "$list"
  exit
fi
now=$(mktemp)
trap 'rm -f "$now"' EXIT
list_symbols "$now"
# Without types it would find fewer differences, and call that equal.
grep -q "class-decl name='leat_record' size-in-bits='256'" "$now" || {
  echo "abi: $library has no debug information" >&2
  exit 1
}
abidiff --no-added-syms "${2:-$list}" "$now"
