#!/usr/bin/env bash
# Makes mnist_train_lmdb and mnist_test_lmdb from the four idx files, gzipped or not.
#
#   examples/mnist/create_mnist.sh [FOLDER [TARGET]]
#
# FOLDER holds the files (data/mnist); the databases go into TARGET (examples/mnist). Existing
# databases are kept. CAFFE_BIN is the folder of the programs (build/cpu-release/bin).
set -euo pipefail
folder=$(cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../../data/mnist}" && pwd)
[ $# -lt 2 ] || target=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${target:=examples/mnist}"
bin="${CAFFE_BIN:-build/cpu-release/bin}"

path_of() {  # path_of NAME: the file, plain or gzipped
  if [ -f "$folder/$1" ]; then
    echo "$folder/$1"
  elif [ -f "$folder/$1.gz" ]; then
    echo "$folder/$1.gz"
  else
    echo "$folder has neither $1 nor $1.gz" >&2
    return 1
  fi
}

for pair in train:train test:t10k; do
  database="$target/mnist_${pair%:*}_lmdb" name="${pair#*:}"
  if [ -f "$database/data.mdb" ]; then
    echo "$database exists"
    continue
  fi
  images=$(path_of "$name-images-idx3-ubyte")
  labels=$(path_of "$name-labels-idx1-ubyte")
  rm -rf "$database"  # the converter leaves a whole one or none
  "$bin/convert_mnist_data" --backend=lmdb "$images" "$labels" "$database"
  echo "Made $database"
done
