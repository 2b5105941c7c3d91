#!/usr/bin/env bash
# The steps of tests/stranger/run.sh, inside the bare system. `do_ COMMAND` is a line that the user types.
set -euo pipefail
cd "$HOME/cortado"

do_() { printf '$ %s\n' "$*"; eval "$*"; }
result() { echo "RESULT $*"; }

case "$1" in
  quickstart)
    do_ scripts/quickstart.sh
    result "accuracy $(sed -n 's/.*\] accuracy = //p' build/quickstart/test.log | tail -n 1)"
    ;;
  python)  # README's example, as it stands there
    sed -n '/^```python$/,/^```$/p' README.md | sed '1d;/^```$/,$d' >/tmp/example.py
    do_ PYTHONPATH=python /usr/bin/python3 /tmp/example.py | tee /tmp/example.out
    grep -q Memory: /tmp/example.out
    result "predicted and printed the plan"
    ;;
  old_script)  # as a script of 2016 begins
    mkdir -p /tmp/elsewhere
    cat >/tmp/elsewhere/classify_digits.py <<'PYTHON'
import os, sys
caffe_root = os.path.expanduser("~/cortado/")
sys.path.insert(0, caffe_root + "python")
import caffe
caffe.set_mode_cpu()
net = caffe.Net(caffe_root + "examples/mnist/lenet.prototxt",
                caffe_root + "examples/mnist/lenet_iter_10000.caffemodel", caffe.TEST)
net.blobs["data"].data[...] = 0
print("classes:", net.forward()["prob"].shape[1])
PYTHON
    do_ "cd /tmp/elsewhere && /usr/bin/python3 classify_digits.py" | tee /tmp/old.out
    do_ ~/cortado/build/tools/caffe --version
    grep -q "classes: 10" /tmp/old.out
    result "classified, and found build/tools/caffe"
    ;;
  wheel)
    do_ apt-get install -y -q python3-venv python3-dev
    do_ "python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -q ."
    do_ "cd /tmp && /tmp/venv/bin/python -c 'import caffe; print(caffe.__version__, caffe.__file__)'" | tee /tmp/wheel.out
    grep -q /tmp/venv/ /tmp/wheel.out
    result "caffe $(tail -n 1 /tmp/wheel.out | cut -d' ' -f1)"
    ;;
  plan)
    do_ build/tools/caffe plan models/bvlc_alexnet/train_val.prototxt | tee /tmp/plan.out
    result "$(grep '^Peak memory' /tmp/plan.out)"
    ;;
  import)
    if [ -n "${PHOTOGRAPHS:-}" ]; then ln -sfn "$PHOTOGRAPHS" /tmp/photographs; else
      apt-get install -y -q python3-pil >/dev/null
      /usr/bin/python3 - <<'PYTHON'
import pathlib
import numpy as np
from PIL import Image
random = np.random.default_rng(1)
for k, name in enumerate(("dark", "bright")):
    folder = pathlib.Path("/tmp/photographs") / name
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(40):
        picture = random.integers(0, 120, (48, 64, 3)) + 130 * k
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{i}.jpg")
PYTHON
    fi
    do_ build/tools/caffe data import /tmp/photographs /tmp/photographs_db --resize 48x48 --shuffle --val 20%
    result "$(build/tools/caffe data stat /tmp/photographs_db | head -n 1)"
    ;;
  train)  # a net for those images, with a run folder that TensorBoard reads
    cat >/tmp/photographs.prototxt <<'PROTOTXT'
name: "photographs"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { scale: 0.0078125 } data_param { source: "/tmp/photographs_db" batch_size: 16 backend: LMDB } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 16 kernel_size: 5 stride: 4 weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
PROTOTXT
    cat >/tmp/solver.prototxt <<'PROTOTXT'
net: "/tmp/photographs.prototxt" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 200 display: 20
snapshot_prefix: "/tmp/photographs"
PROTOTXT
    rm -rf /tmp/run
    do_ build/tools/caffe train /tmp/solver.prototxt -run_dir /tmp/run
    ls /tmp/run
    do_ "python3 -m venv /tmp/tensorboard && /tmp/tensorboard/bin/pip install -q tensorboard"
    /tmp/tensorboard/bin/python - <<'PYTHON'
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator("/tmp/run")
events.Reload()
tags = events.Tags()["scalars"]
losses = [event.value for event in events.Scalars(next(tag for tag in tags if "loss" in tag))]
assert losses[-1] < losses[0], losses
print(f"RESULT loss {losses[0]:.3f} to {losses[-1]:.3f} in TensorBoard's files, {len(tags)} curves")
PYTHON
    ;;
  *) echo "there is no step '$1'" >&2; exit 2 ;;
esac
