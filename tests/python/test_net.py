"""Net: construction, names, forward and backward, files, hooks."""
import os
import pathlib
import subprocess
import sys
import threading

import caffe
import numpy as np
import pytest
from caffe import layers as L

from built_package import PACKAGE, SIMPLE


def test_constructors(write, simple, capfd, tmp_path):
    file, weights = write(SIMPLE), str(tmp_path / "w.caffemodel")
    simple.save(weights)
    for net in (caffe.Net(file, caffe.TRAIN, weights=weights), caffe.Net(network_file=file, phase=0, weights=weights),
                caffe.Net(pathlib.Path(file), caffe.TRAIN, 0, None, pathlib.Path(weights)),
                caffe.Net(simple.definition, caffe.TEST, weights=weights)):
        assert (net.params["ip"][0].data == simple.params["ip"][0].data).all()
    assert "DEPRECATION" not in capfd.readouterr().err
    net = caffe.Net(file, weights, caffe.TEST)
    assert "DEPRECATION WARNING" in capfd.readouterr().err
    assert (net.params["ip"][0].data == simple.params["ip"][0].data).all()
    for arguments in [(file + "x", caffe.TEST), (file, caffe.TEST, 0, None, weights + "x"),
                      (file + "x", weights, caffe.TEST), (file, weights + "x", caffe.TEST)]:
        with pytest.raises(RuntimeError, match="Could not open file"):
            caffe.Net(*arguments)


def test_a_message_may_be_of_an_older_form():
    from caffe.proto import caffe_pb2
    from google.protobuf import text_format
    net = caffe.Net(text_format.Parse("""
        input: 'x' input_dim: 1 input_dim: 1 input_dim: 9 input_dim: 9
        layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'y' convolution_param { num_output: 1 kernel_size: 3 hole: 2 } }
        """, caffe_pb2.NetParameter()), caffe.TEST)
    assert net.blobs["y"].shape == (1, 1, 5, 5)


def test_phase_level_and_stages(write):
    def layer(name, rule):
        return f"layer {{ name: '{name}' type: 'DummyData' top: '{name}' {rule} dummy_data_param {{ shape {{ dim: 1 }} }} }}"

    file = write("name: 'rules'" + layer("always", "") + layer("train", "include { phase: TRAIN }")
                 + layer("high", "include { min_level: 2 }") + layer("both", "include { stage: 'a' stage: 'b' }")
                 + layer("not_c", "exclude { stage: 'c' }"))

    def names(*arguments, **options):
        return set(caffe.Net(file, *arguments, **options)._layer_names)

    assert names(caffe.TRAIN) == {"always", "train", "not_c"}
    assert names(caffe.TEST, level=2) == {"always", "high", "not_c"}
    assert names(caffe.TEST, 0, ["a", "b"]) == {"always", "both", "not_c"}
    assert names(caffe.TEST, stages=["c"]) == {"always"}
    with pytest.raises(TypeError, match="list of strings"):
        names(caffe.TEST, stages="c")


def test_names(simple):
    assert list(simple.blobs) == ["data", "label", "conv", "relu", "ip", "loss"]
    assert list(simple.params) == ["conv", "ip"] and simple.inputs == ["data", "label"] and simple.outputs == ["loss"]
    assert list(simple.top_names.items())[:3] == [("data", ["data"]), ("label", ["label"]), ("conv", ["conv"])]
    assert simple.bottom_names["loss"] == ["ip", "label"]
    assert simple.blob_loss_weights["loss"] == 1 and simple.blob_loss_weights["ip"] == 0
    assert list(simple._top_ids(2)) == [2] and list(simple._bottom_ids(5)) == [4, 1]
    assert [layer.type for layer in simple.layers] == [
        "Input", "Input", "Convolution", "ReLU", "InnerProduct", "SoftmaxWithLoss"]
    assert simple.layer_dict["conv"].blobs[1].shape == (11,)
    assert simple.blobs["conv"] is simple.blobs["conv"]
    assert repr(simple).startswith("<caffe.Net 'simple': 6 layers")
    assert caffe.layer_type_list() == sorted(caffe.layer_type_list()) and "Python" in caffe.layer_type_list()


@pytest.mark.parametrize("encoding", ["latin-1", "gbk", "utf-8"])
def test_names_need_not_be_utf_8(tmp_path, encoding):
    name = {"latin-1": "Größe", "gbk": "数据", "utf-8": "数据"}[encoding]
    file = tmp_path / "net.prototxt"
    file.write_text(f"""name: '{name}'
        layer {{ name: '{name}' type: 'Input' top: '{name}' input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
        layer {{ name: 'ip{name}' type: 'InnerProduct' bottom: '{name}' top: 'ip{name}' inner_product_param {{ num_output: 1 }} }}
        """, encoding=encoding)
    net = caffe.Net(str(file), caffe.TEST)
    seen = name.encode(encoding).decode("utf-8", "surrogateescape")
    assert list(net.blobs) == [seen, "ip" + seen] and list(net.params) == ["ip" + seen]
    assert net.inputs == [seen] and net.outputs == ["ip" + seen] and list(net.layer_dict) == [seen, "ip" + seen]
    assert net.name == seen and net.layers[0].name == seen and seen in repr(net.layers[0])
    assert net.forward(**{seen: np.ones((2, 3))})["ip" + seen].shape == (2, 1)
    assert [step.layers for step in net.plan().steps] == ["ip" + seen]
    assert net.top_names[seen] == [seen] and net.bottom_names["ip" + seen] == [seen]


def test_scripts_name_nets(simple):
    assert simple.name == "simple"
    simple.name = "vgg_iter_10"
    assert simple.name == "vgg_iter_10" and "vgg_iter_10" in repr(simple)


def test_forward_of_given_arrays(simple):
    data, label = np.full((5, 2, 6, 7), 0.5), np.arange(5) % 4
    out = simple.forward(data=data, label=label)
    assert list(out) == ["loss"] and (simple.blobs["data"].data == 0.5).all()
    out = simple.forward(["ip"], data=data.tolist(), label=label.astype(np.int64))
    assert set(out) == {"loss", "ip"} and out["ip"].shape == (5, 4)
    assert np.shares_memory(out["ip"], simple.blobs["ip"].data)


def test_partial_forward_and_backward(simple):
    whole = simple.forward(["ip"])
    ip, loss = whole["ip"].copy(), float(whole["loss"])
    simple.blobs["ip"].data[...] = 0
    assert set(simple.forward(end="relu")) == {"relu"} and (simple.blobs["ip"].data == 0).all()
    assert simple.forward(start="ip", end="ip")["ip"] == pytest.approx(ip)
    assert simple._forward(0, 5) == pytest.approx(loss)
    simple.clear_param_diffs()
    first = simple.backward(["conv"])
    assert set(first) == {"data", "label", "conv"} and np.abs(first["data"]).sum() > 0
    expected = first["data"].copy()
    simple.blobs["data"].diff[...] = 0
    assert set(simple.backward(end="ip")) == {"relu"} and (simple.blobs["data"].diff == 0).all()
    assert simple.backward(start="relu")["data"] == pytest.approx(expected)


IN_PLACE = SIMPLE.replace("top: 'relu'", "top: 'conv'").replace("bottom: 'relu'", "bottom: 'conv'")


def test_partial_runs_show_what_in_place_layers_overwrite(write):
    net = caffe.Net(write(IN_PLACE), caffe.TRAIN)
    data = np.random.default_rng(0).standard_normal((5, 2, 6, 7))
    net.forward(data=data, label=np.arange(5) % 4)
    after = net.blobs["conv"].data.copy()
    before = net.forward(end="conv")["conv"].copy()
    assert before.min() < 0 and np.array_equal(np.maximum(before, 0), after)
    assert np.array_equal(net.forward(start="relu", end="relu")["conv"], after)
    net.blobs["conv"].data[...] = -1
    assert (net.forward(start="relu", end="relu")["conv"] == 0).all()
    seen = {}
    net.after_forward(lambda i: seen.update({net._layer_names[i]: net.blobs["conv"].data.copy()}))
    net.forward(data=data, label=np.arange(5) % 4)
    assert np.array_equal(seen["conv"], before) and np.array_equal(seen["loss"], after)


def test_backward_from_an_in_place_layer_begins_with_the_blobs_diff(write):
    net = caffe.Net(write(IN_PLACE), caffe.TRAIN)
    net.forward(data=np.random.default_rng(0).standard_normal((5, 2, 6, 7)), label=np.arange(5) % 4)
    net.blobs["conv"].diff[...] = 2
    assert np.array_equal(net.backward(start="relu", end="relu")["conv"], 2 * (net.blobs["conv"].data > 0))
    # Gives the same as a single run.
    whole = net.backward()["data"].copy()
    arriving = net.backward(end="ip")["conv"].copy()
    assert (arriving[net.blobs["conv"].data == 0] != 0).any()
    net.blobs["data"].diff[...] = 0
    assert np.array_equal(net.backward(start="relu")["data"], whole)
    diffs = {}
    net.after_backward(lambda i: diffs.update({net._layer_names[i]: net.blobs["conv"].diff.copy()}))
    assert np.array_equal(net.backward()["data"], whole)
    assert np.array_equal(diffs["ip"], arriving)
    assert np.array_equal(diffs["relu"], np.where(net.blobs["conv"].data > 0, arriving, 0))


def test_layer_by_layer_is_as_one_run():
    n = caffe.NetSpec()
    filler = dict(weight_filler=dict(type="gaussian", std=0.3))
    n.data = L.Input(shape=dict(dim=[2, 3, 9, 9]))
    n.power = L.Power(n.data, scale=0.5, in_place=True)
    n.conv = L.Convolution(n.power, num_output=4, kernel_size=3, pad=1, **filler)
    n.norm = L.BatchNorm(n.conv, in_place=True)
    n.scale = L.Scale(n.norm, bias_term=True, in_place=True)
    n.relu = L.ReLU(n.scale, in_place=True)
    n.inner = L.Convolution(n.relu, num_output=4, kernel_size=1, **filler)
    n.sum = L.Eltwise(n.relu, n.inner)
    n.leaky = L.ReLU(n.sum, in_place=True, negative_slope=0.1)
    n.one, n.two = L.Pooling(n.leaky, kernel_size=3, stride=2), L.TanH(n.leaky)
    n.loss = L.Reduction(n.two, loss_weight=0.1)
    n.ip = L.InnerProduct(n.one, num_output=5, **filler)
    n.elu = L.ELU(n.ip, in_place=True)
    definition = n.to_proto()
    definition.force_backward = True

    def results(run, hook=False):
        caffe.set_random_seed(5)
        net = caffe.Net(definition, caffe.TRAIN)
        net.blobs["data"].data[...] = np.random.default_rng(0).standard_normal((2, 3, 9, 9))
        net.blobs["ip"].diff[...] = 1
        if hook:
            net.after_forward(lambda layer: None)
            net.before_backward(lambda layer: None)
        run(net, len(net.layers))
        blobs = [array for blob in net.blobs.values() for array in (blob.data, blob.diff)]
        return blobs + [blob.diff for blobs in net.params.values() for blob in blobs]

    def whole(net, count):
        net.forward()
        net.backward()

    def single(net, count):
        for i in range(count):
            net._forward(i, i)
        for i in reversed(range(count)):
            net._backward(i, i)

    expected = results(whole)
    assert np.abs(expected[1]).sum() > 0
    for found in (results(single), results(whole, hook=True)):
        for a, b in zip(expected, found):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_backward_begins_with_the_diff_of_a_blob_with_several_readers(write):
    readers = "".join(f"layer {{ name: '{name}' type: 'Power' bottom: 'conv' top: '{name}' power_param {{ scale: 3 }} }}"
                      for name in ("one", "two"))
    net = caffe.Net(write(SIMPLE.split("layer { name: 'label'")[0] + "layer { name: 'conv'" +
                          SIMPLE.split("layer { name: 'conv'")[1].split("layer { name: 'relu'")[0] + readers),
                    caffe.TEST)
    net.forward(data=np.ones((5, 2, 6, 7)))
    net.blobs["conv"].diff[...] = 1
    given = net.backward(start="conv")["data"].copy()
    assert np.abs(given).sum() > 0 and (net.blobs["conv"].diff == 1).all()
    ones = np.ones(net.blobs["one"].shape)
    assert net.backward(one=ones, two=ones)["data"] == pytest.approx(6 * given, rel=1e-5, abs=1e-5)
    assert (net.blobs["conv"].diff == 6).all()


def test_forced_backward_begins_with_the_diff_of_a_blob_whose_readers_have_no_gradient(write):
    text = SIMPLE.split("layer { name: 'loss'")[0].replace(
        "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 5 } } }", "")
    net = caffe.Net(write(text + "layer { name: 'best' type: 'ArgMax' bottom: 'ip' top: 'best' }"), caffe.TEST)
    net.forward(data=np.random.default_rng(0).standard_normal((5, 2, 6, 7)))
    net.blobs["ip"].diff[:, 1] = 1
    gradient = net.backward(start="ip", end="ip")["relu"]
    assert gradient.reshape(5, -1) == pytest.approx(np.tile(net.params["ip"][0].data[1], (5, 1)), rel=1e-5)


def test_backward_of_given_diffs_and_accumulation(simple):
    simple.forward()
    simple.clear_param_diffs()
    simple.backward(loss=1)
    once = simple.params["ip"][0].diff.copy()
    simple.backward(loss=2)
    assert simple.params["ip"][0].diff == pytest.approx(3 * once, rel=1e-4)
    simple.clear_param_diffs()
    assert (simple.params["ip"][0].diff == 0).all()


def test_batches_of_any_size(write):
    net = caffe.Net(write(SIMPLE.replace("layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 5 } "
                                         "} }", "").split("layer { name: 'loss'")[0]), caffe.TEST)
    items = np.random.default_rng(0).standard_normal((13, 2, 6, 7)).astype(np.float32)
    out = net.forward_all(["relu"], data=items)
    assert out["ip"].shape == (13, 4) and out["relu"].shape == (13, 11, 6, 7)
    for i in (0, 4, 5, 12):
        batch = np.zeros((5, 2, 6, 7))
        batch[0] = items[i]
        assert net.forward(data=batch)["ip"][0] == pytest.approx(out["ip"][i], rel=1e-4, abs=1e-5)
    outs, diffs = net.forward_backward_all(diffs=["relu"], data=items, ip=np.ones((13, 4)))
    assert outs["ip"] == pytest.approx(out["ip"], rel=1e-4, abs=1e-5)
    assert diffs["data"].shape == items.shape and diffs["relu"].shape == (13, 11, 6, 7)
    assert diffs["relu"][12].ravel() == pytest.approx(net.params["ip"][0].data.sum(0), rel=1e-4, abs=1e-5)


def test_reshaped_inputs(simple):
    simple.blobs["data"].reshape(3, 2, 6, 7)
    simple.blobs["label"].reshape(3)
    simple.reshape()
    assert simple.blobs["ip"].shape == (3, 4)
    assert simple.forward(["ip"])["ip"].shape == (3, 4)
    simple.blobs["data"].reshape(3, 2, 9, 9)
    for _ in range(2):
        with pytest.raises(caffe.InvalidArgument, match="'ip'.*input size cannot change"):
            simple.forward()
    simple.blobs["data"].reshape(2, 2, 6, 7)
    simple.blobs["label"].reshape(2)
    assert simple.forward(["ip"])["ip"].shape == (2, 4)


@pytest.mark.parametrize("kind", ["binary", "hdf5"])
def test_weights_to_files_and_back(simple, write, tmp_path, kind):
    pytest.importorskip("h5py")
    file = tmp_path / ("w.caffemodel" if kind == "binary" else "w.h5")
    (simple.save if kind == "binary" else simple.save_hdf5)(file)
    other = caffe.Net(write(SIMPLE), caffe.TEST)
    other.copy_from(str(file))
    for name, blobs in simple.params.items():
        for mine, theirs in zip(blobs, other.params[name]):
            assert (mine.data == theirs.data).all()
    if kind == "hdf5":
        moved = tmp_path / "weights"
        file.rename(moved)
        other.params["ip"][0].data[...] = 0
        other.load_hdf5(moved)
        assert (other.params["ip"][0].data == simple.params["ip"][0].data).all()
        simple.forward()
        simple.backward()
        simple.save_hdf5(tmp_path / "diff.h5", write_diff=True)
        import h5py
        with h5py.File(tmp_path / "diff.h5") as h5:
            assert (h5["diff/ip/0"][()] == simple.params["ip"][0].diff).all()


@pytest.mark.parametrize("ending", ["caffemodel", "caffemodel.h5"])
def test_weights_of_another_net_are_refused(simple, write, tmp_path, ending):
    if ending.endswith("h5"):
        pytest.importorskip("h5py")
    weights = str(tmp_path / f"w.{ending}")
    simple.save_hdf5(weights) if ending.endswith("h5") else simple.save(weights)
    other = write(SIMPLE.replace("'conv'", "'c'").replace("'ip'", "'i'"), "other.prototxt")
    text = r"w\.caffemodel.*none of the net's 2 layers with parameters \('c', \.\.\.\)"
    with pytest.raises(caffe.InvalidArgument, match=text):
        caffe.Net(other, caffe.TEST, weights=weights)
    net = caffe.Net(other, caffe.TEST)
    with pytest.raises(caffe.InvalidArgument, match=text):
        net.copy_from(weights)
    if ending.endswith("h5"):
        with pytest.raises(caffe.InvalidArgument, match=text):
            net.load_hdf5(weights)
    # A part is enough, as when nets are modified; nets without parameters accept any file.
    caffe.Net(write(SIMPLE.replace("'ip'", "'i'"), "part.prototxt"), caffe.TEST).copy_from(weights)
    caffe.Net(write("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } }", "none.prototxt"),
              caffe.TEST).copy_from(weights)


def test_layers_of_a_test_net_without_weights_are_named(simple, write, tmp_path):
    weights = str(tmp_path / "w.caffemodel")
    simple.save(weights)
    part = write(SIMPLE.replace("'ip'", "'i'"), "part.prototxt")
    script = f"import caffe; caffe.Net({part!r}, caffe.%s, weights={weights!r})"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    environment.pop("GLOG_minloglevel", None)
    log = {phase: subprocess.run([sys.executable, "-c", script % phase], env=environment, check=True, capture_output=True,
                                 text=True).stderr for phase in ("TEST", "TRAIN")}
    warning = "has no weights for 1 layer of this net, which keeps what the fillers gave: 'i'"
    assert [line[0] for line in log["TEST"].splitlines() if warning in line] == ["W"], log["TEST"]
    assert warning not in log["TRAIN"]  # fine-tuning


def test_hooks_run_around_each_layer_and_can_change_blobs(simple):
    seen = []
    simple.before_forward(lambda layer: seen.append(("<", layer)))
    simple.after_forward(lambda layer: seen.append((">", layer)))

    def double_conv(layer):
        if layer == 2:
            simple.blobs["conv"].data[...] = 1

    simple.after_forward(double_conv)
    assert (simple.forward(["relu"])["relu"] == 1).all()
    assert seen == [(sign, layer) for layer in range(6) for sign in "<>"]
    seen.clear()
    simple.before_backward(lambda layer: seen.append(("<", layer)))
    simple.after_backward(lambda layer: seen.append((">", layer)))
    simple.backward(start="ip", end="conv")
    assert seen == [(sign, layer) for layer in (4, 3, 2) for sign in "<>"]


def test_what_a_hook_raises_reaches_the_caller(simple):
    def stop(layer):
        if layer == 3:
            raise KeyError("enough")

    simple.before_forward(stop)
    with pytest.raises(KeyError, match="enough"):
        simple.forward()
    with pytest.raises(KeyError, match="enough"):
        simple.forward()
    assert simple.forward(end="conv")["conv"].shape == (5, 11, 6, 7)


def test_a_net_serves_one_thread_at_a_time(simple):
    inside, done, errors = threading.Event(), threading.Event(), []

    def wait(layer):
        inside.set()
        done.wait(300)

    simple.before_forward(wait)
    runner = threading.Thread(target=simple.forward)
    runner.start()
    assert inside.wait(300)
    for call in (simple.forward, simple.backward, simple.reshape, lambda: simple.blobs["data"].data,
                 lambda: simple.blobs["data"].reshape(1), simple.clear_param_diffs):
        with pytest.raises(caffe.InvalidArgument, match="running in another thread; use one per thread"):
            call()
    done.set()
    runner.join()
    simple.forward()


def test_nets_of_several_threads_run_beside_each_other(write):
    file = write(SIMPLE)
    nets = [caffe.Net(file, caffe.TEST) for _ in range(4)]
    for net in nets[1:]:
        net.share_with(nets[0])
    data = np.random.default_rng(0).standard_normal((5, 2, 6, 7)).astype(np.float32)
    results = [None] * 4

    def work(i):
        for _ in range(20):
            results[i] = nets[i].forward(["ip"], data=data, label=np.zeros(5))["ip"].copy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for result in results[1:]:
        assert (result == results[0]).all()


def test_memory_data(write):
    net = caffe.Net(write("""
        layer { name: 'm' type: 'MemoryData' top: 'x' top: 'y'
                memory_data_param { batch_size: 2 channels: 3 height: 1 width: 2 } }"""), caffe.TEST)
    with pytest.raises(caffe.InvalidArgument, match="has no data yet.*set_input_arrays"):
        net.forward()
    data, labels = np.arange(24, dtype=np.float32).reshape(4, 3, 1, 2), np.arange(4, dtype=np.float32)
    net.set_input_arrays(data, labels)
    del labels
    for batch in (0, 1, 0):
        out = net.forward()
        assert (out["x"] == data[2 * batch:2 * batch + 2]).all()
        assert out["y"].ravel().tolist() == [2 * batch, 2 * batch + 1]
    wrong = [(data.astype(np.float64), "float64"), (data[:, :, :, ::-1], "C-contiguous"), (data[:3], "multiple"),
             (data[:, :2].copy(), "axis 1"), (data[0], "axes")]
    for values, text in wrong:
        with pytest.raises(caffe.InvalidArgument, match=text):
            net.set_input_arrays(values, np.zeros(len(values), np.float32))
    with pytest.raises(caffe.InvalidArgument, match="4 items but 2 labels"):
        net.set_input_arrays(data, np.zeros(2, np.float32))


def test_wrong_definitions_say_where(write):
    with pytest.raises(caffe.InvalidArgument, match="did you mean 'Convolution'"):
        caffe.Net(write("layer { name: 'a' type: 'Convolutoin' top: 'x' }"), caffe.TEST)
    with pytest.raises(caffe.Error, match="net.prototxt"):
        caffe.Net(write("layer { nam: 'a' }"), caffe.TEST)
    with pytest.raises(caffe.InvalidArgument, match="phase is 7"):
        caffe.Net(write(SIMPLE), 7)


def test_shapes_that_callers_give_to_blobs_that_are_no_inputs(write):
    text = ("force_backward: true layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 8 } } } "
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 90000 } } "
            "layer { name: 'relu' type: 'ReLU' bottom: 'y' top: 'z' }")
    net = caffe.Net(write(text), caffe.TEST)
    net.forward()
    for blob in ("y", "z"):  # their shapes follow from the inputs
        net.blobs[blob].reshape(1)
        assert net.forward()["z"].shape == (4, 90000)
        net.blobs[blob].reshape(3, 5)
        net.backward()
        assert net.blobs[blob].data.shape == (4, 90000)
    net.params["ip"][0].reshape(1)
    with pytest.raises(caffe.InvalidArgument, match="layer 'ip': parameter 0 was reshaped to 1; the layer needs 90000x8"):
        net.forward()
    net.params["ip"][0].reshape(90000, 8)
    net.forward()
    net.blobs["x"].reshape(1, 8)
    with pytest.raises(caffe.InvalidArgument, match="an input was reshaped after forward"):
        net.backward()
    with pytest.raises(caffe.InvalidArgument, match=r"no blob before layer 2 \('relu'\) has a value"):
        net.forward(start="relu")
    net.reshape()
    net.blobs["y"].data[...] = 3
    assert (net.forward(start="relu")["z"] == np.full((1, 90000), 3)).all()
    with pytest.raises(caffe.InvalidArgument, match="layer 1 .'ip'. comes before layer 2 .'relu'."):
        net.forward(start="relu", end="ip")


def test_hooks_change_neither_shapes_nor_hooks(simple):
    calls = []
    simple.before_forward(lambda _: calls.append(simple.blobs["data"].reshape(1, 2, 6, 7)))
    with pytest.raises(caffe.InvalidArgument, match="is running: what it calls back cannot change it"):
        simple.forward()
    assert not calls and simple.blobs["data"].shape[0] == 5


def test_a_hook_adds_no_hook(simple):
    simple.after_forward(lambda _: simple.after_forward(print))
    with pytest.raises(caffe.InvalidArgument, match="the net is running"):
        simple.forward()


def test_a_name_of_two_layers_is_that_of_the_first(write):
    net = caffe.Net(write("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 } } } "
                          "layer { name: 'c' type: 'Power' bottom: 'x' top: 'a' power_param { scale: 2 } } "
                          "layer { name: 'm' type: 'Power' bottom: 'a' top: 'b' power_param { scale: 2 } } "
                          "layer { name: 'c' type: 'Exp' bottom: 'b' top: 'd' }"), caffe.TEST)
    net.blobs["x"].data[...] = 5
    assert net.forward(end="c") == {"a": 10}
    assert net.top_names["c"] == ["a"] and net.bottom_names["c"] == ["x"] and net.layer_dict["c"].type == "Power"
    assert [row["reads"] for row in caffe.summary.summarize(net)] == [[], ["x"], ["a"], ["b"]]
    assert net._repr_html_().count(">c<") == 4  # in the drawing and in the table


def test_an_array_without_a_name(simple):
    with pytest.raises(caffe.InvalidArgument, match=r"give inputs by name: forward\(data=\.\.\., label=\.\.\.\)"):
        simple.forward(np.zeros((5, 2, 6, 7)))


@pytest.mark.parametrize("arguments", [(), (caffe.TEST, "x.caffemodel"), ("TEST",)])
def test_a_wrong_call_of_net_says_the_right_one(write, arguments):
    with pytest.raises(TypeError) as error:
        caffe.Net(write(SIMPLE), *arguments)
    assert 'caffe.Net("net.prototxt", caffe.TEST, weights="x.caffemodel")' in str(error.value)
    assert "incompatible" not in str(error.value)


def test_a_missing_axis_is_named(write):
    net = caffe.Net(write("layer { name: 'd' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 1 dim: 8 dim: 9 } } }"),
                    caffe.TEST)
    for call, items in ((net.forward, 4), (net.forward_all, 11)):
        with pytest.raises(caffe.InvalidArgument) as error:
            call(data=np.zeros((items, 8, 9)))
        assert f"({items}, 8, 9)" in str(error.value) and "(4, 1, 8, 9)" in str(error.value)
        assert "channel axis is missing" in str(error.value)
    with pytest.raises(caffe.InvalidArgument, match="batch axis is missing"):
        net.forward(data=np.zeros((1, 8, 9)))


def test_unknown_names_have_suggestions(simple):
    with pytest.raises(KeyError, match="no blob 'lable'; did you mean 'label'"):
        simple.blobs["lable"]  # pylint: disable=pointless-statement
    with pytest.raises(KeyError, match="named 'relu'.*It has: conv, ip"):
        simple.params["relu"]  # pylint: disable=pointless-statement
    assert simple.blobs.get("no") is None and "no" not in simple.params


def test_blobs_that_are_not_kept_cannot_be_read(write):
    net = caffe.Net(write(SIMPLE), caffe.TEST, keep_all=False)
    net.blobs["data"].data[...] = 1
    net.blobs["label"].data[...] = 1
    assert net.forward()["loss"] > 0
    assert net.blobs["conv"].shape == (5, 11, 6, 7) and net.blobs["conv"].count == 5 * 11 * 6 * 7
    for blob in (net.blobs["conv"], net.blobs["ip"]):
        for use in (lambda b=blob: b.data, lambda b=blob: b.diff, lambda b=blob: np.asarray(b), lambda b=blob: setattr(b, "data", 0)):
            with pytest.raises(caffe.InvalidArgument, match="not kept by this net's plan.*keep_all=True"):
                use()
    with pytest.raises(caffe.InvalidArgument, match="keep_all=True"):
        net.forward(["conv"])
    with pytest.raises(caffe.InvalidArgument, match="keep_all=True"):
        net.forward(end="conv")
    assert net.params["ip"][0].data.any() and (net.blobs["data"].data == 1).all() and net.blobs["loss"].data > 0
    net.blobs["data"].reshape(2, 2, 6, 7)
    net.blobs["label"].reshape(2)
    net.forward()
    with pytest.raises(caffe.InvalidArgument, match="not kept"):
        net.blobs["conv"].data
    kept = caffe.Net(write(SIMPLE), caffe.TEST)
    kept.forward()
    assert kept.blobs["conv"].data.shape == kept.blobs["conv"].diff.shape == (5, 11, 6, 7)


def test_what_a_name_stands_for_cannot_be_exchanged(simple):
    with pytest.raises(caffe.InvalidArgument, match=r"net\.blobs\['data'\]\.data\[\.\.\.\] = values"):
        simple.blobs["data"] = np.zeros((5, 2, 6, 7))
    with pytest.raises(caffe.InvalidArgument, match=r"net\.params\['ip'\]\[0\]\.data\[\.\.\.\] = values"):
        simple.params["ip"] = np.zeros((4, 462))
    with pytest.raises(caffe.InvalidArgument):
        simple.blobs.update(other=1)
    assert isinstance(simple.blobs["data"], caffe.Blob) and "other" not in simple.blobs
    copied = simple.blobs.copy()
    copied["other"] = 1


def test_errors_after_an_input_was_reshaped_say_where(write):
    file = write(SIMPLE)
    for run in ("reshape", "forward"):
        net = caffe.Net(file, caffe.TEST)
        net.blobs["data"].reshape(5, 2, 8, 7)
        with pytest.raises(caffe.InvalidArgument, match=r"net\.prototxt:9:1: layer 'ip'"):
            getattr(net, run)()


def test_copy_from_says_what_it_has_copied(simple, write, tmp_path):
    weights = str(tmp_path / "net.caffemodel")
    simple.save(weights)
    found = caffe.Net(write(SIMPLE.replace("'ip'", "'i'"), "part.prototxt"), caffe.TEST).copy_from(weights)
    sizes = {layer: (len(blobs), sum(blob.count for blob in blobs)) for layer, blobs in simple.params.items()}
    assert sorted(found) == [("conv", "copied", *sizes["conv"]), ("i", "kept", *sizes["ip"]), ("ip", "ignored", sizes["ip"][0], 0)]
