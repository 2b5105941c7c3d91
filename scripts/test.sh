#!/usr/bin/env bash
# Builds and runs every test, the fast ones first.
#
#   scripts/test.sh [--preset cpu-release|cpu-debug|asan|tsan] [--slow] [--sanitize] [--no-install]
#
#   --preset P     build and test this preset (cpu-release). tsan runs the tests that have threads:
#                  core, data, distributed and solvers
#   --slow         the long tests too
#   --sanitize     asan and tsan after the preset
#   --no-install   leave the system's packages alone
#
# Tests on real data look for it in the folder that CAFFE_TEST_DATA names (mnist/, cifar10/,
# imagenet-sample/ in it) and are skipped, with a message, where it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh

preset=cpu-release slow= sanitize= install=1
tsan_folders=(core data distributed solvers) # whose tests have threads
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

failed=() notes=()
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

configure_and_build() {
  local jobs targets=()
  jobs=$(job_count)
  if [ "$1" = tsan ]; then
    for folder in "${tsan_folders[@]}"; do
      compgen -G "tests/$folder/*_test.cpp" >/dev/null && targets+=("${folder}_test")
    done
  fi
  cmake --preset "$1" >"build/configure-$1.log" 2>&1 || { cat "build/configure-$1.log"; return 1; }
  cmake --build --preset "$1" --parallel "$jobs" ${targets[@]:+--target "${targets[@]}"}
}

run_ctest() {
  local arguments=(--preset "$1" --parallel "$(job_count)" --no-tests=error) log="build/ctest-$1.log" status=0 skipped
  if [ "$1" = tsan ]; then
    # oneDNN and OpenMP's runtime are not instrumented, so kernels run on one thread.
    OMP_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp:allocator_may_return_null=1" ctest "${arguments[@]}" -R "^($(IFS='|'; echo "${tsan_folders[*]}"))/" | tee "$log" || status=$?
  else
    ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 ctest "${arguments[@]}" | tee "$log" || status=$?
  fi
  skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
  [ "$skipped" -eq 0 ] || notes+=("$skipped of the $1 C++ tests were skipped; $log names them")
  return "$status"
}

run_pytest() {
  local python skipped
  python=$(PYTHONPATH="$PWD/build/$1/python" find_python pytest numpy lmdb google.protobuf caffe)
  if [ -z "$python" ]; then
    echo "no Python with pytest, numpy, lmdb and protobuf (scripts/install_dependencies.sh test) that can"
    echo "import caffe from build/$1/python; the package is built for $(sed -n 's/^_Python_EXECUTABLE:[A-Z]*=//p' "build/$1/CMakeCache.txt")"
    return 1
  fi
  CAFFE_BINARY_DIR="$PWD/build/$1" "$python" -m pytest -q -rs -p no:cacheprovider tests/scripts tests/python tests/smoke |
    tee build/pytest.log || return 1
  skipped=$(sed -n 's/.* \([0-9]*\) skipped.*/\1/p' build/pytest.log | tail -n 1)
  [ -z "$skipped" ] || notes+=("$skipped of the Python tests were skipped; build/pytest.log says why")
}

# Where users stand: what preset cpu-package installs, whose library shows only what CAFFE_EXPORT marks.
test_installed_tree() {
  step "build cpu-package" configure_and_build cpu-package || return 0
  step "installed tree" env CAFFE_INSTALL_BUILD="$PWD/build/cpu-package" CAFFE_BINARY_DIR="$PWD/build/$1" \
    "$(PYTHONPATH="$PWD/build/$1/python" find_python pytest numpy caffe)" -m pytest -q -rs -p no:cacheprovider tests/install || true
}

test_preset() {
  step "build $1" configure_and_build "$1" || return 0
  step "ctest $1" run_ctest "$1" || true
  # The Python tests start programs, so they take a build whose programs run at full speed.
  case "$1" in cpu-*) step "pytest" run_pytest "$1" || true ;; esac
  if [ "$1" = cpu-release ]; then test_installed_tree "$1"; fi
  if [ "$1" = asan ]; then
    step "plug-ins in asan" env CAFFE_INSTALL_BUILD="$PWD/build/asan" "$(find_python pytest google.protobuf)" \
      -m pytest -q -rs -p no:cacheprovider tests/install/test_address_sanitizer.py || true
  fi
}

[ -z "$install" ] || bash scripts/install_dependencies.sh test
mkdir -p build
if [ ! -d "${CAFFE_TEST_DATA:-}" ]; then
  notes+=("tests on real data were skipped: CAFFE_TEST_DATA names no folder")
  echo "CAFFE_TEST_DATA names no folder: tests on real data will be skipped"
fi

step "include rules" "$(find_python sys)" scripts/check_includes.py || true
step "generated models" "$(find_python google.protobuf)" models/generate.py --check || true
test_preset "$preset"
if [ -n "$sanitize" ]; then
  for extra in asan tsan; do [ "$extra" = "$preset" ] || test_preset "$extra"; done
fi

for note in ${notes[@]:+"${notes[@]}"}; do echo "note: $note"; done
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED in $(duration $SECONDS): $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
  exit 1
fi
[ ${#notes[@]} -eq 0 ] && those= || those=" that were not skipped"
echo "All tests$those passed in $(duration $SECONDS) ($preset${sanitize:+, asan, tsan}${slow:+, slow tests included})"
