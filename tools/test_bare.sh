#!/bin/sh
# Builds Leat on a bare Debian 12, and tries its packages on another one: tools/test_bare.sh [full]
#
# 1. debootstrap makes the smallest Debian 12 twice, below /var/tmp or TMPDIR: 6 GB, removed if all went well.
# 2. In the first, with a clone of the last commit: the demo, `make check` and all clients, after the commands of README.md
#    and CONTRIBUTING.md. With "full", `make test` instead of the first two; it takes as long as everywhere.
# 3. In the second there is only what runs a language. Each package is installed, and its example talks to `leat sub`.
#
# Only debootstrap and apt-get have a network. MIRROR: another one than that in /etc/apt. Needs root, debootstrap, git and ip.
set -eu
cd "$(dirname "$0")/.."
fail() { echo "test-bare: $1" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "only root can make a Debian and go into it: sudo make test-bare"
for tool in debootstrap git ip; do
  command -v "$tool" >/dev/null || fail "there is no $tool: tools/install-deps.sh bare"
done
unshare --mount --net --pid --fork mount -t tmpfs tmpfs /mnt 2>/dev/null ||
  fail "no mounts or namespaces are allowed here: the container needs CAP_SYS_ADMIN"
mirror=${MIRROR:-$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 'Codename: bookworm' | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}

place=$(mktemp -d "${TMPDIR:-/var/tmp}/leat-bare.XXXXXX")
trap 'rm -rf --one-file-system "$place"; exit 1' INT TERM HUP
first=$place/first
second=$place/second
said() { tail -n 100 "$place/log" >&2; fail "$1; all is left in $place"; }

# inside DEBIAN COMMANDS: with a /dev/shm, and with processes, that nobody else has; they end with the commands. The
# shell stays: it is process 1, which must collect those whose parents died.
inside() {
  # shellcheck disable=SC2016  # For the inner shell.
  unshare --mount --pid --fork --kill-child ${offline:+--net} sh -euc '
    if [ -n "$3" ]; then ip link set lo up; fi
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive sh -euc "$2" || exit 1' sh "$1" "$2" "$offline" </dev/null
}
online() { offline="" inside "$@"; }
offline() { offline=1 inside "$@"; }
install="apt-get -q -y --no-install-recommends install"

# try LANGUAGE GREETING PACKAGES COMMANDS: what it needs of Debian, and how its package is installed and its example run,
# in a folder with that example.
languages=""
needed=libfmt9  # That leat itself needs.
greetings=""
try() {
  languages="$languages $1"
  needed="$needed $3"
  greetings="${greetings}hello from $2
"
  mkdir -p "$place/try/$1"
  printf '%s\n' "$4" >"$place/try/$1.sh"
}
c='dpkg -i ../packages/libleat0_*.deb ../packages/libleat-dev_*.deb'
try c C "gcc libc6-dev pkg-config" "$c; gcc c/hello.c \$(pkg-config --cflags --libs libleat); ./a.out"
try python Python python3-venv "python3 -m venv venv; venv/bin/pip install ../packages/leat-*.whl; venv/bin/python python.py"
try go Go "golang-go gcc libc6-dev unzip" \
  "$c; cd go; unzip ../../packages/go-leat.zip; go mod edit -require=leat@v0.0.0 -replace=leat=./leat; go build; ./example"
# A JRE compiles nothing.
try java Java openjdk-17-jre-headless "java -cp \$(echo ../packages/leat-*.jar):../packages Hello"
try rust Rust "rustc-web cargo-web" "$c; cargo new --vcs none hello; cp rust/src/main.rs hello/src; cd hello
  for crate in ../../packages/leat-*.crate; do tar xf \$crate; done
  cargo add --offline --path leat-[0-9]*; cargo run --offline"
try node Node "nodejs npm" "cd node; npm install ../../packages/leat-*.tgz; node hello.js"
try ruby Ruby ruby "gem install --local ../packages/leat-*.gem; ruby ruby.rb"
try lua Lua "lua5.4 luarocks" "luarocks --lua-version 5.4 install ../packages/leat-*.rock; lua5.4 lua.lua"
try luajit Lua luajit "install -D ../packages/leat.so /usr/local/lib/lua/5.1/leat.so; luajit lua.lua"

echo "test-bare: a bare Debian 12 from $mirror"
debootstrap --variant=minbase bookworm "$first" "$mirror" >"$place/log" 2>&1 || said "debootstrap failed"
# What is thrown away need not survive a power cut.
echo force-unsafe-io >"$first/etc/dpkg/dpkg.cfg.d/unsafe-io"
cp -a "$first" "$second"
git clone -q "file://$PWD" --depth 1 "$first/leat"
online "$first" "$install git make" >"$place/log" 2>&1 || said "apt-get install git make failed"

steps="build:demo test:check clients:clients"
if [ "${1:-}" = full ]; then steps="test:test clients:clients"; fi
for step in $steps; do
  online "$first" "cd /leat; tools/install-deps.sh ${step%:*}" || fail "install-deps.sh ${step%:*} failed; all is left in $place"
  echo "test-bare: make ${step#*:}, without a network"
  offline "$first" "cd /leat; make ${step#*:}" || fail "make ${step#*:} failed; all is left in $place"
done

echo "test-bare: installing each package where nothing but $(echo "$needed" | xargs -n 1 | sort -u | xargs) is installed"
online "$second" "$install $needed" >"$place/log" 2>&1 || said "apt-get install failed"
offline "$first" "cd /leat; javac -cp \$(echo build/clients/leat-*.jar) -d /classes examples/clients/java/Hello.java" \
  >"$place/log" 2>&1 || said "java: the example was not compiled"
mkdir "$place/try/packages"
find "$first/leat/build/clients" -maxdepth 1 -name '*leat*' -type f -exec cp -t "$place/try/packages" {} +
cp "$first/leat/build/clients/lua/5.1/leat.so" "$first/classes/Hello.class" "$place/try/packages"
cp "$first/leat/build/leat" "$second/usr/bin"
for language in $languages; do
  cp -r "$first"/leat/examples/clients/* "$place/try/$language"
done
cp -r "$place/try" "$second/try"
printf %s "$greetings" >"$second/try/wanted"
echo "$languages" >"$second/try/languages"
# shellcheck disable=SC2016  # For the shell inside.
offline "$second" '
  cd /try
  timeout 600 leat sub greetings --from beginning -n "$(wc -l <wanted)" >said &
  for language in $(cat languages); do
    echo "test-bare: $language"
    (cd "$language"; sh -euc "$(cat "../$language.sh")") >log 2>&1 || { cat log; echo "$language failed"; exit 1; }
    tail -n 1 log | grep -q "hello from" || { cat log; echo "$language read nothing"; exit 1; }
  done
  wait $! || true
  diff wanted said' || fail "the packages do not work; all is left in $place"
echo "test-bare: all is well: $(printf %s "$greetings" | wc -l) packages"
rm -rf --one-file-system "$place"
