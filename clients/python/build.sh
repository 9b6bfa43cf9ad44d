#!/bin/sh
# Makes the Python package: clients/python/build.sh BUILD_DIR [LIBLEAT_A].
#
# BUILD_DIR/clients/leat-VERSION-cp311-abi3-linux_ARCH.whl, and in BUILD_DIR/clients/python the same, unpacked: with
# PYTHONPATH set to it, `import leat` works; BUILD_DIR/clients/speed/python, for `leat bench clients`. LIBLEAT_A is
# BUILD_DIR/libleat.a if it is not named.
# PYTHON: another than Debian's. CFLAGS and LDFLAGS are added to the compiler's options.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
library=${2:-$build/libleat.a}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
out=$build/clients
work=$out/python.build
wheels=$work/wheel

rm -rf "$work" "$out/python" "$out"/leat-*.whl
mkdir -p "$work" "$wheels" "$out/python"
cp -r "$here/src" "$here/setup.py" "$here/README.md" "$work"
cp "$here"/../shared/*.h "$work/src/leat"
find "$work" -name __pycache__ -prune -exec rm -rf {} +
version=$(sed -n 's/^project(leat VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt" | head -n 1)
cd "$work"
# Wheels are zip files: the date in them would make each build another.
export SOURCE_DATE_EPOCH=1600000000 LEAT_LIBRARY="$library" LEAT_HEADER="$here/../../src/capi"
export LEAT_VERSION="${version}"
if ! "$python" setup.py -q bdist_wheel -d "$wheels" >log 2>&1; then
  cat log >&2
  exit 1
fi
grep 'src/leat/.*warning:' log >&2 || true
mv "$wheels"/*.whl "$out"
"$python" -m zipfile -e "$out"/leat-*.whl "$out/python"
mkdir -p "$out/speed"
cat >"$out/speed/python" <<END
#!/bin/sh
PYTHONPATH="$out/python" exec "$python" "$here/speed.py" "\$@"
END
chmod +x "$out/speed/python"
