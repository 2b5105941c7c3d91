#!/usr/bin/env bash
# Trains CIFAR-10 quick: 4,000 iterations, then 1,000 more at a tenth of the rate.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin="${CAFFE_BIN:-build/cpu-release/bin}"
"$bin/caffe" train --solver=examples/cifar10/cifar10_quick_solver.prototxt "$@"
"$bin/caffe" train --solver=examples/cifar10/cifar10_quick_solver_lr1.prototxt \
  --snapshot=examples/cifar10/cifar10_quick_iter_4000.solverstate "$@"
