#!/usr/bin/env bash
# Makes build/peer-venv: a virtual environment with PyTorch, for peer_step_time.py, and with
# onnxruntime, OpenVINO and OpenCV, for peer_inference_time.py. Takes about 6 GB: PyTorch's wheels
# on the Python package index link CUDA's libraries, so torch cannot be imported without them even
# on a machine without a GPU.
#
#   benchmarks/peer_environment.sh [VERSION]      version of torch (default: the newest)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=build/peer-venv
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade "torch${1:+==$1}" numpy \
  onnx onnxruntime openvino opencv-python-headless
"$environment/bin/python" -c 'import torch; print(f"torch {torch.__version__} in '"$environment"'")'
