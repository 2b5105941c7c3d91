"""caffe-gpu-questions, on machines without a GPU: programs that print stand in for Cortado's."""
import json
import shutil
import subprocess
import sys

from google.protobuf import text_format
from gpu_bundle import ROOT, bundle, gpu_check, load  # pylint: disable=unused-import

questions = load("gpu_questions", ROOT / "scripts" / "caffe-gpu-questions")
questions.MODELS = ROOT / "models"
ENGINES = """#!/bin/sh
echo 'built in 2.0 s' >&2
echo '{"problem": "dgrad 1x1", "plans": [{"name": "eng4", "ms": 0.5}]}'
echo '{"problem": "forward 3x3", "error": "no time left"}'
"""
# A training run that writes its weights; they depend on the number of the run if runs are to differ.
TRAIN = """import pathlib, re
    if command == "train":
        solver = open(next(one for one in arguments if one.startswith("--solver="))[9:]).read()
        prefix = re.search('snapshot_prefix: "([^"]+)"', solver).group(1)
        pathlib.Path(prefix + "_iter_20.caffemodel").write_text(prefix[-1] if {differs} else "weights")
        print("Iteration 0 (0 iter/s), loss = 6.9", os.environ["CAFFE_TEST_RANKS_PER_GPU"])
        if "--set=net_param.reduce_type=BFLOAT16" in arguments:
            print("Iteration 10 (0 iter/s), loss = 1.5")
        sys.exit(0)"""


def ask(root, *steps):
    """Returns the exit status, and the report's steps."""
    shutil.copy(ROOT / "scripts" / "caffe-gpu-questions", root / "bin")
    report = root / "report.json"
    done = subprocess.run([sys.executable, root / "bin" / "caffe-gpu-questions", "--output", report, "--only", *steps],
                          check=False, capture_output=True, text=True)
    return done.returncode, json.loads(report.read_text())["steps"]


def test_engines_are_listed_by_their_problem(bundle):
    root = bundle()
    (root / "libexec" / "cortado" / "engine_lab").write_text(ENGINES)
    (root / "libexec" / "cortado" / "engine_lab").chmod(0o755)
    status, steps = ask(root, "engines")
    assert status == 0
    assert steps["engines"]["problems"]["dgrad 1x1"] == {"plans": [{"name": "eng4", "ms": 0.5}]}
    assert steps["engines"]["problems"]["forward 3x3"] == {"error": "no time left"}


def test_two_ranks_pass_where_their_runs_have_the_same_bits(bundle):
    status, steps = ask(bundle(others=TRAIN.format(differs=False)), "two ranks, deterministic")
    assert status == 0 and steps["two ranks, deterministic"]["losses"] == [6.9]


def test_two_ranks_reduce_in_16_bits(bundle):
    status, steps = ask(bundle(others=TRAIN.format(differs=False)), "two ranks, 16-bit gradients")
    assert status == 0 and steps["two ranks, 16-bit gradients"]["losses"] == [6.9, 1.5]


def test_two_ranks_whose_runs_differ_fail(bundle):
    status, steps = ask(bundle(others=TRAIN.format(differs=True)), "two ranks, deterministic")
    assert status == 1 and steps["two ranks, deterministic"]["why"] == "the runs' weights differ"


def test_each_net_is_timed_before_its_peer():
    names = list(questions.all_steps())
    peers = [name for name in names if name.startswith("torch ") and name.endswith("compiled")]
    assert len(peers) == 8
    for peer in peers:
        assert names.index(peer[len("torch "):-len(" compiled")]) == names.index(peer) - 1 or "fp16" in peer


def test_ssd_has_one_box_for_each_image():
    import caffe.proto.caffe_pb2 as caffe_pb2
    net = text_format.Parse(questions.ssd_net(4), caffe_pb2.NetParameter())
    types = [layer.type for layer in net.layer]
    assert types[:5] == ["DummyData", "DummyData", "Concat", "DummyData", "Concat"] and "AnnotatedData" not in types
    assert [filler.value for filler in net.layer[1].dummy_data_param.data_filler] == [0, 1, 2, 3]
