"""Nets of torchvision for classification and segmentation, with random weights, as PyTorch's exporters write them.

A slow test: needs PyTorch, torchvision and onnxscript, which scripts/install_dependencies.sh does not install.
"""
import os
import warnings

import caffe.onnx
import pytest

torch = pytest.importorskip("torch", reason="no PyTorch: pip install torch torchvision onnxscript")
torchvision = pytest.importorskip("torchvision", reason="no torchvision: pip install torch torchvision onnxscript")

if not os.environ.get("CAFFE_SLOW_TESTS"):
    pytest.skip("a slow test: CAFFE_SLOW_TESTS=1", allow_module_level=True)

NAMES = ["alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3", "maxvit_t",
         "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "regnet_y_400mf", "resnet18", "resnext50_32x4d", "shufflenet_v2_x0_5",
         "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vit_b_16"]
SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]


class _Scores(torch.nn.Module):
    """The scores of a net for segmentation, which returns a dict."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)["out"]


def _module(name):
    torch.manual_seed(1)
    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name in SEGMENTATION:
        return _Scores(torchvision.models.get_model(name, weights=None, weights_backbone=None)).eval()
    module = torchvision.models.get_model(name, weights=None, **options).eval()
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.uniform_(-0.1, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    if name == "vit_b_16":
        torch.nn.init.normal_(module.heads.head.weight)  # zeros otherwise
    return module


@pytest.mark.parametrize("name", NAMES + SEGMENTATION)
def test_architecture(name, tmp_path):
    size = 299 if name == "inception_v3" else 224
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(_module(name), (torch.randn(1, 3, size, size),), tmp_path / "net.onnx", opset_version=17, dynamo=False)
    result = caffe.onnx.import_model(tmp_path / "net.onnx")
    print(f"{name}: {len(result.net.layers)} layers, {max(result.differences.values()):.1e}")
    assert max(result.differences.values()) <= 1e-4
