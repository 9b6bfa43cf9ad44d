#!/bin/sh
# Makes the Rust client: clients/rust/build.sh BUILD_DIR.
#
# BUILD_DIR/clients/leat-VERSION.crate and leat-sys-VERSION.crate, which unpack side by side into an empty folder; and
# BUILD_DIR/clients/rust-conformance, the driver; BUILD_DIR/clients/speed/rust, for `leat bench clients`. Needs
# BUILD_DIR/libleat.so, BUILD_DIR/capi/leat/leat.h, and no network. CARGO: another than the first one on the PATH.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cargo=${CARGO:-cargo}
out=$build/clients

mkdir -p "$out/speed"
export CARGO_TARGET_DIR="$out/rust-target" LEAT_LIB_DIR="$build" LEAT_INCLUDE="$build/capi"
cd "$here"
"$cargo" build --offline --locked --quiet --package leat-conformance
LEAT_RUSTC=$("${RUSTC:-rustc}" --version | cut -d' ' -f1,2)
export LEAT_RUSTC
"$cargo" rustc --offline --locked --quiet --release --package leat --example speed -- -C "link-arg=-Wl,-rpath,$build"
# Not over the old ones: they may be running.
rm -f "$out/rust-conformance" "$out/speed/rust" "$out"/leat-*.crate
cp "$CARGO_TARGET_DIR/debug/rust-conformance" "$out/rust-conformance"
cp "$CARGO_TARGET_DIR/release/examples/speed" "$out/speed/rust"

# As `cargo package` does it, which would look for leat-sys on the network.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in leat-sys leat; do
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$name/Cargo.toml")
  crate=$name-$version
  mkdir "$work/$crate"
  cp -r "$name/src" "$work/$crate"
  if [ -e "$name/build.rs" ]; then cp "$name/build.rs" "$work/$crate"; fi
  cp README.md ../../LICENSE "$work/$crate"
  sed -e 's|^readme = .*|readme = "README.md"|' -e "s|path = \"../leat-sys\"|path = \"../leat-sys-$version\"|" \
    "$name/Cargo.toml" >"$work/$crate/Cargo.toml"
  # Always the same date and owner: two builds make the same file.
  tar -C "$work" --sort=name --mtime=@1600000000 --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
    -cf "$work/$crate.tar" "$crate"
  gzip -n -9 <"$work/$crate.tar" >"$out/$crate.crate"
done
