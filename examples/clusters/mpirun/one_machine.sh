#!/bin/sh
# Trains with several processes on this machine: examples/clusters/README.md.
#
#   examples/clusters/mpirun/one_machine.sh [SOLVER [RANKS]]     default solver.prototxt, 2 ranks
#
# Each rank gets an equal share of the cores, and as many threads. By default Open MPI would bind
# each of two ranks to one core, so each would train with one thread.
set -eu

solver="${1:-solver.prototxt}"
ranks="${2:-2}"
threads=$(( $(nproc) / ranks ))
[ "$threads" -gt 0 ] || threads=1

exec mpirun -np "$ranks" --bind-to none -x OMP_NUM_THREADS="$threads" \
  caffe train "$solver" --auto_resume
