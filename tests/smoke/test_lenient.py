"""-lenient: fields, enum values and layers that are not Caffe's are left out with a warning; without it they are errors."""
import pytest

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 vendor_bits: 8 }
  quantize_param { scale: 0.1 table { entry: 1 entry: 2 } }
}
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "npu" type: "VendorOp" bottom: "conv" top: "npu" vendor_param { mode: FAST } }
layer { name: "after" type: "ReLU" bottom: "npu" top: "after" }
layer { name: "side" type: "Pooling" bottom: "conv" top: "side" pooling_param { global_pooling: true } }
"""


@pytest.fixture(name="net")
def write_net(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    return path


def test_strict_reading_names_the_place(net, program, run):
    done = run(program("caffe"), "plan", net)
    assert done.returncode == 1
    assert "net.prototxt:5:52: in layer 'conv': ConvolutionParameter has no field 'vendor_bits'" in done.stderr


def test_lenient_reading_leaves_out_and_says_so(net, program, run):
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 0, done.stderr
    for message in ("left out: " + str(net) + ":5:52: in layer 'conv': ConvolutionParameter has no field 'vendor_bits'",
                    "net.prototxt:6:3: in layer 'conv': LayerParameter has no field 'quantize_param'",
                    "left out: layer 'npu' (of unknown type 'VendorOp')",
                    "left out: layer 'after' (ReLU), which reads 'npu'"):
        assert message in done.stderr, message
    assert "side" in done.stdout and "npu" not in done.stdout
    assert f"{net}: 3 fields are left out (--lenient); shapes and numbers may be others" in done.stderr


def test_nothing_left_out_is_no_warning(tmp_path, program, run):
    net = tmp_path / "net.prototxt"
    net.write_text("input: 'x' input_dim: 1 input_dim: 1 input_dim: 9 input_dim: 9 layer { name: 'c' type: 'Convolution' "
                   "bottom: 'x' top: 'c' convolution_param { num_output: 1 kernel_size: 3 hole: 2 engine: MKLDNN } }")
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 0 and "left out" not in done.stderr
    assert "-> 1x1x5x5" in done.stdout  # with dilation


def test_in_python(net):
    import caffe
    with pytest.raises(caffe.InvalidArgument, match="vendor_bits"):
        caffe.Net(str(net), caffe.TEST)
    lenient = caffe.Net(str(net), caffe.TEST, lenient=True)
    assert list(lenient.blobs) == ["data", "conv", "side"]
    with pytest.raises(caffe.InvalidArgument):  # applies to that one call
        caffe.Net(str(net), caffe.TEST)


def test_nothing_left_is_an_error(tmp_path, program, run):
    net = tmp_path / "none.prototxt"
    net.write_text('layer { name: "npu" type: "VendorOp" top: "npu" }')
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 1 and "every layer is of an unknown type" in done.stderr


def test_a_solvers_nets(net, tmp_path, program, run):
    solver = tmp_path / "solver.prototxt"
    solver.write_text(f'net: "{net}" base_lr: 0.1 lr_policy: "fixed" vendor_speed: 3\n')
    assert run(program("caffe"), "plan", "-solver", solver).returncode == 1
    done = run(program("caffe"), "plan", "-solver", solver, "-lenient")
    assert done.returncode == 0, done.stderr
    assert "SolverParameter has no field 'vendor_speed'" in done.stderr and "'quantize_param'" in done.stderr


VALUES = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "a" type: "Pooling" bottom: "data" top: "a" pooling_param { pool: MAXX, kernel_size: 2 } }
layer { name: "b" type: "Pooling" bottom: "a" top: "b"	pooling_param {	pool:
  STRANGE kernel_size: 2 vendor: 1 } include { phase: 7 } }
"""
VALUE_PLACES = [
    (":3:81: in layer 'a': field 'pool' of PoolingParameter has no value 'MAXX'; did you mean 'MAX'? use one of MAX, AVE, STOCHASTIC"),
    (":5:3: in layer 'b': field 'pool' of PoolingParameter has no value 'STRANGE'; use one of MAX, AVE, STOCHASTIC"),
    (":5:55: in layer 'b': field 'phase' of NetStateRule has no value '7'; use one of TRAIN, TEST"),
    (":5:26: in layer 'b': PoolingParameter has no field 'vendor'")]


def test_unknown_values(tmp_path, program, run):
    net = tmp_path / "net.prototxt"
    net.write_text(VALUES)
    strict = run(program("caffe"), "plan", net)
    assert strict.returncode == 1 and f"{net}{VALUE_PLACES[0]}" in strict.stderr
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 0, done.stderr
    for place in VALUE_PLACES:
        assert done.stderr.count(f"left out: {net}{place}") == 1, place + done.stderr
    assert "-> 1x3x6x6" in done.stdout  # the other options are read, and both layers exist


def test_errors_behind_an_unknown_value_have_their_place(tmp_path, program, run):
    net = tmp_path / "net.prototxt"
    net.write_text(VALUES.replace("kernel_size: 2 }", "kernel_size: two }"))
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 1
    assert f"{net}:3:100: in layer 'a': field 'kernel_size' of PoolingParameter takes a whole number, 0 or more, got two" in done.stderr


def test_a_type_that_the_second_format_does_not_have(tmp_path, program, run):
    net = tmp_path / "net.prototxt"
    net.write_text("""
layers { name: "data" type: DUMMY_DATA top: "data" dummy_data_param { num: 1 channels: 3 height: 8 width: 8 } }
layers { name: "npu" type: VENDOR_OP bottom: "data" top: "npu" blob_share_mode: [STRICT, LOOSE] }
layers { name: "after" type: RELU bottom: "npu" top: "after" }
layers { name: "side" type: POOLING bottom: "data" top: "side" pooling_param { kernel_size: 2 } }
""")
    assert run(program("caffe"), "plan", net).returncode == 1
    done = run(program("caffe"), "plan", net, "-lenient")
    assert done.returncode == 0, done.stderr
    for message in (f"left out: {net}:3:28: in layer 'npu': field 'type' of V1LayerParameter has no value 'VENDOR_OP'",
                    f"left out: {net}:3:90: in layer 'npu': field 'blob_share_mode' of V1LayerParameter has no value 'LOOSE'",
                    "left out: layer 'npu' (of unknown type '')", "left out: layer 'after' (ReLU), which reads 'npu'"):
        assert message in done.stderr, message + done.stderr
    assert "side" in done.stdout and "npu" not in done.stdout
