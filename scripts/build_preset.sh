#!/usr/bin/env bash
# Configures presets and builds what scripts/test.sh runs of them.
#
#   scripts/build_preset.sh [--idle] PRESET...
#
#   --idle   take only the processor time that other programs leave
#
# With CI in the environment a warning is an error; a user's compiler may know warnings that ours does not.
# SIGTERM ends it when the compilers have ended; what they had finished stays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/common.sh
trap 'exit 143' TERM

if [ "${1:-}" = --idle ]; then
  shift
  # At any other priority it would take time from tests that measure it.
  chrt --idle --pid 0 $$ || exit 0
  # Some kernels share the processor among sessions first, so the session gives way too.
  echo 19 2>/dev/null >/proc/self/autogroup || true
fi

mkdir -p build
for preset; do
  targets=()
  if is_sanitizer "$preset"; then mapfile -t targets < <(sanitized_folders "$preset" | sed 's/$/_test/'); fi
  [ "$preset" != asan ] || targets+=(caffe_tool caffe_compat)
  cmake --preset "$preset" ${CI:+-D CAFFE_WARNINGS_AS_ERRORS=ON} >"build/configure-$preset.log" 2>&1 || { cat "build/configure-$preset.log"; exit 1; }
  # Not by `cmake --build`, which would end before the compilers do.
  ninja -C "build/$preset" -j "$(job_count)" ${targets[@]:+"${targets[@]}"}
done
