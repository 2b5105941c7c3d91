"""For models with the profile opencv5, OpenCV 5 computes the same as onnxruntime: tests the profile's list of operators and limits.

Skipped if there is no OpenCV 5: pip install opencv-python-headless.
"""
import caffe
import caffe.onnx
import nets
import numpy as np
import pytest
import test_export_detection as detection
import test_export_layers as layers

cv2 = pytest.importorskip("cv2", reason="no OpenCV 5: pip install opencv-python-headless")
if int(cv2.__version__.split(".", maxsplit=1)[0]) < 5:
    pytest.skip(f"OpenCV is {cv2.__version__}", allow_module_level=True)


def _differences(net, given, opset):
    """Differences between OpenCV's and onnxruntime's outputs, by name; None if the profile or onnxruntime refuses the net."""
    try:
        report = caffe.onnx.export(net, opset=opset, check=False, profile="opencv5")
        generator = np.random.default_rng(3)
        inputs = {name: np.asarray(given.get(name, generator.uniform(-1, 1, shape)), np.float32).reshape(shape)
                  for name, shape in report.inputs.items()}
        expected = caffe.onnx.run(report.model, inputs)
    except caffe.InvalidArgument as error:
        assert isinstance(error, caffe.onnx.NotComputed) or "no layer is left" in str(error)
        return None
    except caffe.Unsupported as error:
        assert "MaxRoiPool" in str(error)
        return None
    model = cv2.dnn.readNetFromONNX(np.frombuffer(report.model.SerializeToString(), np.uint8))
    for name, array in inputs.items():
        model.setInput(array, name)
    got = model.forward(list(report.outputs))
    return {name: caffe.onnx.differences.numbers(expected[name], np.reshape(array, expected[name].shape)).relative
            for name, array in zip(report.outputs, got)}


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("case", layers.CASES)
def test_a_layer(case, opset):
    shapes, text = layers.CASES[case]
    given = {"x1": layers.BOXES} if case.startswith("ROI") else {}
    differences = _differences(nets.draw_weights(nets.net_with(shapes, text)), given, opset)
    assert differences is None or max(differences.values()) <= 1e-4


@pytest.mark.parametrize("file", layers.GOLDENS, ids=lambda file: file.stem)
def test_a_golden(file):
    net, given = nets.golden_net(file)
    if net is None or not nets.is_test_phase(file):
        pytest.skip("needs a file, or is of phase TRAIN")
    differences = _differences(net, given, 13)
    assert differences is None or max(differences.values()) <= 1e-4


@pytest.mark.parametrize("case", detection.CASES)
def test_detections(case):
    options, sizes = detection.CASES[case]
    net = detection._head(options, **sizes)
    generator = np.random.default_rng(3)
    given = {"loc": generator.normal(0, 0.5, net.blobs["loc"].shape), "conf": generator.uniform(0, 1, net.blobs["conf"].shape)}
    assert max(_differences(net, given, 13).values()) <= 1e-6
