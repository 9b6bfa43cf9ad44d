#!/bin/sh
# Makes the Node package: clients/node/build.sh BUILD_DIR [LIBLEAT_A].
#
# BUILD_DIR/clients/leat-VERSION.tgz, for `npm install`, and in BUILD_DIR/clients/node/leat the same, unpacked: with
# NODE_PATH set to BUILD_DIR/clients/node, `require('leat')` works; beside it malloc.node, for the tests;
# BUILD_DIR/clients/speed/node, for `leat bench clients`. LIBLEAT_A is BUILD_DIR/libleat.a if it is not named.
# NODE: another than the one on the PATH. CC, CFLAGS and LDFLAGS: the C compiler, and more of its options.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
library=${2:-$build/libleat.a}
here=$(cd "$(dirname "$0")" && pwd)
node=${NODE:-node}
out=$build/clients
package=$out/node/leat

# The headers of this very node, or else those of Debian's libnode-dev. The addon works with any Node from 18 on.
prefix=$("$node" -p 'path.resolve(process.execPath, "../../include/node")')
headers=
for candidate in "$prefix" /usr/include/node /usr/local/include/node; do
  if [ -z "$headers" ] && [ -f "$candidate/node_api.h" ]; then headers=$candidate; fi
done
if [ -z "$headers" ]; then
  echo "clients/node/build.sh: no node_api.h: install libnode-dev" >&2
  exit 1
fi
version=$(sed -n 's/^ *VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt" | head -n 1)

rm -rf "$package" "$out"/leat-*.tgz
mkdir -p "$out/node"
cp -r "$here/package" "$package"
cp "$here/README.md" "$here/../../LICENSE" "$package"
# Where it can be installed.
VERSION=${version:-0.1.0} PACKAGE=$package/package.json "$node" -e '
  const fs = require("fs");
  const about = JSON.parse(fs.readFileSync(process.env.PACKAGE, "utf8"));
  Object.assign(about, { version: process.env.VERSION, os: [process.platform], cpu: [process.arch] });
  fs.writeFileSync(process.env.PACKAGE, `${JSON.stringify(about, null, 2)}\n`);'
# The library is in C++: its own copy of that is as invisible as its other names. It is never unloaded, as it has
# handlers of fork, and threads.
# shellcheck disable=SC2086  # Word splitting is intended.
${CC:-gcc} -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wno-cast-function-type \
  -I"$headers" -I"$here/../../src/capi" ${CFLAGS:-} "$here"/src/*.c "$library" -o "$package/leat.node" \
  -Wl,--exclude-libs,ALL -Wl,-z,nodelete -static-libgcc -l:libstdc++.a -lm -pthread ${LEAT_KEEP_DEBUG:--s} ${LDFLAGS:-}
${CC:-gcc} -std=gnu11 -O2 -fPIC -shared -Wall -Wextra -I"$headers" "$here/tests/malloc.c" -o "$out/node/malloc.node"

# What `npm pack` makes, also where there is no npm, and the same each time.
tar -C "$out/node" --transform 's,^leat,package,' --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime=@1600000000 -cf - leat | gzip -n >"$out/leat-${version:-0.1.0}.tgz"

mkdir -p "$out/speed"
cat >"$out/speed/node" <<END
#!/bin/sh
NODE_PATH="$out/node" exec "$node" "$here/speed.js" "\$@"
END
chmod +x "$out/speed/node"
