#!/bin/sh
# Trains with the launcher of PyTorch: examples/clusters/README.md. PyTorch only starts the processes.
#
#   examples/clusters/torchrun/train.sh [SOLVER [RANKS]]                     on one machine
#   NODES=2 MASTER=node1:29400 examples/clusters/torchrun/train.sh ...       on each of 2 machines
#
# A rank that fails ends all. --max-restarts starts them again, from the newest snapshot.
set -eu

solver="${1:-solver.prototxt}"
ranks="${2:-2}"      # on each machine

if [ "${NODES:-1}" -eq 1 ]; then
  set -- --standalone
else
  # The machines need the same secret: they may have no home directory in common.
  : "${CAFFE_SECRET:?set it to the same random text on all machines}"
  set -- --nnodes="$NODES" --rdzv-backend=c10d --rdzv-endpoint="${MASTER:?host:port of a machine}"
fi

exec torchrun "$@" --nproc-per-node="$ranks" --max-restarts=3 --no-python \
  caffe train "$solver" --auto_resume
