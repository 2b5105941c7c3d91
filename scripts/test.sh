#!/usr/bin/env bash
# Builds and runs every test.
#   scripts/test.sh                  release build, all fast tests
#   scripts/test.sh --slow           also the slow ones (hours of training are not among them)
#   scripts/test.sh --preset asan    another preset: cpu-debug, asan, tsan
#   scripts/test.sh --sanitize       after the release build, the sanitizer builds too
# Tests on real data need CAFFE_TEST_DATA, a folder with mnist/, cifar10/, imagenet-sample/; without
# it they say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=cpu-release
sanitize=
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=$2; shift 2 ;;
    --slow) export CAFFE_SLOW_TESTS=1; shift ;;
    --sanitize) sanitize=1; shift ;;
    *) echo "test.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
done

scripts/install_dependencies.sh
[ -n "${CAFFE_TEST_DATA:-}" ] || echo "CAFFE_TEST_DATA is not set: tests on real data will be skipped"

build() {
  cmake --preset "$1" > "build-$1.log" 2>&1 || { cat "build-$1.log"; rm -f "build-$1.log"; return 1; }
  rm -f "build-$1.log"
  cmake --build --preset "$1"
}

# Sanitizers: oneDNN and libgomp are not instrumented, so one thread, and only what is ours to race.
run() {
  case "$1" in
    tsan) OMP_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" \
            ctest --preset tsan -R '^(core|data|solvers)/' -j 2 ;;
    asan) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 ctest --preset asan -j 2 ;;
    *) ctest --preset "$1" -j 2 ;;
  esac
}

# The Python that has the test packages: Debian's, even where another one comes first in PATH.
python=python3
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import numpy, pytest' 2> /dev/null; then python=$candidate; break; fi
done

"$python" scripts/check_includes.py
"$python" models/generate.py --check
build "$preset"
run "$preset"
if [ "$preset" = cpu-release ]; then
  "$python" -m pytest -q -p no:cacheprovider tests/scripts tests/smoke
fi
if [ -n "$sanitize" ]; then
  for name in asan tsan; do build "$name" && run "$name"; done
fi
echo "test.sh: all tests passed ($preset)"
