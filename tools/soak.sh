#!/bin/sh
# Repeats the kill, storm and interleaving tests with a new seed each round: tools/soak.sh SECONDS
#
# Before that, once: 10^8 blocks from 1, 4 and 8 writers to as many readers, all waits infinite.
# Stops at the first failure and prints its seed; LEAT_SEED=<seed> with the same test repeats it.
set -eu
cd "$(dirname "$0")/.."
blocks=${LEAT_SOAK_BLOCKS:-100000000}
echo "$blocks blocks through a connection point, 1x1, 4x4 and 8x8"
LEAT_SOAK_BLOCKS=$blocks timeout 7200 build/leat_unit_tests --gtest_brief=1 \
  --gtest_filter='Shapes/SimpleIpcMany.Processes/*' || {
  echo "failed: a block was lost, came twice, or somebody waits for ever" >&2
  exit 1
}
end=$(($(date +%s) + $1))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
  round=$((round + 1))
  LEAT_SEED=$(date +%N | sed 's/^0*//')
  export LEAT_SEED
  echo "round $round, LEAT_SEED=$LEAT_SEED"
  ctest --test-dir build -L 'crash|storm|interleave' --no-tests=error -j "$(nproc)" \
    --output-on-failure --quiet -O build/soak.log || {
    tail -n 60 build/soak.log
    echo "failed in round $round with LEAT_SEED=$LEAT_SEED; log: build/soak.log" >&2
    exit 1
  }
done
echo "$round rounds, no failure"
