#!/usr/bin/env bash
# Makes examples/mnist/mnist_{train,test}_lmdb from the four idx files, gzipped or not.
#
#   examples/mnist/create_mnist.sh [FOLDER]     FOLDER holds the files (data/mnist)
#
# CAFFE_BIN names the folder of the programs (build/cpu-release/bin). A database that exists is kept.
set -euo pipefail
folder=$(cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../../data/mnist}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"

for pair in train:train test:t10k; do
  database="examples/mnist/mnist_${pair%:*}_lmdb" name="${pair#*:}"
  if [ -f "$database/data.mdb" ]; then
    echo "$database exists"
    continue
  fi
  for file in "$name-images-idx3-ubyte" "$name-labels-idx1-ubyte"; do
    [ -f "$folder/$file" ] || [ -f "$folder/$file.gz" ] || { echo "$folder has neither $file nor $file.gz" >&2; exit 1; }
  done
  # Under another name until it is whole.
  rm -rf "$database" "$database.partial"
  "$bin/convert_mnist_data" --backend=lmdb \
    "$folder/$name-images-idx3-ubyte" "$folder/$name-labels-idx1-ubyte" "$database.partial"
  mv "$database.partial" "$database"
  echo "Made $database"
done
