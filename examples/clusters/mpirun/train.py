#!/usr/bin/env python3
"""Trains from Python in the processes that mpirun, srun or torchrun has started.

  mpirun -np 2 python3 examples/clusters/mpirun/train.py [SOLVER]      default solver.prototxt
"""
import sys

import caffe


def main():
    solver = caffe.get_solver(sys.argv[1] if len(sys.argv) > 1 else "solver.prototxt", ranks=True)
    while solver.iter < solver.param.max_iter:
        # Every rank makes the same calls. The loss is the mean over all ranks.
        solver.step(min(10, solver.param.max_iter - solver.iter))
        if solver.rank == 0:
            print(f"iteration {solver.iter}: loss {solver.loss:.4f}", flush=True)
    solver.snapshot()  # rank 0 writes it


if __name__ == "__main__":
    main()
