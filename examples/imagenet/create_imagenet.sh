#!/usr/bin/env bash
# Makes the databases that the nets in models/ read, and the mean image, from photographs and lists.
#
#   [SIZE=256] examples/imagenet/create_imagenet.sh FOLDER
#
# FOLDER holds train.txt and val.txt, lists of "path label", and the photographs under those paths.
# All are resized to SIZE x SIZE pixels; the training list is shuffled. Makes
# examples/imagenet/ilsvrc12_{train,val}_lmdb (with SIZE=320 ilsvrc12_{train,val}_320_lmdb) and
# imagenet_mean.binaryproto. CAFFE_BIN is the folder of the programs (build/cpu-release/bin).
# Existing databases are kept.
set -euo pipefail
folder=$(cd "${1:?usage: create_imagenet.sh FOLDER}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"
size="${SIZE:-256}"
suffix=
[ "$size" = 256 ] || suffix="_$size"

for part in train val; do
  database="examples/imagenet/ilsvrc12_${part}${suffix}_lmdb"
  if [ -f "$database/data.mdb" ]; then
    echo "$database exists"
    continue
  fi
  shuffle=()
  [ "$part" = val ] || shuffle=(--shuffle)
  rm -rf "$database"  # the converter leaves a whole one or none
  "$bin/convert_imageset" --resize_height="$size" --resize_width="$size" ${shuffle[@]:+"${shuffle[@]}"} \
    "$folder/" "$folder/$part.txt" "$database"
  echo "Made $database"
done

mean=examples/imagenet/imagenet_mean$suffix.binaryproto
if [ -f "$mean" ]; then
  echo "$mean exists"
else
  "$bin/compute_image_mean" "examples/imagenet/ilsvrc12_train${suffix}_lmdb" "$mean"
  echo "Made $mean"
fi
