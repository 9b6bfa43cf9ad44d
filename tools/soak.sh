#!/bin/sh
# Repeats the kill, storm and interleaving tests with a new seed each round: tools/soak.sh SECONDS
#
# Stops at the first failure and prints its seed; LEAT_SEED=<seed> with the same test repeats it.
set -eu
cd "$(dirname "$0")/.."
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
