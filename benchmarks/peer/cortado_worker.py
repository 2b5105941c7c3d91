"""Cortado's process of peer_step_time.py: trains with a solver, and thus with the plan of `caffe train`.

  cortado_worker.py FOLDER PRECISION [MEMORY]     serves steps (worker.serve); MEMORY: the solver's memory_limit in MiB
  cortado_worker.py FOLDER FP32 --export          one pass; writes weights.npz and gradients.npz, prints the loss

FOLDER holds net.prototxt (export.prototxt) and inputs.npz.
"""
import pathlib
import sys

import caffe
import numpy as np

import worker

SOLVER = """net: "{net}" base_lr: 1e-6 lr_policy: "fixed" momentum: 0.9 weight_decay: 1e-4
max_iter: 1000000 display: 0 snapshot: 0 snapshot_after_train: false random_seed: 1 precision: {precision}
solver_mode: CPU memory_limit: {memory_limit}
"""


def make_solver(folder, net, precision, memory_limit=0):
    file = folder / f"solver_{precision}_{net}"
    file.write_text(SOLVER.format(net=folder / net, precision=precision, memory_limit=memory_limit), encoding="utf-8")
    solver = caffe.get_solver(str(file), keep_all=False)
    for name, values in np.load(folder / "inputs.npz").items():
        solver.net.blobs[name].data[...] = values
    return solver


def export(folder, solver):
    gradients = {}

    def arrays(field):
        return {f"{layer}.{i}": getattr(blob, field) for layer, blobs in solver.net.params.items()
                for i, blob in enumerate(blobs)}

    weights = {name: values.copy() for name, values in arrays("data").items()}
    np.savez(folder / "weights.npz", **weights)
    solver.add_callback(lambda: None, lambda: gradients.update({k: v.copy() for k, v in arrays("diff").items()}))
    solver.step(1)
    np.savez(folder / "gradients.npz", **gradients)
    worker.say(loss=solver.loss)


def main():
    folder, precision = pathlib.Path(sys.argv[1]), sys.argv[2]
    caffe.init_log(2)
    if "--export" in sys.argv:
        export(folder, make_solver(folder, "export.prototxt", precision))
        return
    idle = worker.memory_bytes("VmRSS")
    solver, clock = make_solver(folder, "net.prototxt", precision, *sys.argv[3:]), worker.Clock()
    solver.add_callback(clock.begin, clock.gradients_ready)

    def step():
        solver.step(1)
        clock.end()

    worker.serve(step, clock, idle)


if __name__ == "__main__":
    main()
