#!/usr/bin/env bash
# Makes examples/cifar10/cifar10_{train,test}_lmdb and mean.binaryproto from CIFAR-10 as image files.
#
#   examples/cifar10/create_cifar10.sh FOLDER
#
# FOLDER holds train.txt and test.txt, lists of "path label" in the order of training, and the
# images that they name: either as files or in train.tar.gz and test.tar.gz. CAFFE_BIN is the folder
# of the programs (build/cpu-release/bin). Existing databases are kept.
set -euo pipefail
folder=$(cd "${1:?usage: create_cifar10.sh FOLDER}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for part in train test; do
  database="examples/cifar10/cifar10_${part}_lmdb"
  if [ -f "$database/data.mdb" ]; then
    echo "$database exists"
    continue
  fi
  images="$folder"
  if [ -f "$folder/$part.tar.gz" ]; then
    echo "Unpacking $part.tar.gz"
    tar -xzf "$folder/$part.tar.gz" -C "$work"
    images="$work"
  fi
  rm -rf "$database"  # the converter leaves a whole one or none
  "$bin/convert_imageset" "$images/" "$folder/$part.txt" "$database"
  echo "Made $database"
done

if [ -f examples/cifar10/mean.binaryproto ]; then
  echo "examples/cifar10/mean.binaryproto exists"
else
  "$bin/compute_image_mean" examples/cifar10/cifar10_train_lmdb examples/cifar10/mean.binaryproto
  echo "Made examples/cifar10/mean.binaryproto"
fi
