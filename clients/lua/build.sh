#!/bin/sh
# Makes the Lua rock: clients/lua/build.sh BUILD_DIR [LIBLEAT_A].
#
# BUILD_DIR/clients/leat-VERSION-1.linux-ARCH.rock for Lua 5.4; in BUILD_DIR/clients/lua/5.4 and …/5.1 (LuaJIT) is
# leat.so: with LUA_CPATH="BUILD_DIR/clients/lua/5.4/?.so", `require "leat"` works. LIBLEAT_A is BUILD_DIR/libleat.a
# if it is not named. CFLAGS and LDFLAGS are added to the compiler's options. BUILD_DIR/clients/speed/lua and …/luajit
# start speed.lua. Beside each leat.so is a malloc.so, for the tests.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
library=${2:-$build/libleat.a}
here=$(cd "$(dirname "$0")" && pwd)
header=$here/../../src/capi
if [ -f "$build/capi/leat/leat.h" ]; then header=$build/capi/leat; fi
out=$build/clients
work=$out/lua.build
version=$(sed -n 's/^ *VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt" | head -n 1)
version=${version:-0.1.0}

rm -rf "$work" "$out/lua" "$out"/leat-*.rock
mkdir -p "$work" "$out/lua"

# compile VERSION INCLUDE_DIR: all sources at once, as they are few. The library's names stay hidden, and so do those of
# the C++ runtime that it needs; it is never unloaded, as it has handlers of fork, and threads.
compile() {
  mkdir -p "$out/lua/$1"
  # shellcheck disable=SC2086  # Word splitting is intended.
  ${CC:-gcc} -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra ${CFLAGS:-} "-I$2" "-I$header" \
    "-I$here/../shared" -o "$out/lua/$1/leat.so" "$here"/src/*.c "$library" -l:libstdc++.a -static-libgcc -Wl,--exclude-libs,ALL \
    -Wl,-z,nodelete ${LEAT_KEEP_DEBUG:--s} ${LDFLAGS:-} -lm -lpthread
  ${CC:-gcc} -std=gnu11 -O2 -fPIC -shared -Wall -Wextra "-I$2" -o "$out/lua/$1/malloc.so" "$here/tests/malloc.c"
}
compile 5.4 /usr/include/lua5.4 &
compile 5.1 /usr/include/luajit-2.1
wait $!

# launcher NAME INTERPRETER VERSION: for `leat bench clients`.
mkdir -p "$out/speed"
launcher() {
  printf '#!/bin/sh\nLUA_CPATH="%s/?.so" exec %s "%s/speed.lua" "$@"\n' "$out/lua/$3" "$2" "$here" >"$out/speed/$1"
  chmod +x "$out/speed/$1"
}
launcher lua lua5.4 5.4
launcher luajit luajit 5.1

# A binary rock is a zip file: the rockspec, the manifest of what is in it, and the module in lib.
rock=$work/rock
mkdir -p "$rock/lib" "$rock/doc"
sed "s/@VERSION@/$version/" "$here/leat.rockspec.in" >"$rock/leat-$version-1.rockspec"
cp "$out/lua/5.4/leat.so" "$rock/lib"
cp "$here/README.md" "$rock/doc"
sum() { md5sum "$rock/$1" | cut -d' ' -f1; }
cat >"$rock/rock_manifest" <<END
rock_manifest = {
   ["leat-$version-1.rockspec"] = "$(sum "leat-$version-1.rockspec")",
   doc = { ["README.md"] = "$(sum doc/README.md)" },
   lib = { ["leat.so"] = "$(sum lib/leat.so)" }
}
END
cd "$rock"
/usr/bin/python3 -m zipfile -c "$out/leat-$version-1.linux-$(uname -m).rock" "leat-$version-1.rockspec" rock_manifest \
  lib doc
