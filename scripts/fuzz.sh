#!/usr/bin/env bash
# Feeds mutated files to the readers, with libFuzzer under AddressSanitizer.
#
#   scripts/fuzz.sh [--seconds N] [TARGET...]
#
#   --seconds N    how long each target runs (3600); all of them run at once
#   TARGET         text_net, binary_net, solver_state, datum, annotated_datum, mean_file (all)
#
# A crash, a leak, an input that takes more than 10 s or 2 GiB ends a target; the input is kept in
# build/fuzz/found/TARGET. New inputs that reach new code are kept in build/fuzz/corpus/TARGET.
# Needs clang 15 or newer (scripts/install_dependencies.sh fuzz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=3600 targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="${2:?--seconds needs a number}"; shift ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
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

compiler=
for version in 19 18 17 16 15; do
  if command -v "clang++-$version" >/dev/null; then compiler="clang++-$version"; break; fi
done
if [ -z "$compiler" ]; then
  echo "no clang 15 or newer; run scripts/install_dependencies.sh fuzz" >&2
  exit 1
fi

CC="${compiler/++/}" CXX="$compiler" cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${targets[@]/%/_fuzz}"

failed=()
pids=()
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/found/$target"
  # OpenMP's threads would outnumber the cores; one is enough for inputs of this size.
  OMP_NUM_THREADS=1 GLOG_minloglevel=3 ASAN_OPTIONS=allocator_may_return_null=1 \
    "build/fuzz/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=2048 -print_final_stats=1 -close_fd_mask=2 -artifact_prefix="build/fuzz/found/$target/" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1 &
  pids+=($!)
done
for i in "${!targets[@]}"; do
  if wait "${pids[$i]}"; then
    echo "${targets[$i]}: $(sed -n 's/^stat::number_of_executed_units: */inputs /p' "build/fuzz/${targets[$i]}.log"), no finding"
  else
    echo "${targets[$i]}: FAILED, see build/fuzz/${targets[$i]}.log"
    failed+=("${targets[$i]}")
  fi
done
[ ${#failed[@]} -eq 0 ]
