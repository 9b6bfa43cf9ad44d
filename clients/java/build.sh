#!/bin/sh
# Makes the Java client: clients/java/build.sh BUILD_DIR [LIBLEAT_A].
#
# BUILD_DIR/clients/leat-VERSION.jar and leat-VERSION.pom; BUILD_DIR/clients/java-conformance, the driver;
# BUILD_DIR/clients/speed/java, for `leat bench clients`. LIBLEAT_A is BUILD_DIR/libleat.a if it is not named. Needs
# BUILD_DIR/capi/leat/leat.h, and no network. JAVA_HOME: another JDK than that of the javac on the PATH. CC, CXX, CFLAGS, LDFLAGS as usual.
set -eu
build=$(mkdir -p "$1" && cd "$1" && pwd)
library=${2:-$build/libleat.a}
here=$(cd "$(dirname "$0")" && pwd)
out=$build/clients
work=$out/java.build
if [ -z "${JAVA_HOME:-}" ]; then
  javac=$(command -v javac) || { echo "there is no javac: install openjdk-17-jdk-headless, or set JAVA_HOME" >&2; exit 1; }
  JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$javac")")")
fi
version=$(sed -n 's/^ *VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt" | head -n 1)
version=${version:-0.1.0}
machine=$(uname -m)

rm -rf "$work" "$out"/leat-*.jar "$out"/leat-*.pom "$out/java-conformance" "$out/speed/java"
mkdir -p "$out/speed" "$work/speed" "$work/classes/io/leat/linux-$machine" "$work/classes/META-INF" "$work/conformance" "$work/objects"

# The options of a sanitizer are CFLAGS and LDFLAGS.
# shellcheck disable=SC2086
for file in "$here"/native/*.c; do
  "${CC:-gcc}" -std=gnu11 -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden ${CFLAGS:-} -I"$build/capi" \
    -I"$JAVA_HOME/include" -I"$JAVA_HOME/include/linux" -c "$file" -o "$work/objects/$(basename "$file" .c).o"
done
# Only what Java looks for is exported: another copy of Leat in the process is none of ours.
# shellcheck disable=SC2086
"${CXX:-g++}" -shared -o "$work/classes/io/leat/linux-$machine/libleat_jni.so" "$work"/objects/*.o "$library" \
  -Wl,--version-script="$here/native/exports.map" -Wl,-z,nodelete -Wl,--no-undefined ${LEAT_KEEP_DEBUG:--s} \
  -static-libstdc++ -static-libgcc ${LDFLAGS:-}

"$JAVA_HOME/bin/javac" --release 17 -Xlint:all -Werror -d "$work/classes" "$here"/src/io/leat/*.java
cp "$here/../../LICENSE" "$work/classes/META-INF"
printf 'Automatic-Module-Name: io.leat\nImplementation-Version: %s\nEnable-Native-Access: ALL-UNNAMED\n' "$version" \
  >"$work/manifest"
# The date is always the same: two builds make the same file.
"$JAVA_HOME/bin/jar" --create --file "$out/leat-$version.jar" --manifest "$work/manifest" \
  --date 2020-01-01T00:00:00Z -C "$work/classes" .
sed "s/@VERSION@/$version/" "$here/pom.xml" >"$out/leat-$version.pom"

"$JAVA_HOME/bin/javac" --release 17 -Xlint:all -Werror -cp "$work/classes" -d "$work/conformance" \
  "$here"/conformance/*.java
cat >"$out/java-conformance" <<END
#!/bin/sh
exec "$JAVA_HOME/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$out/leat-$version.jar:$work/conformance" Driver
END
chmod +x "$out/java-conformance"

"$JAVA_HOME/bin/javac" --release 17 -Xlint:all -Werror -cp "$work/classes" -d "$work/speed" "$here"/bench/Speed.java
cat >"$out/speed/java" <<END
#!/bin/sh
exec "$JAVA_HOME/bin/java" -XX:+UseSerialGC -cp "$out/leat-$version.jar:$work/speed" Speed "\$@"
END
chmod +x "$out/speed/java"
