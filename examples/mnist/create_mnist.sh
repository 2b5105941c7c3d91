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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

plain() {  # plain NAME: path of the uncompressed file
  if [ -f "$folder/$1" ]; then
    echo "$folder/$1"
  elif [ -f "$folder/$1.gz" ]; then
    gzip -dc "$folder/$1.gz" >"$work/$1"
    echo "$work/$1"
  else
    echo "$folder has neither $1 nor $1.gz" >&2
    return 1
  fi
}

for pair in train:train test:t10k; do
  database="examples/mnist/mnist_${pair%:*}_lmdb" name="${pair#*:}"
  if [ -f "$database/data.mdb" ]; then
    echo "$database exists"
    continue
  fi
  images=$(plain "$name-images-idx3-ubyte")
  labels=$(plain "$name-labels-idx1-ubyte")
  # Under another name until it is whole.
  rm -rf "$database" "$database.partial"
  "$bin/convert_mnist_data" --backend=lmdb "$images" "$labels" "$database.partial"
  mv "$database.partial" "$database"
  echo "Made $database"
done
