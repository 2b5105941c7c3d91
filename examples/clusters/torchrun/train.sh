#!/bin/sh
# Trains with PyTorch's launcher: examples/clusters/README.md. PyTorch only starts the processes.
#
#   examples/clusters/torchrun/train.sh [SOLVER [RANKS]]                     on one machine
#   NODES=2 MASTER=node1:29400 examples/clusters/torchrun/train.sh ...       on each of 2 machines
#
# If a rank fails, all end. --max-restarts starts them again, from the newest snapshot.
set -eu

solver="${1:-solver.prototxt}"
ranks="${2:-2}"      # on each machine

if [ "${NODES:-1}" -eq 1 ]; then
  set -- --standalone
else
  # The machines need the same secret, because they may not share a home directory.
  : "${CAFFE_SECRET:?set it to the same random text on all machines}"
  set -- --nnodes="$NODES" --rdzv-backend=c10d --rdzv-endpoint="${MASTER:?host:port of a machine}"
fi

exec torchrun "$@" --nproc-per-node="$ranks" --max-restarts=3 --no-python \
  caffe train "$solver" --auto_resume
