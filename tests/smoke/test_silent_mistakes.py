"""Mistakes on the command line that must not be ignored silently, and errors that must be visible."""
import os
import re
import subprocess

import numpy as np
import pytest

DEPLOY = """layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
TRAIN = """layer { name: "x" type: "DummyData" top: "x" top: "t"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
SOLVER = "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 2 snapshot_prefix: 'run' "


@pytest.fixture
def call(tmp_path, program):
    """call(line, status): the output of the line, in a folder with a net, a deploy net and a solver; its first word is a program."""
    (tmp_path / "net.prototxt").write_text(TRAIN)
    (tmp_path / "deploy.prototxt").write_text(DEPLOY)
    (tmp_path / "solver.prototxt").write_text(SOLVER)

    def run_line(line, status=0, **environment):
        name, arguments = (line + " ").split(" ", 1)
        done = subprocess.run(f"'{program(name)}' {arguments}", shell=True, cwd=tmp_path, env={**os.environ, **environment}, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        assert done.returncode == status, done.stdout
        return done.stdout
    return run_line


@pytest.fixture
def trained(call):
    call("caffe train solver.prototxt")
    return "run_iter_2.caffemodel"


def test_features_by_weights_of_another_net(call, trained, tmp_path):
    (tmp_path / "other.prototxt").write_text(TRAIN.replace('"ip"', '"other"'))
    log = call(f"extract_features {trained} other.prototxt y db 1 lmdb", 1)
    assert "none of the net's 1 layers with parameters ('other', ...) takes its weights from this file" in log
    (tmp_path / "part.prototxt").write_text(TRAIN + 'layer { name: "more" type: "Bias" bottom: "y" top: "z" }')
    log = call(f"extract_features {trained} part.prototxt z db 1 lmdb")
    assert re.search("^W.* has no weights for 1 layer of this net, which keeps what the fillers gave: 'more'", log, re.M)
    log = call(f"caffe test part.prototxt -weights {trained} -iterations 1")
    assert re.search("^W.* what the fillers gave: 'more'", log, re.M)
    (tmp_path / "more.prototxt").write_text(TRAIN.replace('"ip"', '"more"').replace('max_iter: 2', 'max_iter: 1'))
    assert "fillers gave" not in call(f"caffe test net.prototxt -weights {trained} -iterations 1")
    assert "fillers gave" not in call(f"caffe train solver.prototxt -weights {trained}")


def test_the_last_error_is_seen_at_every_log_level(call):
    for line in ("caffe train nothing.prototxt", "caffe train solver.prototxt -set nothing=1", "convert_imageset / none db"):
        text = call(line + " -minloglevel=3", 1)
        assert text and "Traceback" not in text, line
        assert call(line, 1, GLOG_minloglevel="3") == text, line
    assert "did you mean 'train'?" in call("caffe tarin", 1, GLOG_minloglevel="3")
    assert call("caffe train nothing.prototxt -minloglevel 3", 1) == "caffe train: nothing.prototxt: cannot open: No such file or directory\n"
    assert call("caffe train nothing.prototxt -alsologtostderr=false -stderrthreshold=3", 1).startswith("caffe train: nothing.prototxt: ")
    assert call("caffe train nothing.prototxt", 1).count("nothing.prototxt") == 1
    call("caffe train solver.prototxt", 0, GLOG_minloglevel="3")


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_log_folder_that_is_none(call, tmp_path, folder):
    (tmp_path / "file").write_text("")
    log = call(f"caffe train solver.prototxt --log_dir={folder}")
    assert f"--log_dir: '{folder}' is not a folder; the log goes to standard error alone" in log and "COULD NOT" not in log
    (tmp_path / "logs").mkdir()
    call("caffe train solver.prototxt --log_dir=logs")
    assert list((tmp_path / "logs").iterdir())


def test_a_net_with_empty_inputs_is_tested_with_a_warning(call, tmp_path):
    call("caffe plan deploy.prototxt -phase TEST")
    (tmp_path / "in.prototxt").write_text(DEPLOY.split("\n")[0].replace('top: "data"', 'top: "data" top: "more"', 1))
    log = call("caffe test in.prototxt -iterations 1")
    for blob in ("data", "more"):
        assert re.search(f"^W.*input '{blob}' is all 0, .*give a net with a data layer", log, re.M), log
    assert "is all 0" not in call("caffe time in.prototxt -iterations 1 -phase TEST")


def test_fillers_are_checked_by_the_plan(call, tmp_path):
    for wrong, text in (('type: "msrra"', "unknown filler type 'msrra'; did you mean 'msra'?"),
                        ('type: "uniform" min: 2 max: 1', "has min 2 above max 1"),
                        ('type: "gaussian" std: -1', "has std -1"),
                        ('type: "bilinear"', "needs a blob with 4 axes")):
        (tmp_path / "net.prototxt").write_text(TRAIN.replace('type: "xavier"', wrong))
        for line in ("plan net.prototxt", "plan solver.prototxt", "train solver.prototxt"):
            log = call(f"caffe {line}", 1)
            assert f"net.prototxt:3:1: layer 'ip' (InnerProduct): parameter 0: " in log and text in log, (line, log)


def test_errors_beside_overrides_say_where(call, tmp_path):
    (tmp_path / "net.prototxt").write_text(TRAIN.replace("num_output: 2", "num_output: 5"))
    for line in ("train solver.prototxt", "plan solver.prototxt", "plan net.prototxt"):
        log = call(f"caffe {line} -set layer[ip].inner_product_param.bias_term=false", 1)
        assert "net.prototxt:5:1: layer 'loss'" in log, log
    (tmp_path / "solver.prototxt").write_text(SOLVER + "test_iter: 1 test_interval: 1")
    (tmp_path / "net.prototxt").write_text(TRAIN.replace("EuclideanLoss", "Wrong").replace('"loss" type', '"loss" include { phase: TEST } type'))
    log = call("caffe train solver.prototxt -set layer[ip].inner_product_param.bias_term=false", 1)
    assert "net.prototxt:5:1: layer 'loss'" in log, log


def test_converters_explain_themselves(call):
    for name in ("convert_imageset", "compute_image_mean", "extract_features"):
        for flag in ("--help", "-h", "-help"):
            text = call(f"{name} {flag}")
            assert f"Usage: {name} " in text and "--max_decoded_mb" in text, text
            assert "logtostderr" not in text and "flagfile" not in text and "/tools/" not in text and len(text) < 2000
        assert re.fullmatch(name + r" version \S+\n", call(f"{name} --version"))
    assert "--resize_width" in call("convert_imageset --help") and "--gray" in call("convert_imageset --help")


def test_a_flag_file_in_two_words(call, tmp_path):
    (tmp_path / "flags").write_text("--solver=solver.prototxt\n")
    for line in ("-flagfile flags", "--flagfile flags", "-flagfile=flags"):
        call(f"caffe train {line} && test -e run_iter_2.solverstate")
    assert "flag --flagfile needs a value" in call("caffe train -flagfile", 1)


def test_weights_that_are_a_state(call, tmp_path):
    (tmp_path / "solver.prototxt").write_text(SOLVER + "snapshot_format: HDF5")
    call("caffe train solver.prototxt")
    log = call("caffe test net.prototxt -weights run_iter_2.solverstate.h5", 1)
    assert "run_iter_2.solverstate.h5: holds no weights: it has no group 'data'; it is a solver's state" in log


def test_a_state_without_its_weights(call, trained, tmp_path):
    (tmp_path / trained).unlink()
    log = call("caffe train solver.prototxt -snapshot run_iter_2.solverstate", 1)
    assert "its weights are not at 'run_iter_2.caffemodel'; put the .caffemodel next to" in log


def test_a_run_that_is_over_says_so(call, trained):
    log = call("caffe train solver.prototxt -snapshot run_iter_2.solverstate")
    assert re.search("^W.*No iteration is left to train: this is iteration 2, and max_iter is 2; raise max_iter", log, re.M), log
    assert "No iteration is left" not in call("caffe train solver.prototxt -snapshot run_iter_2.solverstate -set max_iter=3")


def test_texts_of_the_command_line(call):
    assert "'solver.prototxt' is neither a flag nor its value; --solver is given already" in call("caffe train solver.prototxt -solver solver.prototxt", 1)
    assert "none is given" not in call("caffe plan ''", 1) and "its name is empty" in call("caffe plan ''", 1)
    assert "Usage: caffe data import" in call("caffe help 'data import'")
    assert "(default 0)" not in re.search(r"--batch.*?\n  --", call("caffe help compile"), re.S)[0]
    assert "[]" not in call("caffe help import")
    log = call("caffe plan net.prototxt -gpu H200 || true")
    assert "this build has no cuda device" not in log or "planning needs no GPU, but a build with CUDA" in log


def test_classify_with_other_labels_and_means(call, tmp_path):
    image = pytest.importorskip("PIL.Image")
    caffe_pb2 = pytest.importorskip("caffe.proto.caffe_pb2")
    image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "black.png")
    (tmp_path / "solver.prototxt").write_text("net: 'train.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 snapshot_prefix: 'run'")
    (tmp_path / "train.prototxt").write_text(DEPLOY.replace('type: "Input"', 'type: "DummyData"').replace("input_param", "dummy_data_param") +
                                             'layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "ip" top: "loss" }')
    call("caffe train solver.prototxt")
    classify = "caffe classify deploy.prototxt black.png -weights run_iter_1.caffemodel -mean_values 1,2,3"
    (tmp_path / "three").write_text("a\nb\nc\n")
    (tmp_path / "two").write_text("a\nb\n")
    call(f"{classify} -labels three")
    assert "--labels has 2 names, but output 'ip' has 3 classes; give a line for each" in call(f"{classify} -labels two", 1)
    mean = caffe_pb2.BlobProto(num=1, channels=3, height=2, width=4, data=[0] * 24)
    (tmp_path / "mean.binaryproto").write_bytes(mean.SerializeToString())
    log = call(classify.replace("-mean_values 1,2,3", "-mean_file mean.binaryproto"), 1)
    assert "mean image 'mean.binaryproto' is of 2x4, smaller than the net's input of 4x4" in log and "crop_size" not in log
