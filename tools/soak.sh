#!/bin/sh
# Long-running test: tools/soak.sh SECONDS. It runs, in this order:
#
# 1. once: 10^8 blocks from 1, 4 and 8 writers to as many readers, all waits infinite;
# 2. for SECONDS: multi-failure tests, with new seeds. After every ten minutes, the
#    power fails 100,000 times under the store and 10,000 times under durable topics, 500 kills and stops
#    hit durable topics at each level, groups by key with few records in flight are hit for two minutes, so
#    are the archivers of a durable topic with a group, and all kill and storm tests run once; their time is not
#    counted;
# 3. once: 200 kills of the broker under load, for topics in memory and on disk;
# 4. once: all interleaving tests with three times their usual number of executions.
#
# Stops at the first failure and prints its seed; LEAT_SEED=<seed> with the same test repeats it.
set -eu
cd "$(dirname "$0")/.."
unset SOAK_SECONDS  # make exports it if it was given, and then each test would run that long.
blocks=${LEAT_SOAK_BLOCKS:-100000000}
echo "$blocks blocks through a connection point, 1x1, 4x4 and 8x8"
LEAT_SOAK_BLOCKS=$blocks timeout 7200 build/leat_unit_tests --gtest_brief=1 \
  --gtest_filter='Shapes/SimpleIpcMany.Processes/*' || {
  echo "failed: a block was lost, came twice, or somebody waits for ever" >&2
  exit 1
}
test_once() {  # test_once WHAT LABELS
  ctest --test-dir build -L "$2" --no-tests=error -j "$(nproc)" --output-on-failure --quiet \
    -O build/soak.log || {
    tail -n 60 build/soak.log
    echo "failed: $1; log: build/soak.log" >&2
    exit 1
  }
}
many() {  # many WHAT TESTS FILTER VARIABLE=VALUE
  echo "round $round: $1, LEAT_SEED=$LEAT_SEED"
  env "$4" timeout 7200 "build/leat_$2_tests" --gtest_filter="$3" > build/soak-many.log 2>&1 || {
    tail -n 40 build/soak-many.log
    echo "failed in round $round; the seed is above; log: build/soak-many.log" >&2
    exit 1
  }
}
left=$1
cases=$(build/leat_multi_failure_tests --gtest_list_tests | grep -c '^  ')
round=0
while [ "$left" -gt 0 ]; do
  round=$((round + 1))
  seconds=$((left < 600 ? left : 600))
  left=$((left - seconds))
  echo "round $round: multi-failure tests for $seconds s"
  # One case at a time, because they measure how soon the surviving processes continue.
  SOAK_SECONDS=$((seconds / cases + 1)) LEAT_KEEP=build \
    timeout 7200 build/leat_multi_failure_tests > build/soak-multi-failure.log 2>&1 || {
    grep -v '^LEAT_SEED' build/soak-multi-failure.log | tail -n 80
    grep '^LEAT_SEED' build/soak-multi-failure.log | tail -n 1
    echo "failed in round $round; the seed is above; log: build/soak-multi-failure.log" >&2
    exit 1
  }
  grep 'the spared went on' build/soak-multi-failure.log
  LEAT_SEED=$(date +%N | sed 's/^0*//')
  export LEAT_SEED
  many 'power failures of the store: 100,000' unit 'PowerLoss.*' LEAT_SOAK=1
  many 'power failures of durable topics: 10,000' unit 'DurablePower.*' LEAT_SOAK=1
  many 'kills and stops of durable topics: 500 at each level' storm '*DurableStorm*' LEAT_ROUNDS=500
  many 'kills and stops of groups by key with few in flight: two minutes' storm \
    'GroupStorm.ByKeyWithFewInFlight' SOAK_SECONDS=60
  many 'what failures of the machine make groups forget: two minutes' storm 'ForgottenStorm.*' \
    SOAK_SECONDS=120
  echo "round $round: kills and storms, LEAT_SEED=$LEAT_SEED"
  test_once "round $round with LEAT_SEED=$LEAT_SEED" 'crash|storm'
  unset LEAT_SEED
done
echo "200 kills of the broker under load, for each type of topic"
LEAT_KILLS=200 timeout 3600 "${PYTHON:-python3}" -m pytest -q tests/system/test_serve_attacks.py -k killed
echo "interleavings, three times as many"
export LEAT_EXECUTIONS=3
test_once interleavings interleave
echo "$round rounds, no failure"
