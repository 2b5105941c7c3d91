#!/usr/bin/env bash
# Feeds mutated files to the readers, runs the nets and solvers they define, makes random nets and
# random calls of the Python package.
#
#   scripts/fuzz.sh [--seconds N] [--jobs N] [--plain] [--merge] [TARGET...]
#
#   --seconds N    how long each target runs (3600)
#   --jobs N       how many targets run at once (all)
#   --plain        without libFuzzer and AddressSanitizer: the programs of build/cpu-release, which
#                  change inputs blindly; taken by itself where there is no clang 15 or newer
#   --merge        runs nothing: adds to tests/fuzz/corpus the few inputs found so far that reach
#                  code which those there do not
#   TARGET         annotated_datum, hdf5, text_net, ... (tests/fuzz/*_fuzz.cpp), python_api, geometry,
#                  dag, cluster; all of them if none is given. The last four are no libFuzzer programs,
#                  and are always those of build/cpu-release.
#
# Prints a table: how many inputs, nets, clusters or calls each target has run, and how long. A
# crash, a leak, an input that takes more than 30 s or 2 GiB ends a target; the input is kept in
# build/fuzz/found/TARGET. New inputs that reach new code are kept in build/fuzz/corpus/TARGET.
# libFuzzer needs clang 15 or newer (scripts/install_dependencies.sh fuzz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

seconds=3600 jobs=0 plain="" merge="" targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="${2:?--seconds needs a number}"; shift ;;
    --jobs) jobs="${2:?--jobs needs a number}"; shift ;;
    --plain) plain=1 ;;
    --merge) merge=1 ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do
    targets+=("$(basename "$source" _fuzz.cpp)")
  done
  [ -n "$merge" ] || targets+=(python_api geometry dag cluster)
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
if [ -n "$merge" ] && [ -n "$plain" ]; then
  echo "--merge needs libFuzzer: clang 15 or newer, and no --plain" >&2
  exit 2
fi

# The build that a target is of, and what is built for it.
preset_of() {
  case "$1" in
    python_api|geometry|dag|cluster) echo cpu-release ;;
    *) if [ -n "$plain" ]; then echo cpu-release; else echo fuzz; fi ;;
  esac
}
program_of() {
  if [ "$1" = python_api ]; then echo caffe_python; else echo "$1_fuzz"; fi
}
for preset in fuzz cpu-release; do
  programs=()
  for target in "${targets[@]}"; do
    [ "$(preset_of "$target")" != $preset ] || programs+=("$(program_of "$target")")
  done
  [ ${#programs[@]} -gt 0 ] || continue
  if [ $preset = fuzz ]; then export CC="${compiler/++/}" CXX="$compiler"; else unset CC CXX; fi
  cmake --preset $preset >/dev/null
  cmake --build --preset $preset --target "${programs[@]}"
done

# OpenMP's threads would outnumber the cores; one is enough for inputs of this size.
export OMP_NUM_THREADS=1 GLOG_minloglevel=3 ASAN_OPTIONS=allocator_may_return_null=1
seed=$(date +%s)  # another one each time; it is in the log

# Nets or clusters of ever new seeds.
run_seeds() {
  local target="$1" from=$seed end=$((SECONDS + seconds)) count=20
  while [ $SECONDS -lt $end ]; do
    "build/cpu-release/bin/${target}_fuzz" --seeds "$from" "$count" --found "build/fuzz/found/$target"
    from=$((from + count))
  done
}

run_target() {
  local target="$1" dictionary="tests/fuzz/$1.dict" found="build/fuzz/found/$1"
  local corpora=("build/fuzz/corpus/$target" "tests/fuzz/corpus/$target") words=()
  [ ! -f "$dictionary" ] || words=("-dict=$dictionary")
  case "$target" in
    geometry|dag|cluster) run_seeds "$target" ;;
    python_api)
      export PYTHONPATH="$PWD/build/cpu-release/python"
      "$(find_python numpy google.protobuf caffe)" tests/fuzz/python_api.py \
        --seconds "$seconds" --seed "$seed" --found "$found" ;;
    *)
      if [ -n "$plain" ]; then
        "build/cpu-release/bin/${target}_fuzz" --seconds "$seconds" --seed "$seed" \
          --dictionary "$dictionary" --found "$found" "${corpora[1]}"
      elif [ -n "$merge" ]; then
        "build/fuzz/bin/${target}_fuzz" -merge=1 -set_cover_merge=1 -timeout=30 -close_fd_mask=2 \
          "${corpora[1]}" "${corpora[0]}"
      else
        "build/fuzz/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 \
          -malloc_limit_mb=2048 -print_final_stats=1 -close_fd_mask=2 \
          -artifact_prefix="$found/" "${words[@]}" "${corpora[@]}"
      fi ;;
  esac
}

# What a log says was run.
executions_in() {
  awk '/^stat::number_of_executed_units:/ { all += $2 }
       / mutations$/ || /^[0-9]+ (nets|clusters),/ { all += $1 }
       /^python_api: [0-9]+ calls/ { all += $2 }
       END { print all + 0 }' "$1"
}

failed=() running=() pids=() rows=() kind=${merge:+_merge}
# Waits for the target that was started first.
report_first() {
  local target="${running[0]}" finding=none minutes
  local log="build/fuzz/$target$kind.log"
  if ! wait "${pids[0]}"; then
    finding="FAILED, see $log and build/fuzz/found/$target"
    failed+=("$target")
  fi
  minutes=$(awk '/^processor:/ { printf "%.1f\n", ($2 + $3) / 60 }' "$log" | tail -1)
  rows+=("| \`$target\` | $(executions_in "$log") | ${minutes:-?} | $finding |")
  echo "$target: finding: $finding"
  running=("${running[@]:1}") pids=("${pids[@]:1}")
}
for target in "${targets[@]}"; do
  [ ${#pids[@]} -lt "$jobs" ] || report_first
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/found/$target"
  (TIMEFORMAT="processor: %U %S"; time run_target "$target") >"build/fuzz/$target$kind.log" 2>&1 &
  running+=("$target") pids+=($!)
done
while [ ${#pids[@]} -gt 0 ]; do report_first; done
if [ -n "$merge" ]; then
  du -sh --apparent-size tests/fuzz/corpus
else
  printf '\n| target | executions | CPU minutes | findings |\n|---|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
fi
[ ${#failed[@]} -eq 0 ]
