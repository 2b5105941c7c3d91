#!/usr/bin/env bash
# Feeds mutated files to the readers, and runs the nets and solvers they define.
#
#   scripts/fuzz.sh [--seconds N] [--jobs N] [--plain] [TARGET...]
#
#   --seconds N    how long each target runs (3600)
#   --jobs N       how many targets run at once (all)
#   --plain        without libFuzzer and AddressSanitizer: the programs of build/cpu-release, which
#                  change inputs blindly; taken by itself where there is no clang 15 or newer
#   TARGET         annotated_datum, hdf5, text_net, ... (all of tests/fuzz/*_fuzz.cpp)
#
# Prints how many inputs each target has run. A crash, a leak, an input that takes more than 10 s or
# 2 GiB ends a target; the input is kept in build/fuzz/found/TARGET. New inputs that reach new code
# are kept in build/fuzz/corpus/TARGET.
# libFuzzer needs clang 15 or newer (scripts/install_dependencies.sh fuzz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=3600 jobs=0 plain="" targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="${2:?--seconds needs a number}"; shift ;;
    --jobs) jobs="${2:?--jobs needs a number}"; shift ;;
    --plain) plain=1 ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do
    name=$(basename "$source" _fuzz.cpp)
    targets+=("$name")
  done
fi
[ "$jobs" -gt 0 ] || jobs=${#targets[@]}

compiler=
for version in 19 18 17 16 15; do
  if command -v "clang++-$version" >/dev/null; then compiler="clang++-$version"; break; fi
done
if [ -z "$compiler" ] && [ -z "$plain" ]; then
  echo "no clang 15 or newer: inputs are changed blindly (scripts/install_dependencies.sh fuzz)" >&2
  plain=1
fi

if [ -n "$plain" ]; then
  cmake --preset cpu-release >/dev/null
  cmake --build --preset cpu-release --target "${targets[@]/%/_fuzz}"
else
  CC="${compiler/++/}" CXX="$compiler" cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --target "${targets[@]/%/_fuzz}"
fi

run_target() {
  local target="$1" dictionary="tests/fuzz/$1.dict"
  # OpenMP's threads would outnumber the cores; one is enough for inputs of this size.
  export OMP_NUM_THREADS=1 GLOG_minloglevel=3 ASAN_OPTIONS=allocator_may_return_null=1
  if [ -n "$plain" ]; then
    # Another seed each time; it is in the log.
    set -x
    "build/cpu-release/bin/${target}_fuzz" --seconds "$seconds" --seed "$(date +%s)" \
      --dictionary "$dictionary" --found "build/fuzz/found/$target" "tests/fuzz/corpus/$target"
  else
    "build/fuzz/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
      -malloc_limit_mb=2048 -print_final_stats=1 -close_fd_mask=2 \
      -artifact_prefix="build/fuzz/found/$target/" $([ -f "$dictionary" ] && echo "-dict=$dictionary") \
      "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target"
  fi
}

failed=() running=() pids=()
# Waits for the target that was started first.
report_first() {
  local target="${running[0]}" log="build/fuzz/${running[0]}.log" inputs
  if wait "${pids[0]}"; then
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p; s/ mutations$//p' "$log")
    echo "$target: inputs $inputs, no finding"
  else
    echo "$target: FAILED, see $log and build/fuzz/found/$target"
    failed+=("$target")
  fi
  running=("${running[@]:1}") pids=("${pids[@]:1}")
}
for target in "${targets[@]}"; do
  [ ${#pids[@]} -lt "$jobs" ] || report_first
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/found/$target"
  run_target "$target" >"build/fuzz/$target.log" 2>&1 &
  running+=("$target") pids+=($!)
done
while [ ${#pids[@]} -gt 0 ]; do report_first; done
[ ${#failed[@]} -eq 0 ]
