#!/bin/sh
# Makes the Go client: clients/go/build.sh BUILD_DIR.
#
# BUILD_DIR/clients/go-leat.zip, the module; BUILD_DIR/clients/go, the same unpacked, with examples; and
# BUILD_DIR/clients/go-conformance, the driver; BUILD_DIR/clients/speed/go, for `leat bench clients`. Needs
# BUILD_DIR/libleat.so and BUILD_DIR/capi/leat/leat.h, and no network. GO: another compiler than the first one on the
# PATH. GOFLAGS: more options of `go build`.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
go=${GO:-go}
out=$build/clients

export GOCACHE="${GOCACHE:-$out/go.cache}" GOFLAGS="-trimpath ${GOFLAGS:-}" GOPROXY=off GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=1
export CGO_CFLAGS="-O2 -g ${CFLAGS:-} -I$build/capi"
export CGO_LDFLAGS="${LDFLAGS:-} -L$build -Wl,-rpath,$build"

rm -rf "$out/go" "$out/go-leat.zip"
mkdir -p "$out/go/leat" "$out/speed"
for file in "$here"/*.go "$here"/*.c "$here"/*.h "$here/go.mod" "$here/README.md"; do
  case $file in *_test.go) ;; *) cp "$file" "$out/go/leat" ;; esac
done
cp "$here/../../LICENSE" "$out/go/leat"
(cd "$out/go" && python3 -c '
import os, zipfile
# The date is always the same: two builds make the same file.
with zipfile.ZipFile("../go-leat.zip", "w", zipfile.ZIP_DEFLATED) as module:
    for name in sorted(os.listdir("leat")):
        with open(f"leat/{name}", "rb") as file:
            module.writestr(zipfile.ZipInfo(f"leat/{name}"), file.read(), zipfile.ZIP_DEFLATED)
')
cd "$here"
"$go" build -o "$out/go-conformance" ./conformance
"$go" build -o "$out/speed/go" ./speed
