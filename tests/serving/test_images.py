"""Answers about image files: those of the commands."""
import io
import json
import pathlib
import subprocess

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import caffe
from caffe.serving import Model
from caffe.serving.app import Server
from caffe.serving.images import ImageQuestion

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAFFE = pathlib.Path(caffe.__file__).resolve().parents[2] / "bin" / "caffe"
RECIPES = ROOT / "examples" / "recipes"


def of_recipe(name):
    folder = RECIPES / name
    return Model(name, str(folder / "deploy.prototxt"), str(folder / "snapshots" / f"{name}_best.caffemodel"), max_batch=2)


@pytest.fixture(scope="module")
def client():
    server = Server([of_recipe(name) for name in ("cifar10", "boxes", "masks")])
    yield TestClient(server.app)
    server.close()


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A file with a red disc on green, wider than high."""
    y, x = np.mgrid[:90, :150]
    pixels = np.full((90, 150, 3), (40, 120, 60), np.uint8)
    pixels[(y - 40) ** 2 + (x - 60) ** 2 < 900] = (220, 40, 30)
    file = tmp_path_factory.mktemp("picture") / "disc.png"
    Image.fromarray(pixels).save(file)
    return file


def told_by(command, name, file, *options):
    if not CAFFE.exists():
        pytest.skip("caffe_tool is not built")
    done = subprocess.run([CAFFE, command, RECIPES / name, file, "--json", *options], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["images"][0]


@pytest.mark.parametrize("command, name, kind, options, query", [
    ("classify", "cifar10", "classes", ["--top=3"], "top=3"), ("detect", "boxes", "detections", ["--threshold=0.02"], "threshold=0.02")])
def test_answers_are_those_of_the_command(client, picture, command, name, kind, options, query):
    answer = client.post(f"/v2/models/{name}/image?{query}", content=picture.read_bytes())
    assert answer.status_code == 200 and (answer.json()["height"], answer.json()["width"]) == (90, 150)
    wanted, found = told_by(command, name, picture, *options)[kind], answer.json()[kind]
    assert wanted and len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert value == (other[key] if isinstance(value, str) else pytest.approx(other[key], rel=1e-4, abs=1e-3))


def test_shares_of_the_pixels(client, picture):
    found = client.post("/v2/models/masks/image", content=picture.read_bytes()).json()["classes"]
    assert sum(one["share"] for one in found) == pytest.approx(1)
    assert [one["share"] for one in found] == sorted((one["share"] for one in found), reverse=True)
    assert all(isinstance(one["name"], str) for one in found)


@pytest.mark.parametrize("content", [b"", b"no image", b"\xff\xd8\xff\xe0 broken", b"\x89PNG\r\n\x1a\n"])
def test_files_that_are_no_images(client, content):
    answer = client.post("/v2/models/cifar10/image", content=content)
    assert answer.status_code == 400 and answer.json()["error"]


def test_an_image_in_a_form(client):
    answer = client.post("/v2/models/cifar10/image", content=b"--b", headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 415 and "send its bytes as they are: curl --data-binary @photo.jpg http" in answer.json()["error"]


def test_an_image_that_would_fill_the_memory(client):
    """Its header says 60,000 x 60,000 pixels."""
    file = io.BytesIO()
    Image.new("RGB", (1, 1)).save(file, "png")
    bomb = bytearray(file.getvalue())
    bomb[16:24] = (60000).to_bytes(4, "big") * 2
    answer = client.post("/v2/models/cifar10/image", content=bytes(bomb))
    assert answer.status_code == 400


@pytest.mark.parametrize("query, text", [("top=-1", "top is '-1'; give a whole number from 0 on"), ("top=a", "top is 'a'"),
                                         ("threshold=nan", "threshold is 'nan'; give a number from 0 on")])
def test_questions_that_are_wrong(client, picture, query, text):
    answer = client.post(f"/v2/models/cifar10/image?{query}", content=picture.read_bytes())
    assert answer.status_code == 400 and text in answer.json()["error"]


def test_models_of_several_outputs_are_refused(tmp_path):
    file = tmp_path / "two.prototxt"
    file.write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } } '
                    'layer { name: "a" type: "ReLU" bottom: "x" top: "a" } layer { name: "b" type: "TanH" bottom: "x" top: "b" }')
    with pytest.raises(caffe.InvalidArgument, match="model 'two' has 2 outputs"):
        ImageQuestion(Model("two", str(file), ""))
