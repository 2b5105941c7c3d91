"""The scripts of python/ and tools/extra/ that need the compiled package."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

import caffe
import numpy as np
import pytest
from caffe import summary
from caffe.proto import caffe_pb2
from google.protobuf import text_format

from test_classifier_detector import MEANS

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(caffe.__file__).parents[2]


def run(script, *arguments, status=0):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, ROOT / script, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env={**environment, "CAFFE_BINARY_DIR": str(BUILD)})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def means(write, tmp_path):
    """A net whose three outputs are the means of its channels."""
    file, weights = write(MEANS), str(tmp_path / "w.caffemodel")
    net = caffe.Net(file, caffe.TEST)
    net.params["out"][0].data[...] = np.eye(3)
    net.save(weights)
    return [f"--model_def={file}", f"--pretrained_model={weights}"]


@pytest.fixture
def images(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pytest.importorskip("tqdm")
    (tmp_path / "images").mkdir()
    for name, colour in (("b.png", (255, 0, 51)), ("a.png", (0, 51, 102)), ("c.jpg", (0, 0, 0))):
        image_module.fromarray(np.tile(np.uint8(colour), (12, 12, 1))).save(tmp_path / "images" / name)
    return tmp_path / "images"


def test_classify_a_folder(means, images, tmp_path):
    text = run("python/classify.py", images, tmp_path / "scores", "--ext=png", "--images_dim=10,12", "--mean_file=1,2,3", *means)
    assert "Classifying 2 inputs." in text and "image/s" not in text  # no progress bar in a log
    expected = [[102 - 1, 51 - 2, 0 - 3], [51 - 1, 0 - 2, 255 - 3]]  # blue first
    assert np.load(tmp_path / "scores") == pytest.approx(np.float32(expected), abs=0.1)


def test_classify_arrays_with_mean_files(means, images, tmp_path):
    np.save(tmp_path / "in.npy", np.full((2, 8, 8, 3), 0.5, np.float32))
    whole = np.arange(3, dtype=np.float32).reshape(3, 1, 1) + np.zeros((3, 20, 20), np.float32)
    np.save(tmp_path / "mean.npy", whole)
    (tmp_path / "mean.binaryproto").write_bytes(caffe.io.array_to_blobproto(whole[None]).SerializeToString())
    for mean in ("mean.npy", "mean.binaryproto", ""):
        run("python/classify.py", tmp_path / "in.npy", tmp_path / "out.npy", "--center_only", "--images_dim=8,8", "--raw_scale=10",
            "--channel_swap=", "--input_scale=2", f"--mean_file={mean and tmp_path / mean}", *means)
        wanted = 2 * (5 - np.arange(3)) if mean else np.full(3, 10)
        assert np.load(tmp_path / "out.npy")[1] == pytest.approx(wanted, rel=1e-4)
    assert "no file *.gif" in run("python/classify.py", images, tmp_path / "x", "--ext=gif", *means, status=1)


def test_detect_windows_of_a_list(means, images, tmp_path):
    name = str(images / "a.png")
    (tmp_path / "in.csv").write_text(f"filename,ymin,xmin,ymax,xmax\n{name},0,0,8,8\n{name},2,2,10,6\n")
    settings = ["--crop_mode=list", "--mean_file=", "--context_pad=0", *means]
    assert "Processed 2 windows" in run("python/detect.py", tmp_path / "in.csv", tmp_path / "out.csv", *settings)
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["filename", "ymin", "xmin", "ymax", "xmax", "class0", "class1", "class2"]
    assert rows[1]["filename"] == name and float(rows[1]["ymin"]) == 2
    assert [float(rows[0][f"class{i}"]) for i in range(3)] == pytest.approx([102, 51, 0], abs=0.1)
    h5py = pytest.importorskip("h5py")
    run("python/detect.py", tmp_path / "in.csv", tmp_path / "out.h5", *settings)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["window"][1].tolist() == [2, 2, 10, 6] and file["prediction"].shape == (2, 3)


def test_detect_says_what_is_wrong(means, images, tmp_path):
    (tmp_path / "in.csv").write_text("filename,ymin,xmin,ymax,xmax\nx.png,1,2,three,4\n")
    assert "in.csv:2" in run("python/detect.py", tmp_path / "in.csv", tmp_path / "o.csv", "--crop_mode=list", *means, status=1)
    assert ".csv or an .h5" in run("python/detect.py", tmp_path / "in.csv", tmp_path / "o.txt", *means, status=1)
    (tmp_path / "in.txt").write_text(str(images / "a.png"))
    assert "selective_search" in run("python/detect.py", tmp_path / "in.txt", tmp_path / "o.csv", "--context_pad=0", *means, status=1)


def test_draw_net(tmp_path):
    pytest.importorskip("pydot")
    if not any(os.access(os.path.join(folder, "dot"), os.X_OK) for folder in os.environ["PATH"].split(":")):
        pytest.skip("Graphviz is not installed")
    net = ROOT / "examples/mnist/lenet_train_test.prototxt"
    run("python/draw_net.py", net, tmp_path / "net.svg", "--phase=TRAIN", "--rankdir=TB", "--display_lrm")
    drawing = (tmp_path / "net.svg").read_text()
    assert "lr mult: 1, 2" in drawing and "accuracy" not in drawing
    run("python/draw_net.py", net, tmp_path / "net.png")
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    assert "missing.prototxt" in run("python/draw_net.py", "missing.prototxt", tmp_path / "x.png", status=1)


def test_summarize_into_head():
    done = subprocess.run(f"{sys.executable} {ROOT}/tools/extra/summarize.py {ROOT}/models/bvlc_googlenet/deploy.prototxt | true", shell=True,
                          env={**os.environ, "CAFFE_BINARY_DIR": str(BUILD)}, stderr=subprocess.PIPE, text=True, check=False)
    assert "BrokenPipe" not in done.stderr and "Broken pipe" not in done.stderr, done.stderr


def test_summarize_lenet():
    text = run("tools/extra/summarize.py", ROOT / "examples/mnist/lenet.prototxt")
    batch = 64
    # Positions times weights: 24 * 24 * 20 * 25; 8 * 8 * 50 * 20 * 25; 800 * 500; 500 * 10.
    products = [24 * 24 * 500, 8 * 8 * 25000, 400000, 5000]
    assert [line.split()[-1] for line in text.splitlines() if re.match(r"(conv|ip)\d", line)] == \
        [f"{batch * product:,}" for product in products]
    assert re.search(r"^conv2 +Convolution +pool1 +64x50x8x8 +25,050 +", text, re.MULTILINE)
    assert text.splitlines()[-1].split()[-2:] == ["431,080", f"{batch * sum(products):,}"]


EVERY = """
layer { name: 'i' type: 'Input' top: 'x' top: 's' top: 'c' top: 'ct' top: 'image'
        input_param { shape { dim: 2 dim: 4 dim: 5 dim: 6 } shape { dim: 7 dim: 2 dim: 3 } shape { dim: 7 dim: 2 }
                      shape { dim: 2 dim: 9 dim: 8 } shape { dim: 2 dim: 4 dim: 4 dim: 6 } } }
layer { name: 'group' type: 'Convolution' bottom: 'x' top: 'g' convolution_param { num_output: 8 group: 2 kernel_size: 3 stride: 2 } }
layer { name: 'up' type: 'Deconvolution' bottom: 'x' top: 'u' convolution_param { num_output: 3 kernel_size: 2 stride: 2 } }
layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' } param { name: 'b' } inner_product_param { num_output: 3 axis: 3 } }
layer { name: 'a2' type: 'InnerProduct' bottom: 'x' top: 'a2' param { name: 'w' } param { name: 'b' } inner_product_param { num_output: 3 axis: 3 } }
layer { name: 'each' type: 'ConvolutionDepthwise' bottom: 'x' top: 'e' convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: 'lstm' type: 'LSTM' bottom: 's' bottom: 'c' top: 'l' recurrent_param { num_output: 5 } }
layer { name: 'gru' type: 'GRU' bottom: 's' bottom: 'c' top: 'h' recurrent_param { num_output: 5 } }
layer { name: 'patches' type: 'PatchEmbed' bottom: 'image' top: 'p' patch_embed_param { num_output: 6 patch_size: 2 } }
layer { name: 'self' type: 'MultiHeadAttention' bottom: 'p' top: 'm' attention_param { num_heads: 2 } }
layer { name: 'cross' type: 'MultiHeadAttention' bottom: 'p' bottom: 'ct' top: 'n' attention_param { num_heads: 2 } }
"""


def test_summary_of_each_kind():
    net = caffe.Net(text_format.Parse(EVERY, caffe_pb2.NetParameter()), caffe.TEST)
    found = {row["layer"]: row for row in summary.summarize(net)}
    # Groups with 2 channels in and 4 out, 3 x 3 windows at 2 x 2 positions, 2 images.
    assert found["group"]["multiply_adds"] == 2 * 2 * 2 * 2 * 2 * 4 * 9 and found["group"]["parameters"] == 8 * 2 * 9 + 8
    assert found["up"]["multiply_adds"] == 2 * 4 * 5 * 6 * 3 * 4
    assert found["a"]["multiply_adds"] == 2 * 4 * 5 * 6 * 3 and found["a"]["shapes"] == [(2, 4, 5, 3)]
    assert found["each"]["multiply_adds"] == 2 * 3 * 4 * 4 * 9
    assert found["lstm"]["multiply_adds"] == 7 * 2 * (20 * 3 + 20 * 5)
    assert found["gru"]["multiply_adds"] == 7 * 2 * (15 * 3 + 15 * 5)
    # 6 patches of 4 x 2 x 2 numbers per image; the context has 9 rows.
    assert found["patches"]["multiply_adds"] == 2 * 6 * 6 * 16
    assert found["self"]["multiply_adds"] == 2 * 6 * (18 * 6 + 6 * 6)
    assert found["cross"]["multiply_adds"] == 2 * (6 * 6 * 6 + 9 * 12 * 8 + 6 * 6 * 6)
    assert found["i"]["multiply_adds"] == found["i"]["parameters"] == 0
    # The shared parameter counts once in the total.
    total = sum(row["parameters"] for row in found.values()) - (6 * 3 + 3)
    assert f" {total:,} " in summary.table(net).splitlines()[-1]


def test_summary_without_the_database():
    path = ROOT / "models/bvlc_alexnet/train_val.prototxt"
    assert "data" in run("tools/extra/summarize.py", path, status=1)
    rows = json.loads(run("tools/extra/summarize.py", path, "--input=data=1,3,227,227", "--input=label=1", "--json"))
    found = {row["layer"]: row for row in rows}
    # The published numbers: 61 million parameters, 724 million multiply-adds.
    assert sum(row["parameters"] for row in rows) == 60965224
    assert sum(row["multiply_adds"] for row in rows) == 724406816
    assert found["fc6"]["shapes"] == [[1, 4096]]
    assert "no data layer" in run("tools/extra/summarize.py", path, "--input=dato=1", status=1)


@pytest.mark.parametrize("script", ["python/classify.py", "python/detect.py", "tools/extra/resize_and_crop_images.py"])
def test_help_without_tqdm(script, tmp_path):
    (tmp_path / "tqdm.py").write_text("raise ImportError('no tqdm')")
    code = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); sys.path.append({str(ROOT / 'python')!r}); " \
           f"sys.argv = ['x', '--help']; runpy.run_path({str(ROOT / script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "CAFFE_BINARY_DIR": str(BUILD)})
    assert done.returncode == 0 and "usage" in done.stdout, done.stderr
