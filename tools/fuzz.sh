#!/bin/sh
# Runs one libFuzzer executable: tools/fuzz.sh build/asan/fuzz_topic_files SECONDS
#
# Starts from tests/fuzz/corpus/<name> if it exists. New interesting inputs are kept beside the
# executable in corpus/<name>, failing inputs in <name>-crash-*. Run the executable with such a file
# as its argument to reproduce the failure.
set -eu
executable=$1
seconds=$2
root=$(cd "$(dirname "$0")/.." && pwd)
name=$(basename "$executable")
name=${name#fuzz_}
build=$(dirname "$executable")

found="$build/corpus/$name"
seeds="$root/tests/fuzz/corpus/$name"
mkdir -p "$found"
if [ ! -d "$seeds" ]; then seeds=""; fi

LEAT_DIR=$(mktemp -d "/dev/shm/leat-fuzz-XXXXXX")
export LEAT_DIR
trap 'rm -rf "$LEAT_DIR"' EXIT
"$executable" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="$build/$name-" "$found" ${seeds:+"$seeds"}
