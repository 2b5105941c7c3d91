#!/usr/bin/env bash
# Trains CIFAR-10 full: 60,000 iterations, then 5,000 at a tenth of the rate and 5,000 at a hundredth.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"
prefix=examples/cifar10/cifar10_full
"$bin/caffe" train --solver=${prefix}_solver.prototxt "$@"
"$bin/caffe" train --solver=${prefix}_solver_lr1.prototxt --snapshot=${prefix}_iter_60000.solverstate.h5 "$@"
"$bin/caffe" train --solver=${prefix}_solver_lr2.prototxt --snapshot=${prefix}_iter_65000.solverstate.h5 "$@"
