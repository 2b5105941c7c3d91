#!/usr/bin/env bash
# Makes train.h5 and test.h5, which train.txt and test.txt list. Existing files are kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"
for part in train test; do
  file="examples/hdf5_classification/$part.h5"
  if [ -f "$file" ]; then
    echo "$file exists"
  else
    "$bin/caffe" test --model=examples/hdf5_classification/make_data.prototxt --stage="$part" --iterations=1
    echo "Made $file"
  fi
done
