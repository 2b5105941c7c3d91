"""The way of photographs: to databases, a trained net, its features, other classes, and your own program."""
import re
import tarfile

import lmdb
import numpy as np
import pytest

from caffe.proto import caffe_pb2
from programs import need_program, real_data, slow

CAFFENET = "models/bvlc_reference_caffenet"


def generated(folder):
    """Ten noise images of different sizes, in both lists."""
    random, lines = np.random.RandomState(0), []
    for number in range(10):
        height, width = random.randint(30, 90, 2)
        pixels = random.randint(0, 256, (height, width, 3)).astype(np.uint8)
        (folder / f"{number}.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels.tobytes())
        lines.append(f"{number}.ppm {number}\n")
    return lines


def photographs(folder):
    """Ten of the photographs of ImageNet."""
    slow()
    source = real_data("imagenet-sample")
    lines = (source / "list.txt").read_text().splitlines(keepends=True)[:10]
    wanted = {line.split()[0] for line in lines}
    with tarfile.open(source / "images.tar") as archive:
        for member in archive:
            name = member.name.removeprefix("./").split("/")[-1]
            if name in wanted:
                (folder / name).write_bytes(archive.extractfile(member).read())
    return lines


@pytest.fixture(params=[generated, photographs])
def images(request, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    lines = request.param(folder)
    for part in ("train", "val"):
        (folder / f"{part}.txt").write_text("".join(lines))
    return folder


def shrink(workplace, net, batch):
    path = workplace.root / net
    path.write_text(re.sub(r"batch_size: \d+", f"batch_size: {batch}", path.read_text()))
    return path


def write_list(workplace, path, folder):
    target = workplace.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{folder}/{line.split()[0]} {number % 2}\n" for number, line in
                              enumerate((folder / "train.txt").read_text().splitlines())))


def accuracies(log):
    return [float(text) for text in re.findall(r"accuracy = ([\d.]+)", log)]


def test_from_photographs_to_predictions(workplace, images):
    for program in ("convert_imageset", "compute_image_mean", "extract_features", "classification"):
        need_program(program)
    said = workplace.run("examples/imagenet/create_imagenet.sh", images)
    assert "Made examples/imagenet/ilsvrc12_val_lmdb" in said and "Made examples/imagenet/imagenet_mean.binaryproto" in said
    assert "ilsvrc12_train_lmdb exists" in workplace.run("examples/imagenet/create_imagenet.sh", images)

    shrink(workplace, f"{CAFFENET}/train_val.prototxt", 5)
    solver = workplace.edit(f"{CAFFENET}/solver.prototxt", max_iter=2, test_interval=2, test_iter=2, display=1)
    log = workplace.run("caffe", "train", f"--solver={solver}")
    assert len(accuracies(log)) == 1
    weights = f"{CAFFENET}/caffenet_iter_2.caffemodel"
    log = workplace.run("caffe", "test", f"--model={CAFFENET}/train_val.prototxt", f"--weights={weights}", "--iterations=2")
    assert 0 <= accuracies(log)[-1] <= 1

    net = "examples/feature_extraction/imagenet_val.prototxt"
    write_list(workplace, "examples/feature_extraction/file_list.txt", images)
    shrink(workplace, net, 5)
    workplace.run("extract_features", weights, net, "fc7", "fc7_lmdb", "2", "lmdb")
    with lmdb.open(str(workplace.root / "fc7_lmdb"), lock=False) as database, database.begin() as transaction:
        features = [caffe_pb2.Datum.FromString(value).float_data for _, value in transaction.cursor()]
    assert [len(numbers) for numbers in features] == [4096] * 10
    assert len({tuple(numbers) for numbers in features}) == 10

    style = "models/finetune_flickr_style"
    for part in ("train", "test"):
        write_list(workplace, f"data/flickr_style/{part}.txt", images)
    shrink(workplace, f"{style}/train_val.prototxt", 5)
    solver = workplace.edit(f"{style}/solver.prototxt", max_iter=1, test_interval=1, test_iter=1, display=1)
    log = workplace.run("caffe", "train", f"--solver={solver}", f"--weights={weights}")
    assert "fc8_flickr" in log and len(accuracies(log)) == 1

    (workplace.root / "labels.txt").write_text("".join(f"class {i}\n" for i in range(1000)))
    picture = images / (images / "train.txt").read_text().split()[0]
    deploy = f"{CAFFENET}/deploy.prototxt"
    by_value = workplace.run("classification", deploy, weights, "104,117,123", "labels.txt", picture)
    assert len(re.findall(r'^[01]\.\d{4} - "class \d+"$', by_value, re.MULTILINE)) == 5
    workplace.run("classification", deploy, weights, "examples/imagenet/imagenet_mean.binaryproto", "labels.txt", picture)
    (workplace.root / "labels.txt").write_text("one\n")
    wrong = workplace.run("classification", deploy, weights, "104,117,123", "labels.txt", picture, status=1)
    assert "has 1 lines; the net tells 1000 classes" in wrong


def test_regions_of_photographs(workplace, tmp_path):
    folder, examples = tmp_path, "examples/finetune_pascal_detection"
    for part in ("trainval", "test"):
        text = ""
        for number, line in enumerate(generated(folder)):
            # Class, overlap with the object, left, top, right, bottom: an object and background.
            text += f"# {number}\n{folder}/{line.split()[0]}\n3\n90\n90\n2\n{1 + number} 0.8 2 3 20 25\n0 0.1 5 5 28 28\n"
        (workplace.root / f"{examples}/window_file_2007_{part}.txt").write_text(text)
    shrink(workplace, f"{examples}/pascal_finetune_trainval_test.prototxt", 4)
    solver = workplace.edit(f"{examples}/pascal_finetune_solver.prototxt", max_iter=1, test_interval=1, test_iter=1,
                            display=1)
    log = workplace.run("caffe", "train", f"--solver={solver}")
    assert len(accuracies(log)) == 1 and "loss = " in log
