"""The models that the command line names."""
import pathlib
import shutil

import pytest

import caffe
from caffe.serving.__main__ import _models, _parser
from serving_nets import CLASSES, FIXED, write_net


def models(*given):
    """given: (name, net) or (name, net, weights) of each, as `caffe serve` passes them."""
    words = []
    for name, net, *weights in given:
        words += [f"--model={name}", f"--net={net}", f"--weights={weights[0] if weights else ''}", "--labels=", "--info="]
    return _models(_parser().parse_args(words))


@pytest.fixture
def pair(tmp_path):
    return write_net(tmp_path, "classes", CLASSES)


def test_plain_nets_take_the_weights_of_their_names(pair, tmp_path, capfd):
    other = write_net(tmp_path, "fixed", FIXED)
    wide = write_net(tmp_path, "wide", CLASSES.replace("num_output: 5", "num_output: 7"))
    found = models(("classes", pair[0]), ("fixed", other[0]), ("wide", wide[0]))
    assert [(model.name, model.outputs[0].shape) for model in found] == [("classes", (-1, 5)), ("fixed", (6,)), ("wide", (-1, 7))]
    assert f"{pair[0]}: takes the weights {pair[1]}" in capfd.readouterr().err


def test_weights_that_are_given_come_first(pair, tmp_path):
    shutil.copy(pair[1], tmp_path / "given.caffemodel")
    pathlib.Path(pair[1]).write_bytes(b"damaged")
    assert models(("classes", pair[0], tmp_path / "given.caffemodel"))[0].outputs[0].shape == (-1, 5)


def test_a_net_without_weights(pair, tmp_path):
    pathlib.Path(pair[1]).rename(tmp_path / "other.caffemodel")
    with pytest.raises(caffe.InvalidArgument, match=f"classes.prototxt: has no weights, .* name that file {pair[1]}, or give a model's folder"):
        models(("classes", pair[0]))


def test_two_files_of_weights_with_the_name(pair):
    shutil.copy(pair[1], pair[1] + ".h5")
    with pytest.raises(caffe.InvalidArgument, match=r"classes.caffemodel and .*classes.caffemodel.h5 both have its name; .* --weights=.*classes.caffemodel$"):
        models(("classes", pair[0]))
    assert len(models(("classes", *pair))) == 1


@pytest.mark.parametrize("names, text", [
    (("net", "net"), "classes.prototxt and .*classes.prototxt have the same name, 'net'; give names, as in caffe serve cats=a_model dogs=b_model"),
    (("", "net"), "a model's name is '', which has no address"), (("a/b", "net"), "a model's name is 'a/b', which has no address")])
def test_names(pair, names, text):
    with pytest.raises(caffe.InvalidArgument, match=text):
        models(*((name, pair[0]) for name in names))
