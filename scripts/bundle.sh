#!/usr/bin/env bash
# Builds for all supported GPUs and packs the result: cmake --install and scripts/pack.py.
#
#   scripts/bundle.sh [--preset PRESET] [PACK_OPTION...]     PRESET is cuda-distribution
#
# No GPU, driver or cuDNN library is needed here: the bundle's bin/caffe-gpu-check looks for them
# where it runs. The archive is written into the build's folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=cuda-distribution
if [ "${1:-}" = --preset ]; then
  preset="${2:?--preset needs a name}"
  shift 2
fi
cmake --preset "$preset"
cmake --build --preset "$preset"
exec scripts/pack.py "build/$preset" "$@"
