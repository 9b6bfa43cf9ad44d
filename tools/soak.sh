#!/bin/sh
# Repeats the outage, kill, storm and interleaving tests with a new seed each round:
# tools/soak.sh SECONDS. Outages have half of the time.
#
# Before that, once: 10^8 blocks from 1, 4 and 8 writers to as many readers, all waits infinite.
# Stops at the first failure and prints its seed; LEAT_SEED=<seed> with the same test repeats it.
set -eu
cd "$(dirname "$0")/.."
unset SOAK_SECONDS  # make exports it if it was given; each test would take that long then.
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
  began=$(date +%s)
  ctest --test-dir build -L 'crash|storm|interleave' --no-tests=error -j "$(nproc)" \
    --output-on-failure --quiet -O build/soak.log || {
    tail -n 60 build/soak.log
    echo "failed in round $round with LEAT_SEED=$LEAT_SEED; log: build/soak.log" >&2
    exit 1
  }
  # As long again, one case after the other: they measure how soon the others go on.
  cases=$(build/leat_outage_tests --gtest_list_tests | grep -c '^  ')
  SOAK_SECONDS=$((($(date +%s) - began) / cases + 1)) LEAT_KEEP=build \
    timeout 7200 build/leat_outage_tests > build/soak-outage.log 2>&1 || {
    grep -v '^LEAT_SEED' build/soak-outage.log | tail -n 80
    echo "failed in round $round; the seed is above; log: build/soak-outage.log" >&2
    exit 1
  }
  grep 'the spared went on' build/soak-outage.log
done
echo "$round rounds, no failure"
