#!/usr/bin/env bash
# Runs tests/timing repeatedly, while the test process is paused at random moments and other
# processes keep the processors busy. Tests that fail here would fail by chance in continuous
# integration.
#
#   scripts/stress_tests.sh [--rounds N] [--minutes N] [--busy N] [--seed N] [FILTER...]
#
#   --rounds N   number of rounds (50)
#   --minutes N  no round starts later than this (60)
#   --busy N     number of processes that compute during the tests (2), with stress-ng if installed
#   --seed N     for the pauses and the order; printed; random by default
#   FILTER       runs only tests whose name has one of these words, all of them in each round
#
# Without a FILTER a round takes about a minute: it runs a random fifth of the tests, and five
# rounds run each test once. Tests are those of tests/timing/*.py and, if it is built,
# build/cpu-release/bin/timing_test (CAFFE_BINARY_DIR gives another build folder). Logs are
# build/stress/round-N.log. The exit status is 1 if something failed, or nothing passed in all
# rounds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

rounds=50 minutes=60 busy=2 seed=$((RANDOM * 32768 + RANDOM)) words=()
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds|--minutes|--busy|--seed)
      [[ "${2:-}" =~ ^(0|[1-9][0-9]*)$ ]] || { echo "$1 is '${2:-}'; it takes a whole number from 0 up" >&2; exit 2; }
      printf -v "${1#--}" %s "$2"; shift ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) words+=("$1") ;;
  esac
  shift
done
parts=5
[ ${#words[@]} -eq 0 ] || parts=1

export CAFFE_BINARY_DIR="${CAFFE_BINARY_DIR:-$PWD/build/cpu-release}" PYTHONDONTWRITEBYTECODE=1
export CAFFE_TESTS_NEED_BUILD=1  # tests/conftest.py: what is not built fails its tests
program="$CAFFE_BINARY_DIR/bin/timing_test"
python=$(PYTHONPATH="$CAFFE_BINARY_DIR/python" find_python pytest)
[ -n "$python" ] || { echo "no Python with pytest (scripts/install_dependencies.sh test)" >&2; exit 1; }
pytest=("$python" -m pytest -q -rfE -p no:cacheprovider -c pyproject.toml --rootdir "$PWD")
rm -rf build/stress
mkdir -p build/stress

joined() { local IFS="$1"; shift; echo "$*"; }
has_python=("${words[@]}")
[ ${#words[@]} -eq 0 ] || has_python=(-k "$(joined '|' "${words[@]}" | sed 's/|/ or /g')")
status=0
"${pytest[@]}" --collect-only "${has_python[@]}" tests/timing >build/stress/collected 2>&1 || status=$?
case $status in
  0|5) ;;  # 5: none has been found
  *) cat build/stress/collected >&2; echo "FAILED the tests of tests/timing could not be listed" >&2; exit 1 ;;
esac
mapfile -t tests < <(grep '^tests/.*::' build/stress/collected || true)

running=()
stop() {  # what this script has started, and nothing else
  trap '' HUP INT TERM
  [ ${#running[@]} -eq 0 ] || kill -TERM "${running[@]}" 2>/dev/null || true
  wait
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

keep_busy() {
  [ "$busy" -gt 0 ] || return 0
  if command -v stress-ng >/dev/null; then
    stress-ng --quiet --cpu "$busy" --timeout "$((minutes * 60 + 3600))" & running+=($!)
  else
    for ((i = 0; i < busy; ++i)); do
      "$python" -c 'while True: pass' & running+=($!)
    done
  fi
}

# paused SEED COMMAND...: runs in the background, so that a signal ends the wait.
paused() {
  "$python" scripts/pause.py --seed "$@" >>"$log" 2>&1 &
  local pid=$! status=0
  running+=("$pid")
  wait "$pid" || status=$?
  unset "running[-1]"
  [ $status -ne 124 ] || echo "FAILED the round took too long" >>"$log"
  return $status
}

# The tests of this round, in a new order after every five rounds.
python_tests() {
  printf '%s\n' "${tests[@]}" |
    awk -v seed=$((seed + round / parts)) 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -g |
    cut -f 2- | awk "NR % $parts == $((round % parts))"
}

run_round() {
  local status=0 chosen filter
  mapfile -t chosen < <(python_tests)
  if [ ${#tests[@]} -gt 0 ] && [ ${#chosen[@]} -gt 0 ]; then
    paused "$((seed + round))" "${pytest[@]}" "${chosen[@]}" || status=1
  fi
  [ -x "$program" ] || return $status
  filter=$(joined ':' ${words[@]:+"${words[@]/#/*}"})
  GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$((round % parts)) \
    paused "$((seed + round))" "$program" --gtest_filter="${filter//:/*:}*" --gtest_color=no || status=1
  return $status
}

[ ${#tests[@]} -gt 0 ] || [ -x "$program" ] || { echo "no test has ${words[*]:-been found}" >&2; exit 1; }
echo "seed $seed: ${#tests[@]} Python tests$([ -x "$program" ] && echo ' and timing_test'), \
$([ $parts -eq 1 ] && echo all || echo 'a fifth') of them in a round, $busy busy processes"
keep_busy
failures=0
for ((round = 0; round < rounds && SECONDS < minutes * 60; ++round)); do
  log="build/stress/round-$round.log" begin=$SECONDS
  if run_round; then verdict=passed; else verdict=FAILED failures=$((failures + 1)); fi
  echo "round $round: $verdict in $((SECONDS - begin)) s"
  # Matches failures of pytest ("FAILED a::b - why") and of GoogleTest.
  grep -hE '^(FAILED|ERROR) |^\[  FAILED  \] .*\(' "$log" | tee -a build/stress/failed | cut -c 1-200 || true
done
echo "$round rounds in $(duration $SECONDS), $failures with a failure, seed $seed"
# Matches pytest's "3 passed" and GoogleTest's "[  PASSED  ] 3 tests."
if [ $round -gt 0 ] && [ $failures -eq 0 ] && ! grep -qE '(^|[ ,])[1-9][0-9]* passed|^\[  PASSED  \] [1-9]' build/stress/round-*.log; then
  failures=1
  echo "FAILED no test has passed" | tee -a build/stress/failed
fi
[ $failures -eq 0 ] || sed -E 's/ - .*//; s/ \([0-9]+ ms\)//' build/stress/failed | sort | uniq -c | sort -rn
[ $failures -eq 0 ]
