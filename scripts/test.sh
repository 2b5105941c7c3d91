#!/usr/bin/env bash
# Builds and runs every test, the fast ones first.
#
#   scripts/test.sh [--preset cpu-release|cpu-debug|asan|tsan] [--slow] [--sanitize] [--no-install]
#
#   --preset P     build and test this preset (cpu-release); tsan runs the tests that have threads:
#                  core, data, distributed and solvers
#   --slow         the long tests too
#   --sanitize     asan and tsan after the preset
#   --no-install   leave the system's packages alone
#
# Ends with how many tests of which kind ran and why others did not. What was asked for and did not
# run is a failure.
#
# Tests on real data look for it in the folder that CAFFE_TEST_DATA names (mnist/, cifar10/,
# imagenet-sample/ in it) and are skipped, with a message, where it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

preset=cpu-release slow= sanitize= install=1
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset="${2:?--preset needs a name}"; shift ;;
    --preset=*) preset="${1#*=}" ;;
    --slow) slow=1 ;;
    --sanitize) sanitize=1 ;;
    --no-install) install= ;;
    -h|--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

failed=() notes=() counts=()
[ -n "$slow" ] && export CAFFE_SLOW_TESTS=1
# Without a folder of their own, interpreters would leave caches in the source tree.
export PYTHONDONTWRITEBYTECODE=1

step() {  # step NAME COMMAND...: runs it, remembers a failure, goes on
  local name="$1" start=$SECONDS
  shift
  echo "== $name"
  if "$@" </dev/null; then
    echo "== $name: passed ($(duration $((SECONDS - start))))"
  else
    echo "== $name: FAILED ($(duration $((SECONDS - start))))"
    failed+=("$name")
    return 1
  fi
}

configure_and_build() { scripts/build_preset.sh "$1"; }

# While tests run, which leave much of the processor idle, the presets that come later are compiled in
# what is left. The step that builds such a preset ends that, compiles the rest, and reports errors.
ahead=
compile_ahead() {  # compile_ahead PRESET...
  if [ $# -eq 0 ] || ! command -v setsid >/dev/null || ! command -v chrt >/dev/null; then return 0; fi
  setsid scripts/build_preset.sh --idle "$@" >build/ahead.log 2>&1 </dev/null &
  ahead=$!
}

stop_compiling_ahead() {
  [ -n "$ahead" ] || return 0
  kill -TERM -- "-$ahead" 2>/dev/null || true
  wait "$ahead" || true
  ahead=
}
trap stop_compiling_ahead EXIT

run_cpp_tests() {
  local log="build/cpp_tests-$1.log" status=0 skipped
  scripts/run_cpp_tests.py "build/$1" --jobs "$(job_count)" "${@:2}" | tee "$log" || status=$?
  skipped=$(sed -n 's/.* ran, \([0-9]*\) skipped, .*/\1/p' "$log" | tail -n 1)
  counts+=("C++ tests, $1: $(tail -n 1 "$log")")
  [ "${skipped:-0}" -eq 0 ] || notes+=("$skipped of the $1 C++ tests were skipped; $log names them")
  [ "$status" -eq 0 ] || notes+=("failed: $(sed -n 's/^FAILED //p' "$log" | paste -sd ' ')")
  return "$status"
}

run_sanitized() {
  # What g++ 12's runtime takes for a module's thread-local memory is a guess: now and then the search
  # for leaks ended in "Tracer caught signal 11". Such memory is found without it, by the loader's table.
  export ASAN_OPTIONS=allocator_may_return_null=1:intercept_tls_get_addr=0 UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:allocator_may_return_null=1"
  # oneDNN and OpenMP's runtime are not instrumented, so under tsan kernels run on one thread.
  if [ "$1" = tsan ]; then export OMP_NUM_THREADS=1; fi
  run_cpp_tests "$1" --only "^($(sanitized_folders "$1" | paste -sd '|'))/"
}

# pytest_of NAME LOG PYTHON TEST...: notes which failed, or counts by pytest's last line: "1434 passed,
# 68 skipped in 257.77s".
pytest_of() {
  local name="$1" log="$2" python="$3" line
  shift 3
  if ! "$python" -m pytest -q -rsfE -p no:cacheprovider "$@" | tee "$log"; then
    while read -r line; do notes+=("$line"); done < <(grep -E '^(FAILED|ERROR) ' "$log" | cut -c 1-300)
    return 1
  fi
  counts+=("$name: $(tail -n 1 "$log" | sed -E 's/=+ ?//g; s/ in [0-9.]+s.*//; s/passed/ran/')")
}

run_pytest() {
  local python skipped
  python=$(PYTHONPATH="$PWD/build/$1/python" find_python pytest numpy lmdb google.protobuf caffe)
  if [ -z "$python" ]; then
    echo "no Python with pytest, numpy, lmdb and protobuf (scripts/install_dependencies.sh test) that can"
    echo "import caffe from build/$1/python; the package is built for $(sed -n 's/^_Python_EXECUTABLE:[A-Z]*=//p' "build/$1/CMakeCache.txt")"
    return 1
  fi
  CAFFE_BINARY_DIR="$PWD/build/$1" \
    pytest_of "Python tests" build/pytest.log "$python" tests/scripts tests/python tests/smoke || return 1
  skipped=$(sed -n 's/.* \([0-9]*\) skipped.*/\1/p' build/pytest.log | tail -n 1)
  [ -z "$skipped" ] || notes+=("$skipped of the Python tests were skipped; build/pytest.log says why")
}

# In an environment of its own, with packages that the distribution does not have.
run_onnx() {
  [ -z "$install" ] || bash scripts/install_dependencies.sh onnx || return 1
  if [ ! -x build/onnx-venv/bin/python ]; then
    notes+=("tests of ONNX models were skipped: scripts/install_dependencies.sh onnx")
    return 0
  fi
  CAFFE_BINARY_DIR="$PWD/build/$1" \
    pytest_of "tests of ONNX models" build/onnx.log build/onnx-venv/bin/python tests/onnx_models \
      'tests/smoke/test_code_blocks.py::test_page[docs/onnx.md]'
}

# Where users stand: what preset cpu-package installs, whose library shows only what CAFFE_EXPORT marks.
test_installed_tree() {
  step "build cpu-package" configure_and_build cpu-package || return 0
  step "installed tree" run_installed "$1" "$(PYTHONPATH="$PWD/build/$1/python" find_python pytest numpy caffe)" || true
}

run_installed() {
  CAFFE_INSTALL_BUILD="$PWD/build/cpu-package" CAFFE_BINARY_DIR="$PWD/build/$1" \
    pytest_of "tests of the installed tree" build/installed.log "$2" tests/install
}

run_plugins_in_asan() {
  CAFFE_INSTALL_BUILD="$PWD/build/asan" pytest_of "plug-ins under asan" build/plugins-asan.log \
    "$(find_python pytest google.protobuf)" tests/install/test_address_sanitizer.py
}

test_preset() {  # test_preset PRESET LATER...
  stop_compiling_ahead
  step "build $1" configure_and_build "$1" || return 0
  compile_ahead "${@:2}"
  if is_sanitizer "$1"; then
    step "$1" run_sanitized "$1" || true
    if [ "$1" = asan ]; then step "plug-ins in asan" run_plugins_in_asan || true; fi
    return 0
  fi
  step "C++ tests, $1" run_cpp_tests "$1" || true
  # The Python tests start programs, so they take a build whose programs run at full speed.
  step "pytest" run_pytest "$1" || true
  step "onnx" run_onnx "$1" || true
  if [ "$1" = cpu-release ]; then test_installed_tree "$1"; fi
}

[ -z "$install" ] || bash scripts/install_dependencies.sh test
mkdir -p build
if [ ! -d "${CAFFE_TEST_DATA:-}" ]; then
  notes+=("tests on real data were skipped: CAFFE_TEST_DATA names no folder")
  echo "CAFFE_TEST_DATA names no folder: tests on real data will be skipped"
fi

step "include rules" "$(find_python sys)" scripts/check_includes.py || true
step "generated models" "$(find_python google.protobuf)" models/generate.py --check || true
presets=("$preset")
if [ -n "$sanitize" ]; then
  for extra in asan tsan; do [ "$extra" = "$preset" ] || presets+=("$extra"); done
fi
for i in "${!presets[@]}"; do test_preset "${presets[@]:i}"; done

echo "== summary"
for count in ${counts[@]:+"${counts[@]}"}; do echo "$count"; done
grep -hE '^SKIPPED ' build/pytest.log build/onnx.log build/installed.log 2>/dev/null | sed -E 's/^SKIPPED \[([0-9]+)\] [^ ]+ /\1 Python tests skipped: /' | sort -u || true
for note in ${notes[@]:+"${notes[@]}"}; do echo "note: $note"; done
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED in $(duration $SECONDS): $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
  exit 1
fi
[ ${#notes[@]} -eq 0 ] && those= || those=" that were not skipped"
echo "All tests$those passed in $(duration $SECONDS) ($preset${sanitize:+, asan, tsan}${slow:+, slow tests included})"
