"""Layers written in Python."""
import traceback

import caffe
import numpy as np
import pytest


class Times(caffe.Layer):
    """y = factor * x, with the factor from param_str."""

    def setup(self, bottom, top):
        self.factor = float(self.param_str or 10)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = self.factor * top[0].diff


class TimesInPlace(Times):
    def forward(self, bottom, top):
        top[0].data[...] *= self.factor

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] *= self.factor


class NoBackward(Times):
    backward = caffe.Layer.backward


class Raises(Times):
    def forward(self, bottom, top):
        broken = {}
        broken["what a typo"]  # the line that the traceback shows


class Proposals(caffe.Layer):
    """Gives as many items as the input's sum says, which is known only in forward."""

    def setup(self, bottom, top):
        self.runs = 0
        top[0].reshape(1, 2)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        self.runs += 1
        top[0].reshape(int(bottom[0].data.sum()), 2)
        top[0].data[...] = self.runs

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff.sum()


class Some(caffe.Layer):
    """Gives as many of the items as the first number says; reshape() sets a shape, but cannot know the number of items."""

    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(1, bottom[0].shape[1])

    def forward(self, bottom, top):
        items = int(bottom[0].data[0, 0])
        top[0].reshape(items, bottom[0].shape[1])
        top[0].data[...] = bottom[0].data[:items]

    def backward(self, top, propagate_down, bottom):
        assert top[0].data.shape == top[0].diff.shape == (int(bottom[0].data[0, 0]), 3)
        bottom[0].diff[...] = 0
        bottom[0].diff[:len(top[0].diff)] = top[0].diff


class Misshapes(Times):
    """Reshapes the blob that param_str names, in the method that it names."""

    def setup(self, bottom, top):
        self.method, self.victim = self.param_str.split()
        self.blobs.add_blob(5)

    def misshape(self, method, bottom, top):
        if method == self.method:
            eval(self.victim)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)
        self.misshape("reshape", bottom, top)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data
        self.misshape("forward", bottom, top)

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff
        self.misshape("backward", bottom, top)


class Phase(caffe.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[()] = self.phase


class Older(caffe.Layer):
    """A layer with the names of py-faster-rcnn's layers."""

    def setup(self, bottom, top):
        self.seen = f"{self.param_str_} {str(self.phase)}"

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[()] = self.seen == "{'a': 1} " + ("TRAIN" if self.phase == caffe.TRAIN else "TEST")


class Learned(caffe.Layer):
    """A layer with a parameter whose gradient is 1 in each pass."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[0] = 4

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[()] = self.blobs[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += 1


class Growing(caffe.Layer):
    """A data layer whose batch has one more item in each pass."""

    def setup(self, bottom, top):
        self.items = 1

    def reshape(self, bottom, top):
        top[0].reshape(self.items, 2)

    def forward(self, bottom, top):
        top[0].data[...] = self.items
        self.items += 1


class Euclidean(caffe.Layer):
    """The Euclidean loss, with data that forward keeps for backward."""

    def setup(self, bottom, top):
        self.difference = bottom[0].diff

    def reshape(self, bottom, top):
        top[0].reshape()
        self.difference = np.zeros(bottom[0].shape)

    def forward(self, bottom, top):
        self.kept = bottom[0].data
        self.difference[...] = self.kept - bottom[1].data
        top[0].data[...] = (self.difference ** 2).sum() / bottom[0].num / 2

    def backward(self, top, propagate_down, bottom):
        assert propagate_down[0] and not propagate_down[1]
        assert (self.kept - bottom[1].data == self.difference).all()
        bottom[0].diff[...] = top[0].diff * self.difference / bottom[0].num


def python(layer, bottom="", top="", more=""):
    wires = "".join(f" bottom: '{b}'" for b in bottom.split()) + "".join(f" top: '{t}'" for t in top.split())
    name = (top or "out").split()[0] + "_" + layer
    return (f"layer {{ name: '{name}' type: 'Python'{wires} "
            f"python_param {{ module: '{__name__}' layer: '{layer}' {more} }} }} ")


INPUT = "force_backward: true layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } } "


@pytest.fixture
def net(write):
    def make(*layers, phase=caffe.TRAIN):
        return caffe.Net(write(INPUT + "".join(layers)), phase)

    return make


def test_forward_backward_and_param_str(net):
    chain = net(python("Times", "x", "a"), python("Times", "a", "b", "param_str: '2.5'"),
                python("Times", "b", "c", "share_in_parallel: true"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert chain.forward(x=x)["c"] == pytest.approx(250 * x)
    assert chain.backward(c=x + 1)["x"] == pytest.approx(250 * (x + 1))
    assert [layer.type for layer in chain.layers] == ["Input"] + ["Python"] * 3
    assert isinstance(chain.layers[1], Times) and chain.layers[2].factor == 2.5
    assert chain.layers[2].param_str == "2.5" and chain.layer_dict["a_Times"] is chain.layers[1]
    assert chain.layers[2].layer_param.python_param.layer == "Times"


def test_in_place(net):
    chain = net(python("Times", "x", "a"), python("TimesInPlace", "a", "a", "param_str: '3'"),
                python("Times", "a", "b"))
    assert chain.forward(x=np.ones((2, 3)))["b"] == pytest.approx(np.full((2, 3), 300))
    assert chain.backward(b=np.ones((2, 3)))["x"] == pytest.approx(np.full((2, 3), 300))


def test_reshaped_input(net):
    chain = net(python("Times", "x", "a"), python("Times", "a", "b"))
    chain.blobs["x"].reshape(4, 1, 2)
    chain.blobs["x"].data[...] = 1
    assert (chain.forward()["b"] == np.full((4, 1, 2), 100)).all()


def test_phase(net):
    for phase in (caffe.TRAIN, caffe.TEST):
        assert net(python("Phase", "", "p"), phase=phase).forward()["p"] == phase


def test_names_of_older_layers(net):
    for phase in (caffe.TRAIN, caffe.TEST):
        made = net(python("Older", "", "p", 'param_str: "{\'a\': 1}"'), phase=phase)
        assert made.forward()["p"] == 1
        assert str(made.phase) == str(made.layers[-1].phase) == {caffe.TRAIN: "TRAIN", caffe.TEST: "TEST"}[phase]
        assert "%d" % made.phase == str(phase) and made.layers[-1].param_str_ == "{'a': 1}"


def test_shapes_that_change_with_each_pass(net):
    growing = net(python("Growing", "", "data"), python("Times", "data", "y"))
    for items in (1, 2, 3, 4):
        assert growing.forward()["y"].tolist() == [[10.0 * items] * 2] * items


class Targets(caffe.Layer):
    """One row per row of its bottom, known only in forward."""

    def setup(self, bottom, top):
        top[0].reshape(1, 2)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)
        top[0].data[...] = bottom[0].data / 2

    def backward(self, top, propagate_down, bottom):
        pass


def test_tops_reshaped_in_forward_meet_again(net):
    """Until Targets has run for the new rows, its top does not fit the loss."""
    meeting = net(python("Proposals", "x", "rois"),
                  "layer { name: 'ip' type: 'InnerProduct' bottom: 'rois' top: 'ip' inner_product_param { num_output: 2"
                  " weight_filler { type: 'constant' value: 1 } } } layer { name: 'relu' type: 'ReLU' bottom: 'ip' top: 'ip' }",
                  python("Targets", "rois", "targets"),
                  "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'targets' top: 'loss' }")
    for run, items in enumerate((1, 4, 2, 2, 3), 1):
        x = np.zeros((2, 3))
        x[0, 0] = items
        difference = 2 * run - run / 2
        assert meeting.forward(x=x)["loss"] == pytest.approx(difference ** 2)
        assert meeting.blobs["ip"].data.tolist() == [[2.0 * run] * 2] * items and meeting.layers[1].runs == run
        meeting.clear_param_diffs()
        meeting.backward()
        assert meeting.params["ip"][0].diff == pytest.approx(np.full((2, 2), difference * run))
    meeting.layers[4].forward = lambda bottom, top: top[0].reshape(7, 2)
    x[0, 0] = 5
    with pytest.raises(caffe.InvalidArgument, match="as many|elements|shape"):
        meeting.forward(x=x)
    with pytest.raises(caffe.InvalidArgument, match="build it again"):
        meeting.forward(x=x)


class Named(Times):
    def setup(self, bottom, top):
        self.name, self.phase, self.layer_param = "mine", "train", {"scale": 2}
        self.param_str = self.param_str * 2
        self.factor = float(self.param_str)


def test_layers_may_have_attributes_of_any_name(net):
    one = net(python("Named", "x", "y", "param_str: '1'"), python("Times", "y", "z"))
    layer = one.layers[1]
    assert (layer.name, layer.phase, layer.layer_param, layer.factor) == ("mine", "train", {"scale": 2}, 11)
    assert one.layers[2].name == "z_Times" and one.layers[2].phase == caffe.TRAIN


def test_tops_may_be_reshaped_in_forward(net):
    proposing = net(python("Proposals", "x", "rois"), python("Times", "rois", "y"))
    for run, items in enumerate((1, 4, 2, 2, 3), 1):
        x = np.zeros((2, 3))
        x[0, 0] = items
        assert proposing.forward(x=x)["y"].tolist() == [[10.0 * run] * 2] * items
        assert proposing.layers[1].runs == run
        assert (proposing.backward(y=np.ones((items, 2)))["x"] == 20 * items).all()


def test_layers_side_by_side_may_reshape_their_tops_in_forward(net):
    both = net(python("Some", "x", "a"), python("Some", "x", "b"),
               "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'y' }")
    both.blobs["x"].reshape(40, 3)
    for items in (1, 2, 40, 3):
        x = np.full((40, 3), items)
        assert (both.forward(x=x)["y"] == np.full((items, 3), 2 * items)).all()
        assert both.backward(y=np.ones((items, 3)))["x"].sum() == 2 * 3 * items


@pytest.mark.parametrize("what, error", [
    ("reshape bottom[0].reshape(100000)", "in reshape.*; only tops may be"), ("forward bottom[0].reshape(1)", None),
    ("backward bottom[0].reshape(1)", "in backward of layer 'y_Misshapes'.*was reshaped to 1; only tops may be"),
    ("forward self.blobs[0].reshape(1)", "in forward of layer 'y_Misshapes'.*was reshaped to 1"),
    ("forward self.blobs.add_blob(1000)", r"are added in setup\(\)"),
    ("backward self.blobs.add_blob(1000)", r"are added in setup\(\)")])
def test_blobs_that_a_layer_may_not_reshape(net, what, error):
    def run():
        wrong.forward(x=np.ones((2, 3)))
        wrong.backward(y=np.ones((2, 3)))

    if error is None:
        wrong = net(python("Misshapes", "x", "y", f"param_str: '{what}'"))
        for _ in range(2):
            run()
        assert (wrong.blobs["x"].diff == 1).all()
        return
    with pytest.raises(caffe.InvalidArgument, match=error):
        wrong = net(python("Misshapes", "x", "y", f"param_str: '{what}'"))
        run()


class Keeps(Learned):
    """Works with the view of its parameter that it took in setup."""

    def setup(self, bottom, top):
        super().setup(bottom, top)
        self.kept = self.blobs[0].data

    def forward(self, bottom, top):
        top[0].data[()] = self.kept


def test_the_blobs_of_a_layer_are_those_of_the_net(net, tmp_path):
    first, second = net(python("Keeps", "", "y")), net(python("Keeps", "", "y"))
    blob = first.layers[1].blobs[0]
    first.backward()
    assert blob.data[0] == 4 and blob.diff[0] == 1
    blob.data[0] += blob.diff[0]
    assert first.params["y_Keeps"][0].data[0] == 5 and first.forward()["y"] == 5
    first.save(tmp_path / "w.caffemodel")
    blob.data[0] = -1
    first.copy_from(tmp_path / "w.caffemodel")
    assert blob.data[0] == 5
    second.share_with(first)
    blob.data[0] = 6
    assert second.layers[1].blobs[0].data[0] == 6 and second.forward()["y"] == 6


def test_parameters_learn_are_saved_and_shared(write, net, tmp_path):
    file = write(INPUT + python("Learned", "", "y"))
    solver = caffe.SGDSolver(write(f"net: '{file}' base_lr: 1 lr_policy: 'fixed' max_iter: 9", "solver.prototxt"))
    blob = solver.net.params["y_Learned"][0]
    assert blob.data[0] == 4
    solver.step(1)
    assert blob.data[0] == 3 and solver.net.forward()["y"] == 3
    solver.net.clear_param_diffs()
    solver.net.backward()
    solver.net.backward()
    assert blob.diff[0] == 2
    solver.net.save(tmp_path / "w.caffemodel")
    other = caffe.Net(file, caffe.TEST, weights=tmp_path / "w.caffemodel")
    assert other.forward()["y"] == 3


def test_a_loss(write):
    text = INPUT.replace("force_backward: true", "") + """
        layer { name: 't' type: 'Input' top: 't' input_param { shape { dim: 2 dim: 3 } } }
        layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'
                inner_product_param { num_output: 3 weight_filler { type: 'gaussian' std: 1 } } } """
    loss = ("layer { name: 'loss' type: '%s' bottom: 'ip' bottom: 't' top: 'loss' loss_weight: 2 propagate_down: true "
            "propagate_down: false %s }")
    python_param = f"python_param {{ module: '{__name__}' layer: 'Euclidean' }}"
    ours = caffe.Net(write(text + loss % ("Python", python_param)), caffe.TRAIN)
    theirs = caffe.Net(write(text + loss % ("EuclideanLoss", "")), caffe.TRAIN)
    theirs.share_with(ours)
    random = np.random.default_rng(0)
    x, t = random.standard_normal((2, 2, 3))
    assert ours.forward(x=x, t=t)["loss"] == pytest.approx(theirs.forward(x=x, t=t)["loss"], rel=1e-5)
    assert ours.backward(["ip"])["ip"] == pytest.approx(theirs.backward(["ip"])["ip"], rel=1e-4)
    assert ours.params["ip"][0].diff == pytest.approx(theirs.params["ip"][0].diff, rel=1e-4)


def test_what_a_layer_raises_surfaces_with_its_traceback(net):
    raising = net(python("Raises", "x", "y"))
    with pytest.raises(KeyError, match="what a typo") as caught:
        raising.forward()
    text = "".join(traceback.format_exception(caught.value))
    assert 'broken["what a typo"]  # the line that the traceback shows' in text
    assert "in forward of layer 'y_Raises'" in text
    with pytest.raises(KeyError):
        raising.forward()


def test_mistakes_say_what_to_do(net):
    cases = [
        (python("Missing", "x", "y"), caffe.InvalidArgument, "has no class 'Missing'"),
        (python("Times", "x", "y").replace(__name__, "no_such_module"), ModuleNotFoundError, "no_such_module"),
        ("layer { name: 'l' type: 'Python' bottom: 'x' top: 'y' }", caffe.InvalidArgument, "both a module and a layer"),
        (python("np", "x", "y"), caffe.InvalidArgument, "not a subclass of caffe.Layer"),
        (python("Times", "x", "y", "param_str: 'ten'"), ValueError, "could not convert"),
    ]
    for text, error, match in cases:
        with pytest.raises(error, match=match):
            net(text)
    without = net(python("NoBackward", "x", "y"))
    without.forward()
    with pytest.raises(TypeError, match="has no method backward"):
        without.backward()


def test_a_layer_cannot_run_its_own_net(net):
    chain = net(python("Times", "x", "a"))
    chain.layers[1].forward = lambda bottom, top: chain.forward()
    with pytest.raises(caffe.InvalidArgument, match="is running"):
        chain.forward()
