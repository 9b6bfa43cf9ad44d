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
mkdir -p "$build/clients/speed"
failed=""
for name in $(echo "${CLIENTS:-}" | tr , ' '); do
  test "$name" = c || test -f "clients/$name/build.sh" && continue
  echo "clients: CLIENTS=$CLIENTS: no client is called '$name'; there are c $(cd clients && echo *)" >&2
  exit 2
done

# wanted NAME: whether it is to be built.
wanted() {
  case ",${CLIENTS:-$1}," in
    *",$1,"*) ;;
    *) echo "clients: $1 is left out (CLIENTS=$CLIENTS)"; return 1 ;;
  esac
}
# packages_of_c: libleat0 and libleat-dev for Debian.
packages_of_c() {
  rm -f "$build"/clients/libleat*.deb
  cpack --config "$build/CPackConfig.cmake" -D "CPACK_COMPONENTS_ALL=libleat0;libleat-dev" -B "$build/clients/c.deb"
  mv "$build"/clients/c.deb/*.deb "$build/clients"
  rm -r "$build/clients/c.deb"
}
if wanted c; then
  echo "clients: c"
  packages_of_c >"$build/clients/c.log" 2>&1 || { tail -n 40 "$build/clients/c.log" >&2; failed=" c"; }
fi
for script in clients/*/build.sh; do
  name=$(basename "$(dirname "$script")")
  wanted "$name" || continue
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
