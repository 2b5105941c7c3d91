#!/usr/bin/env bash
# Builds for all supported GPUs and packs what was built: cmake --install and scripts/pack.py.
#
#   scripts/bundle.sh [--preset PRESET] [PACK_OPTION...]     PRESET is cuda-distribution
#
# A GPU, a driver or cuDNN's libraries are not needed here: bin/caffe-gpu-check of the bundle looks
# for them where it runs. The archive is written into the build's folder.
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
