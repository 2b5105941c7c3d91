#!/bin/sh
# Trains on the machines of a host file: examples/clusters/README.md.
#
#   examples/clusters/mpirun/several_machines.sh [SOLVER [HOSTFILE]]
#
# Start it on the first machine of the file; all machines need the same folder and password-less
# ssh. Starts one rank per slot, bound to its share of the cores.
set -eu

solver="${1:-solver.prototxt}"
hosts="${2:-examples/clusters/mpirun/hosts}"
threads="${OMP_NUM_THREADS:-8}"    # cores of a machine / slots of a machine

exec mpirun --hostfile "$hosts" --map-by "slot:PE=$threads" --bind-to core \
  -x PATH -x LD_LIBRARY_PATH -x OMP_NUM_THREADS="$threads" \
  caffe train "$solver" --auto_resume
