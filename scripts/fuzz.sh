#!/usr/bin/env bash
# Feeds mutated files to the readers, runs the nets and solvers that they define, makes random nets
# and random calls of the Python package, and imports mutated ONNX models.
#
#   scripts/fuzz.sh [--seconds N | --total-minutes N] [--jobs N] [--plain] [--corpus FILE] [TARGET...]
#   scripts/fuzz.sh --merge [TARGET...]
#
#   --seconds N        how long each target runs, on average (3600)
#   --total-minutes N  wall-clock time of all of them together
#   --jobs N           how many targets run at once (all)
#   --plain            without libFuzzer and AddressSanitizer: uses fuzz_replay of
#                      build/cpu-release, which changes inputs blindly; the default if there is no
#                      clang 15 or newer
#   --corpus FILE      also starts from the inputs in this archive
#   --merge            runs nothing: packs tests/fuzz/corpus, and those inputs found so far that
#                      reach more code, into the archive build/fuzz/corpus.tar.gz
#   TARGET             annotated_datum, hdf5, text_net, ... (tests/fuzz/*_fuzz.cpp), python_api,
#                      onnx_import, geometry, dag, cluster; default: all. The last five are not
#                      libFuzzer programs, and always run from build/cpu-release. onnx_import needs
#                      build/onnx-venv (scripts/install_dependencies.sh onnx), and is skipped
#                      without it.
#
# Targets run in slices of at most three minutes. The next slice goes to the target that has had the
# least processor time, so a busy machine slows all of them equally. A target whose last slice
# reached new code may have twice as much as one whose slice did not.
#
# Prints a table of how many inputs, nets, clusters or calls each target has run, and how long, also
# after Ctrl-C or SIGTERM; an interrupted batch of 20 nets or clusters is not counted. A crash, a
# leak, and an input that takes more than 30 s or 2 GiB end a target; the input is kept in
# build/fuzz/found/TARGET. New inputs that reach new code are kept in build/fuzz/corpus/TARGET.
# libFuzzer needs clang 15 or newer (scripts/install_dependencies.sh fuzz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

seconds=3600 total_minutes="" jobs=0 plain="" merge="" archive="" targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="${2:?--seconds needs a number}"; shift ;;
    --total-minutes) total_minutes="${2:?--total-minutes needs a number}"; shift ;;
    --jobs) jobs="${2:?--jobs needs a number}"; shift ;;
    --plain) plain=1 ;;
    --corpus) archive="${2:?--corpus needs a file}"; shift ;;
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
  [ -n "$merge" ] || [ ! -x build/onnx-venv/bin/python ] || targets+=(onnx_import)
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

# The preset of a target, and the program built for it.
preset_of() {
  case "$1" in
    python_api|onnx_import|geometry|dag|cluster) echo cpu-release ;;
    *) if [ -n "$plain" ]; then echo cpu-release; else echo fuzz; fi ;;
  esac
}
program_of() {
  case "$1" in
    python_api|onnx_import) echo caffe_python ;;
    geometry|dag|cluster) echo "$1_fuzz" ;;
    *) if [ -n "$plain" ]; then echo fuzz_replay; else echo "$1_fuzz"; fi ;;
  esac
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

# OpenMP's threads would outnumber the cores; one thread is enough for inputs of this size.
export OMP_NUM_THREADS=1 GLOG_minloglevel=3 ASAN_OPTIONS=allocator_may_return_null=1
first_seed=$(date +%s)  # another one each time; it is in the log
kind=${merge:+_merge}
log_of() { echo "build/fuzz/$1$kind.log"; }

# Runs nets or clusters with ever new seeds, until SIGTERM or the end of the slice.
run_seeds() {
  local target="$1" slice_seconds="$2" from="$3" end count=20
  end=$((SECONDS + slice_seconds))
  while [ $SECONDS -lt $end ] && [ -z "$is_stopped" ]; do
    "build/cpu-release/bin/${target}_fuzz" --seeds "$from" "$count" \
      --found "build/fuzz/found/$target" || return 1
    from=$((from + count))
  done
}

# Runs a target for some seconds with a seed.
run_target() {
  local target="$1" slice_seconds="$2" seed="$3"
  local dictionary="tests/fuzz/$1.dict" found="build/fuzz/found/$1"
  local corpora=("build/fuzz/corpus/$target" "tests/fuzz/corpus/$target") words=()
  [ ! -f "$dictionary" ] || words=("-dict=$dictionary")
  case "$target" in
    geometry|dag|cluster) run_seeds "$target" "$slice_seconds" "$seed" ;;
    python_api)
      export PYTHONPATH="$PWD/build/cpu-release/python"
      "$(find_python numpy google.protobuf caffe)" tests/fuzz/python_api.py \
        --seconds "$slice_seconds" --seed "$seed" --found "$found" ;;
    onnx_import)
      PYTHONPATH="$PWD/build/cpu-release/python" build/onnx-venv/bin/python \
        tests/fuzz/onnx_import.py --seconds "$slice_seconds" --seed "$seed" --found "$found" ;;
    *)
      if [ -n "$plain" ]; then
        build/cpu-release/bin/fuzz_replay "$target" --seconds "$slice_seconds" --seed "$seed" \
          --dictionary "$dictionary" --found "$found" "${corpora[1]}"
      elif [ -n "$merge" ]; then
        rm -rf "build/fuzz/merged/$target"
        mkdir -p build/fuzz/merged
        cp -R "${corpora[1]}" "build/fuzz/merged/$target"
        "build/fuzz/bin/${target}_fuzz" -merge=1 -set_cover_merge=1 -timeout=30 -close_fd_mask=2 \
          "build/fuzz/merged/$target" "${corpora[0]}"
      else
        "build/fuzz/bin/${target}_fuzz" -max_total_time="$slice_seconds" -timeout=30 \
          -rss_limit_mb=2048 -malloc_limit_mb=2048 -print_final_stats=1 -close_fd_mask=2 \
          -artifact_prefix="$found/" "${words[@]}" "${corpora[@]}"
      fi ;;
  esac
}

# Runs a slice in its own process group, which SIGTERM ends as a whole. Its log still reports its
# processor time, and being stopped is not a finding.
run_slice() {
  local is_stopped="" status=0
  trap 'is_stopped=1' INT TERM
  TIMEFORMAT="processor: %U %S of %R"
  time run_target "$@" || status=$?
  [ -z "$is_stopped" ] || status=0
  exit $status
}

# The number of executions in a log.
executions_in() {
  awk '/^stat::number_of_executed_units:/ { all += $2 }
       / mutations$/ || /^[0-9]+ (nets|clusters),/ { all += $1 }
       /^(python_api|onnx_import): [0-9]+ calls/ { all += $2 }
       END { print all + 0 }' "$1"
}
# Processor time in minutes.
minutes_in() { awk '/^processor:/ { all += $2 + $3 } END { printf "%.1f\n", all / 60 }' "$1"; }
# The quantity by which targets take turns: processor seconds plus a tenth of wall-clock seconds, so
# that a target which only waits gets few more turns than the others. Half of it after new code.
share_in() {
  awk '/^stat::new_units_added:/ { added = $2 }
       /^processor:/ { all += $2 + $3 + $5 / 10; last = added; added = 0 }
       END { printf "%.3f\n", (last > 0 ? all / 2 : all) }' "$1"
}

declare -A failed=() slices=() running=()  # the last one: targets by process
start_slice() {
  local target="$1" slice_seconds="$2" slice="${slices[$1]:-0}"
  run_slice "$target" "$slice_seconds" $((first_seed + slice * 1000000)) \
    >>"$(log_of "$target")" 2>&1 &
  running[$!]="$target"
  slices[$target]=$((slice + 1))
}

# Waits for the end of a slice, or for a signal.
finish_one() {
  local pid="" target status=0
  wait -n -p pid "${!running[@]}" || status=$?
  [ -n "$pid" ] || return 0
  target="${running[$pid]}"
  unset "running[$pid]"
  if [ $status -ne 0 ]; then
    failed[$target]="FAILED, see $(log_of "$target") and build/fuzz/found/$target"
    echo "$target: ${failed[$target]}"
  fi
}

# The next target: one that has not run yet, else the one with the smallest share; empty if all run
# or have failed.
next_target() {
  local target
  for target in "${targets[@]}"; do
    if [[ " ${running[*]} " == *" $target "* || -n "${failed[$target]:-}" ]]; then continue; fi
    if [ -n "${slices[$target]:-}" ]; then
      echo "$(share_in "$(log_of "$target")") $target"
    else
      echo "-1 $target"
    fi
  done | sort -s -g -k1,1 | sed -n '1s/.* //p'
}

print_table() {
  local target log finding
  printf '\n| target | executions | CPU minutes | findings |\n|---|---|---|---|\n'
  for target in "${targets[@]}"; do
    log=$(log_of "$target") finding="${failed[$target]:-none}"
    echo "| \`$target\` | $(executions_in "$log") | $(minutes_in "$log") | $finding |"
  done
}

# Ends running targets, and prints what was run until then.
stop() {
  trap '' HUP INT TERM
  local pid
  for pid in "${!running[@]}"; do kill -TERM -- "-$pid" || true; done
  (sleep 15; for pid in "${!running[@]}"; do kill -KILL -- "-$pid" || true; done) 2>/dev/null &
  local killer=$!
  while [ ${#running[@]} -gt 0 ]; do finish_one; done
  kill -KILL -- "-$killer"
  [ -n "$merge" ] || print_table
  exit $((128 + $1))
}

mkdir -p build/fuzz/corpus
[ -z "$archive" ] || tar -C build/fuzz/corpus -xzf "$archive"
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/found/$target"
  : >"$(log_of "$target")"
done

# Seconds of all targets together, and of one target at a time.
at_once=$((jobs < ${#targets[@]} ? jobs : ${#targets[@]}))
if [ -n "$total_minutes" ]; then
  total_seconds=$((total_minutes * 60))
else
  total_seconds=$(((seconds * ${#targets[@]} + at_once - 1) / at_once))
fi
seconds=$((total_seconds * at_once / ${#targets[@]}))
rounds=$(((seconds + 179) / 180))
slice_seconds=$((seconds / (rounds > 0 ? rounds : 1)))
[ $slice_seconds -gt 0 ] || slice_seconds=1

# Every target runs once, even if one before it took too long.
may_start() {
  [ -n "$1" ] || return 1
  if [ -z "${slices[$1]:-}" ]; then return 0; fi
  [ -z "$merge" ] && [ $((end - SECONDS)) -ge $((slice_seconds < 5 ? slice_seconds : 5)) ]
}

set -m  # a group of processes for each slice
trap 'stop 1' HUP
trap 'stop 2' INT
trap 'stop 15' TERM
end=$((SECONDS + total_seconds))
while true; do
  while [ ${#running[@]} -lt "$jobs" ]; do
    target=$(next_target)
    may_start "$target" || break
    left=$((end - SECONDS))
    if [ -z "${slices[$target]:-}" ] || [ $left -gt $slice_seconds ]; then left=$slice_seconds; fi
    start_slice "$target" "$left"
  done
  [ ${#running[@]} -gt 0 ] || break
  finish_one
done
if [ -n "$merge" ]; then
  tar -C build/fuzz/merged -czf build/fuzz/corpus.tar.gz .
  echo "build/fuzz/corpus.tar.gz: $(tar -tzf build/fuzz/corpus.tar.gz | grep -c '[^/]$') inputs"
else
  print_table
fi
[ ${#failed[@]} -eq 0 ]
