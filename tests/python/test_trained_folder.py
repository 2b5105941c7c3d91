"""caffe.ModelFolder: a model's folder answers as the commands do."""
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

import caffe
from caffe.proto import caffe_pb2
from google.protobuf import text_format
from built_package import BUILD, PACKAGE, ROOT

Image = pytest.importorskip("PIL.Image")
CAFFE = BUILD / "bin" / "caffe"
RECIPES = ROOT / "examples" / "recipes"


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A file with a red square on green, wider than high."""
    image = Image.new("RGB", (150, 90), (40, 120, 60))
    image.paste((220, 40, 30), (30, 20, 90, 80))
    file = tmp_path_factory.mktemp("picture") / "square.png"
    image.save(file)
    return file


@pytest.fixture(name="folder")
def make_folder(tmp_path):
    """A model's folder with an empty file for each name in `snapshots`."""
    def make(*names, solver='snapshot_prefix: "snapshots/net"'):
        shutil.copy(RECIPES / "cifar10" / "deploy.prototxt", tmp_path)
        (tmp_path / "solver.prototxt").write_text(solver)
        (tmp_path / "snapshots").mkdir()
        for name in names:
            (tmp_path / "snapshots" / name).touch()
        return tmp_path

    return make


def weights_of(folder):
    """The name of the file that is used."""
    from caffe import trained_folder as trained
    return pathlib.Path(trained._weights(str(folder), trained._card(str(folder)))).name


def told_by(command, folder, file, *options):
    if not CAFFE.exists():
        pytest.skip("caffe_tool is not built")
    done = subprocess.run([CAFFE, command, folder, file, "--json", *options], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["images"][0]


@pytest.mark.parametrize("command, name, kind, options", [
    ("classify", "cifar10", "classes", {"top": 3}), ("detect", "boxes", "detections", {"threshold": 0.02})])
def test_answers_are_those_of_the_command(picture, command, name, kind, options):
    found = caffe.ModelFolder(RECIPES / name).ask(picture, **options)
    wanted = told_by(command, RECIPES / name, picture, *[f"--{option}={value}" for option, value in options.items()])[kind]
    assert (found["height"], found["width"]) == (90, 150) and wanted and len(found[kind]) == len(wanted)
    for one, other in zip(found[kind], wanted):
        assert one == {key: value if isinstance(value, str) else pytest.approx(value, rel=1e-4, abs=1e-3) for key, value in other.items()}


def test_shares_of_the_pixels(picture):
    found = caffe.ModelFolder(str(RECIPES / "masks")).ask(picture.read_bytes())["classes"]
    assert sum(one["share"] for one in found) == pytest.approx(1)


def test_questions_do_not_disturb_each_other(picture):
    model = caffe.ModelFolder(RECIPES / "cifar10")
    first = model.ask(picture)
    other = picture.parent / "blue.png"
    Image.new("RGB", (32, 32), (20, 40, 230)).save(other)
    assert model.ask(other) != first and model.ask(picture) == first
    assert len(first["classes"]) == 5 and len(model.labels) == 10 and model.weights.endswith("cifar10_best.caffemodel")


def test_a_folder_of_the_zoo(tmp_path, picture):
    """Its README.md names weights and classes, and model_info.prototxt says what happens to images."""
    recipe = RECIPES / "cifar10"
    deploy = text_format.Parse((recipe / "deploy.prototxt").read_text(), caffe_pb2.NetParameter())
    weights = caffe_pb2.NetParameter.FromString((recipe / "snapshots" / "cifar10_best.caffemodel").read_bytes())
    for net in (deploy, weights):
        net.ClearField("model_info")
    (tmp_path / "deploy.prototxt").write_text(str(deploy))
    (tmp_path / "published.caffemodel").write_bytes(weights.SerializeToString())
    (tmp_path / "names.txt").write_text("".join(f"class {number}\n" for number in range(10)))
    (tmp_path / "README.md").write_text("---\nname: x\ncaffemodel: published.caffemodel\ncaffemodel_url: https://a.example/1\n"
                                        f"sha1: {'0' * 40}\nlabels: names.txt\n---\n\n# x\n")
    (tmp_path / "model_info.prototxt").write_text("mean_value: 100 scale: 0.02")
    found, wanted = caffe.ModelFolder(tmp_path).ask(picture, top=3)["classes"], told_by("classify", tmp_path, picture, "--top=3")["classes"]
    assert found[0]["name"].startswith("class ")
    assert found == [{**one, "score": pytest.approx(one["score"], rel=1e-3)} for one in wanted]
    (tmp_path / "published.caffemodel").unlink()
    with pytest.raises(caffe.InvalidArgument, match="get those that are published: caffe fetch-weights"):
        caffe.ModelFolder(tmp_path)


@pytest.mark.parametrize("names, wanted", [
    (["net_best.caffemodel", "net_iter_90.caffemodel", "net_iter_90.solverstate"], "net_best.caffemodel"),
    (["net_best.caffemodel.h5", "net_iter_90.caffemodel"], "net_best.caffemodel.h5"),
    (["net_iter_90.caffemodel", "net_iter_100.caffemodel", "other_iter_200.caffemodel"], "net_iter_100.caffemodel"),
    (["net_iter_90.caffemodel", "net_iter_90.solverstate", "net_iter_100.caffemodel"], "net_iter_90.caffemodel"),
    (["net_iter_5.caffemodel.h5", "net_iter_5.solverstate.h5"], "net_iter_5.caffemodel.h5")])
def test_which_weights(folder, names, wanted):
    assert weights_of(folder(*names)) == wanted


def test_weights_of_a_solver_that_names_only_a_folder(folder):
    assert weights_of(folder("solver_best.caffemodel", solver='snapshot_prefix: "snapshots"')) == "solver_best.caffemodel"


def test_folders_without_a_model(folder, tmp_path):
    with pytest.raises(caffe.InvalidArgument, match="is not a folder with a deploy.prototxt, so it holds no model"):
        caffe.ModelFolder(tmp_path)
    with pytest.raises(caffe.InvalidArgument, match=f"holds no weights yet; train the model: caffe train {tmp_path}"):
        caffe.ModelFolder(folder("net_best.solverstate"))
    spaced = tmp_path / "odd set"
    spaced.mkdir()
    for name in ("deploy.prototxt", "solver.prototxt"):
        (spaced / name).write_text((tmp_path / name).read_text())
    with pytest.raises(caffe.InvalidArgument, match=f"train the model: caffe train '{spaced}'$"):
        caffe.ModelFolder(spaced)
    (tmp_path / "solver.prototxt").write_text("base_lr {")
    with pytest.raises(caffe.InvalidArgument, match=r"solver.prototxt:1:"):
        caffe.ModelFolder(tmp_path)


def test_what_cannot_be_asked(picture):
    model = caffe.ModelFolder(RECIPES / "cifar10")
    with pytest.raises(caffe.IoError, match="missing.png: No such file or directory"):
        model.ask("missing.png")
    with pytest.raises(caffe.IoError):
        model.ask(b"no image")
    with pytest.raises(caffe.InvalidArgument, match="top is 0; give 1 or more classes"):
        model.ask(picture, top=0)


def test_needs_no_package_of_the_server(picture):
    code = (f"import sys; sys.modules.update(dict.fromkeys(['orjson', 'fastapi', 'uvicorn'])); sys.path.insert(0, {str(PACKAGE)!r}); import caffe; "
            f"print(caffe.ModelFolder({str(RECIPES / 'cifar10')!r}).ask({str(picture)!r})['width'])")
    assert subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout == "150\n"
