"""Random windows of poolings and convolutions: the same shapes and numbers as in onnxruntime.

CAFFE_SLOW_TESTS=1 draws 2,000.
"""
import os

import caffe
import caffe.onnx
import nets
import numpy as np
import pytest

COUNT = 2000 if os.environ.get("CAFFE_SLOW_TESTS") else 200


def _pooling(draw):
    kernel = [draw(1, 6), draw(1, 6)]
    pad = [draw(0, k) for k in kernel]
    image = [max(draw(1, 14), k - 2 * p) for k, p in zip(kernel, pad)]
    mode = ("MAX", "AVE")[draw(0, 2)]
    options = (f"pool: {mode} kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: {draw(1, 5)} stride_w: {draw(1, 5)} "
               f"pad_h: {pad[0]} pad_w: {pad[1]} round_mode: {('CEIL', 'FLOOR')[draw(0, 2)]}")
    mask = "top: 'mask'" if mode == "MAX" and draw(0, 3) == 0 else ""
    return (2, 3, *image), f"layer {{ name: 'l' type: 'Pooling' bottom: 'x0' top: 'y' {mask} pooling_param {{ {options} }} }}"


def _convolution(draw):
    kernel, stride, dilation = ([draw(1, 4) for _ in range(2)] for _ in range(3))
    pad = [draw(0, 3) for _ in range(2)]
    group = draw(1, 4)
    image = [max(draw(1, 12), (k - 1) * d + 1 - 2 * p) for k, d, p in zip(kernel, dilation, pad)]
    kind = ("Convolution", "Deconvolution")[draw(0, 2)]
    options = (f"num_output: {group * draw(1, 4)} group: {group} kernel_h: {kernel[0]} kernel_w: {kernel[1]} "
               f"stride_h: {stride[0]} stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]} "
               f"dilation: {dilation[0]} dilation: {dilation[1]} bias_term: {('true', 'false')[draw(0, 2)]}")
    return ((2, group * draw(1, 3), *image),
            f"layer {{ name: 'l' type: '{kind}' bottom: 'x0' top: 'y' convolution_param {{ {options} }} }}")


@pytest.mark.parametrize("family", [_pooling, _convolution], ids=["poolings", "convolutions"])
def test_windows(family):
    checked = 0
    for seed in range(COUNT):
        generator = np.random.default_rng(seed)
        shape, layer = family(lambda low, high: int(generator.integers(low, high)))
        try:
            net = nets.draw_weights(nets.net_with([shape], layer), seed)
        except caffe.Error:
            continue  # windows that Caffe refuses
        try:
            report = caffe.onnx.export(net, opset=nets.OPSETS[seed % 4], check=True)
        except caffe.Unsupported as error:
            assert "a mask of windows that lie beyond the image" in str(error)
            continue
        assert max(report.differences.values()) <= 1e-5, (seed, layer)
        assert not any(attribute.name in ("ceil_mode", "count_include_pad") for node in report.model.graph.node
                       for attribute in node.attribute)
        checked += 1
    assert checked > COUNT / 2
