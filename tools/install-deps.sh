#!/bin/sh
# Installs the Debian 12 packages that are missing, and only those.
#
#     tools/install-deps.sh build|bench|serve|clients|deb|test|lint|peers|bare
#
# Prints one line that names what it installs; silent and fast when nothing is missing. Uses sudo
# only if not root. LEAT_SKIP_DEPS=1 does nothing, for machines that get the packages in another way.
set -eu

build="cmake ninja-build g++ make git pkg-config libcli11-dev nlohmann-json3-dev libfmt-dev"
bench="libboost-dev libzmq3-dev libnng-dev liburing-dev libsqlite3-dev python3-zmq"
serve="libboost-dev libssl-dev libsodium-dev libargon2-dev libsqlite3-dev zlib1g-dev libtomlplusplus-dev libspdlog-dev"
# The languages of clients/, each of whose packages is also what its users need. A Go, Rust, Node or JDK that is
# installed already is used.
clients="python3-dev python3-venv python3-setuptools python3-wheel python3-numpy mypy \
  ruby ruby-dev lua5.4 liblua5.4-dev luajit libluajit-5.1-dev"
if ! command -v javac >/dev/null; then clients="$clients openjdk-17-jdk-headless"; fi
if ! command -v go >/dev/null; then clients="$clients golang-go"; fi
if ! command -v cargo >/dev/null; then clients="$clients rustc-web cargo-web"; fi
if ! { command -v node && test -f "$(dirname "$(command -v node)")/../include/node/node_api.h"; } >/dev/null; then clients="$clients nodejs libnode-dev"; fi
deb="dpkg-dev file"
# Shells and the manual: what is installed for them is tried out; venv: conan is not in Debian.
tests="libgtest-dev python3 python3-pytest python3-pytest-xdist python3-venv clang-16 libclang-rt-16-dev chromium zsh fish man-db e2fsprogs abigail-tools"
lint="clang-tidy-16 clang-format-16"
peers="python3 openjdk-17-jdk-headless maven"
bare="debootstrap git iproute2"
# Debian 12's package cargo is too old for the peers. A cargo that is already installed is used.
if ! command -v cargo >/dev/null; then peers="$peers rustc-web cargo-web"; fi

case "${1:-build}" in
  build) wanted="$build" ;;
  bench) wanted="$build $bench" ;;
  serve) wanted="$build $serve" ;;
  deb) wanted="$build $bench $deb" ;;
  clients) wanted="$build $clients $deb" ;;
  test) wanted="$build $bench $serve $clients $deb $tests" ;;
  lint) wanted="$build $bench $serve $clients $deb $tests $lint" ;;
  peers) wanted="$build $bench $peers" ;;
  bare) wanted="$bare" ;;
  *) echo "usage: tools/install-deps.sh build|bench|serve|clients|deb|test|lint|peers|bare" >&2; exit 2 ;;
esac

if [ -n "${LEAT_SKIP_DEPS:-}" ]; then exit 0; fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install-deps: this is not Debian (no apt-get); install by other means: $wanted;" \
       "then set LEAT_SKIP_DEPS=1" >&2
  exit 1
fi

# dpkg-query prints an error for unknown packages; they count as missing.
# shellcheck disable=SC2086  # Word splitting is intended.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true)
missing=""
for package in $wanted; do
  case "
$installed
" in
    *"
installed $package
"*) ;;
    *) missing="$missing $package" ;;
  esac
done
missing=${missing# }
if [ -z "$missing" ]; then exit 0; fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: packages are missing and there is no sudo; run as root:" \
         "apt-get install -y $missing" >&2
    exit 1
  fi
  as_root="sudo"
fi

echo "Installing Debian packages${as_root:+ (with sudo)}: $missing"
output=$(mktemp)
trap 'rm -f "$output"' EXIT

update() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >>"$output" 2>&1
}
install() {
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install $missing >>"$output" 2>&1 </dev/null
}

# Package lists are fetched only if there are none, or if they are so old that the install fails.
# shellcheck disable=SC2086
if apt-cache show $missing >/dev/null 2>&1 && install; then exit 0; fi
if update && install; then exit 0; fi
cat "$output" >&2
echo "install-deps: apt-get could not install: $missing (its output is above)" >&2
exit 1
