#!/bin/sh
# Builds the clients of other languages into build/clients: packages, and what their tests need.
#
#     tools/clients.sh                      all of them
#     CLIENTS=python,go tools/clients.sh    only these; tests then run only these, too
#
# Needs the C library in build/. Each language has a clients/NAME/build.sh, which gets the directory.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build
mkdir -p "$build/clients"
failed=""
for script in clients/*/build.sh; do
  name=$(basename "$(dirname "$script")")
  case ",${CLIENTS:-$name}," in
    *",$name,"*) ;;
    *) echo "clients: $name is left out (CLIENTS=$CLIENTS)"; continue ;;
  esac
  echo "clients: $name"
  if ! "$script" "$build" >"$build/clients/$name.log" 2>&1; then
    tail -n 40 "$build/clients/$name.log" >&2
    failed="$failed $name"
  fi
done
if [ -n "$failed" ]; then
  echo "clients: not built:$failed; all that they said is in build/clients/NAME.log" >&2
  exit 1
fi
