#!/bin/sh
# Makes the Ruby gem: clients/ruby/build.sh BUILD_DIR [LIBLEAT_A].
#
# BUILD_DIR/clients/leat-VERSION-ARCH-linux.gem, and in BUILD_DIR/clients/ruby the same, unpacked: with `ruby -I
# BUILD_DIR/clients/ruby/lib`, `require "leat"` works. LIBLEAT_A is BUILD_DIR/libleat.a if it is not named.
# BUILD_DIR/clients/speed/ruby starts speed.rb. RUBY: another than Debian's. CC, CFLAGS and LDFLAGS: the C compiler, its
# options, and more of the linker's.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
library=$(realpath "${2:-$build/libleat.a}")
here=$(cd "$(dirname "$0")" && pwd)
ruby=${RUBY:-/usr/bin/ruby}
header=$here/../../src/capi
if [ -f "$build/capi/leat/leat.h" ]; then header=$build/capi/leat; fi
out=$build/clients
work=$out/ruby.build

rm -rf "$work" "$out/ruby" "$out"/leat-*.gem
mkdir -p "$work/ext" "$out/ruby/lib/leat"
cp "$here"/ext/leat/* "$here"/../shared/*.h "$work/ext"
version=$(sed -n 's/^ *VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt" | head -n 1)
export LEAT_LIBRARY="$library" LEAT_HEADER="$header" LEAT_VERSION="${version:-0.1.0}" SOURCE_DATE_EPOCH=1600000000
cd "$work/ext"
if ! { "$ruby" extconf.rb && make -j2; } >log 2>&1; then
  cat log >&2
  exit 1
fi
grep 'warning:' log >&2 || true
cp leat.so "$out/ruby/lib/leat"
cp "$here/lib/leat.rb" "$out/ruby/lib"
cp -r "$here/lib/leat/documentation" "$out/ruby/lib/leat"
cp "$here/README.md" "$here/leat.gemspec" "$out/ruby"
cd "$out/ruby"
"$ruby" -S gem build --silent --output "$work/leat.gem" leat.gemspec 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
mv "$work/leat.gem" "$out/leat-$LEAT_VERSION-$("$ruby" -e 'print Gem::Platform.local').gem"

# For `leat bench clients`.
mkdir -p "$out/speed"
printf '#!/bin/sh\nexec %s "-I%s/ruby/lib" "%s/speed.rb" "$@"\n' "$ruby" "$out" "$here" >"$out/speed/ruby"
chmod +x "$out/speed/ruby"
