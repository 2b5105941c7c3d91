"""caffe evaluate: a folder of `caffe new`, and any net with data for testing."""
import json
import re

import pytest

from test_new import caffe, classes, coco, folder, masks, read  # noqa: F401 # pylint: disable=unused-import

for package in ("sklearn", "jinja2"):
    pytest.importorskip(package, reason=f"{package} is not installed (scripts/install_dependencies.sh test)")


def trained(folder, images, *words, iterations=8):
    """The model folder m, after a little training."""
    caffe(folder, "new", images, "--output=m", *words)
    caffe(folder, "train", "m", f"--set=max_iter={iterations}", f"--set=test_interval={iterations}", "--set=snapshot=1000")
    return folder / "m"


def no_traceback(said):
    assert "Traceback" not in said
    return said


def test_classes(folder):
    classes(folder / "photos", count=14)
    (folder / "photos/red").rename(folder / "photos/<b>&red")
    model = trained(folder, "photos", "--batch=8", "--size=16")
    said = caffe(folder, "evaluate", "m")
    assert "m: 6 records, each once" in said and re.search(r"accuracy [01]\.\d{4}, mean F1", said)
    figures = json.loads((model / "evaluation.json").read_text())
    assert (figures["task"], figures["records"], figures["left_out"]) == ("classes", 6, [])
    assert [row["name"] for row in figures["classes"]] == ["<b>&red", "blue", "green"]
    assert [row["support"] for row in figures["classes"]] == [2, 2, 2]
    page = (model / "evaluation.html").read_text()
    assert "&lt;b&gt;&amp;red" in page and "<b>&red" not in page and not re.search("https?://", page)
    assert page.startswith("<!DOCTYPE html>") and "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page and "max-width: 72rem" in page
    # The mean that `caffe test` prints; here its batch size divides the size of the set.
    net = read(model / "train_val.prototxt", "NetParameter")
    batch = next(layer for layer in net.layer if layer.type == "Data" and layer.include[0].phase == 1).data_param.batch_size
    weights = next((model / "snapshots").glob("*.caffemodel"))
    tested = caffe(model, "test", "train_val.prototxt", f"--weights={weights}", f"--iterations={6 // batch}")
    for name, figure in (("accuracy", "accuracy"), ("loss", "log_loss")):
        assert figures[figure] == pytest.approx(float(re.search(rf"\] {name} = ([\d.e+-]+)", tested)[1]), rel=1e-4, abs=1e-5)
    # It overwrites its own files, but no others.
    caffe(folder, "evaluate", "m")
    (model / "evaluation.html").write_text("mine")
    assert "evaluation.html: already exists, and caffe evaluate has not written it" in caffe(folder, "evaluate", "m", status=1)
    assert (model / "evaluation.html").read_text() == "mine"
    assert '"accuracy"' in caffe(folder, "evaluate", "m", "--page=page.html", "--json")
    assert (folder / "page.html").is_file()


def test_the_best_weights_are_taken(folder):
    classes(folder / "photos", count=14)
    model = trained(folder, "photos", "--batch=8", "--size=16", iterations=2)
    caffe(folder, "evaluate", "m")
    assert json.loads((model / "evaluation.json").read_text())["weights"].endswith("m_best.caffemodel")
    for best in (model / "snapshots").glob("m_best.*"):
        best.unlink()
    caffe(folder, "evaluate", "m")
    assert json.loads((model / "evaluation.json").read_text())["weights"].endswith("m_iter_2.caffemodel")
    assert '"red"' in caffe(folder, "classify", "m", "photos/red/0.png")


def test_layers_without_weights_are_named(folder):
    """A model with other classes has all weights of the net except those of its last layer."""
    classes(folder / "photos", count=14)
    model = trained(folder, "photos", "--batch=8", "--size=16", iterations=2)
    classes(folder / "others", count=14, names=["blue", "red"])
    caffe(folder, "new", "others", "--output=o", "--batch=8", "--size=16", "--epochs=1")
    weights = next((model / "snapshots").glob("*.caffemodel"))
    said = caffe(folder, "evaluate", "o", f"--weights={weights}")
    text = "has no weights of 1 of the net's 22 layers with parameters ('fc10_2_classes')"
    assert f"warning: ../m/snapshots/{weights.name}: {text}" in said
    assert json.loads((folder / "o/evaluation.json").read_text())["untrained"] == ["fc10_2_classes"]
    assert "has no weights of 1 of the net&#39;s 22 layers" in (folder / "o/evaluation.html").read_text()
    assert "has no weights" not in caffe(folder, "evaluate", "m") and "has no weights" not in (model / "evaluation.html").read_text()


def test_boxes(folder):
    coco(folder / "scenes")
    model = trained(folder, "scenes", "--size=64", "--batch=4", "--val=50%")
    said = caffe(folder, "evaluate", "m")
    assert "mAP by VOC 2007" in said
    figures = json.loads((model / "evaluation.json").read_text())
    assert (figures["task"], figures["records"]) == ("boxes", 4)
    assert [row["name"] for row in figures["classes"]] == ["brick"] and figures["objects"] == 4
    weights = next((model / "snapshots").glob("*.caffemodel"))
    for version, name in (("11point", "voc2007"), ("MaxIntegral", "voc2012"), ("Integral", "integral")):
        tested = caffe(model, "test_detection", "train_val.prototxt", f"--weights={weights}", "--iterations=1", f"--ap_version={version}")
        assert figures[name] == pytest.approx(float(re.search(r"detection_eval = ([\d.e-]+)", tested)[1]), rel=1e-4)
    net = (model / "train_val.prototxt").read_text()
    test, batch = net.index("phase: TEST"), 'batch_size: 4'
    (model / "three.prototxt").write_text(net[:test] + net[test:].replace(batch, "batch_size: 3"))
    caffe(model, "evaluate", "three.prototxt", f"--weights={weights}", "--metrics=three.json")
    of_three = json.loads((model / "three.json").read_text())
    assert (of_three["records"], of_three["objects"], of_three["detections"]) == (4, 4, figures["detections"]) and figures["detections"] > 0
    assert of_three["voc2012"] == pytest.approx(figures["voc2012"])
    page = (model / "evaluation.html").read_text()
    assert "Precision over recall" in page and "<polyline" in page and not re.search("https?://", page)


def test_masks(folder):
    masks(folder / "cells", count=14)
    model = trained(folder, "cells", "--batch=4")
    said = caffe(folder, "evaluate", "m")
    assert "mean IoU" in said
    figures = json.loads((model / "evaluation.json").read_text())
    assert (figures["task"], figures["records"], figures["pixels"]) == ("masks", 2, 2 * 48 * 48)
    weights = next((model / "snapshots").glob("*.caffemodel"))
    tested = caffe(model, "test", "train_val.prototxt", f"--weights={weights}", "--iterations=1")
    assert figures["pixel_accuracy"] == pytest.approx(float(re.search(r"\] accuracy = ([\d.e-]+)", tested)[1]), abs=1e-5)
    page = (model / "evaluation.html").read_text()
    assert page.count("<img") == 2 and not re.search("https?://", page)


def test_a_net_without_a_folder(folder):
    classes(folder / "photos", count=14)
    model = trained(folder, "photos", "--batch=8", "--size=16", iterations=2)
    weights = next((model / "snapshots").glob("*.caffemodel"))
    said = caffe(model, "evaluate", "--model=train_val.prototxt", f"--weights={weights}", "--metrics=net.json")
    assert "train_val.prototxt: 6 records, each once" in said
    assert (model / "net.json").is_file() and not (model / "evaluation.html").exists()
    (folder / "names.txt").write_text("a\nb\n")
    assert "there are 2 names of classes, but the net has 3" in no_traceback(
        caffe(folder, "evaluate", "m", "--labels=names.txt", status=1))
    assert "--scores is 'none', which no Accuracy and no loss reads" in no_traceback(
        caffe(model, "evaluate", "train_val.prototxt", f"--weights={weights}", "--scores=none", status=1))


def test_folders_that_are_not_ready(folder):
    classes(folder / "photos")
    caffe(folder, "new", "photos", "--output=m")
    assert "holds no weights yet; train the model: caffe train m" in no_traceback(caffe(folder, "evaluate", "m", status=1))
    (folder / "m/train_val.prototxt").unlink()
    assert "names the net 'train_val.prototxt', which is not there" in no_traceback(caffe(folder, "evaluate", "m", status=1))
    assert "is a folder without a solver.prototxt" in no_traceback(caffe(folder, "evaluate", "photos", status=1))
    assert "--worst is 2000; give 0 to 1000" in caffe(folder, "evaluate", "m", "--worst=2000", status=1)
    assert "none.prototxt" in no_traceback(caffe(folder, "evaluate", "none.prototxt", status=1))
