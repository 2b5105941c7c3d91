"""Every model of the zoo compiles, has the number of weights in its paper, and trains for an iteration on the data that it names."""
import re
import subprocess
import sys

import lmdb
import numpy as np
import pytest
from google.protobuf import text_format

from caffe.proto import caffe_pb2
from programs import ROOT, slow

# Learned parameters as published, and the additional statistics that normalisations store: 2 C + 1 each.
WEIGHTS = {
    "bvlc_alexnet": (60965224, 0),
    "bvlc_reference_caffenet": (60965224, 0),
    "bvlc_reference_rcnn_ilsvrc13": (60965224 - 800 * 4097, 0),
    "finetune_flickr_style": (60965224 - 980 * 4097, 0),
    "alexnet_bn": (60965224, 2 * (96 + 256 + 384 + 384) + 4),
    "alexnet_owt": (61100840, 0),
    "bvlc_googlenet": (6998552, 0),
    # Published with a bias in each of its convolutions, which normalisation cancels.
    "inception_v2": (11295240 - 10016, 2 * 10016 + 69),
    "inception_v3": (23834568, 2 * 17216 + 94),
    "vgg16": (138357544, 0),
    "vgg19": (143667240, 0),
    "resnet18": (11689512, 2 * 4800 + 20),
    "resnet50": (25557032, 2 * 26560 + 53),
    "resnet101": (44549160, 2 * 52672 + 104),
    "resnet152": (60192808, 2 * 75712 + 155),
    "cifar10_resnet20": (269722, 2 * 688 + 19),
    "cifar10_resnet56": (853018, 2 * 2032 + 55),
    # 1.4 million in the paper, plus a factor and a shift for each of 96 and 192 maps.
    "cifar10_nv": (1369738 + 2 * 288, 2 * 288 + 2),
    "squeezenet": (1235496, 0),
    "mobilenet_v1": (4231976, 2 * 10944 + 27),
    # 1,088 more than in the paper: the first block of the weights published for Caffe also expands.
    "mobilenet_v2": (3504872 + 1088, 2 * 17088 + 53),
    # GoogLeNet without its classifier, with one coverage and four corners from 1,024 maps.
    "kitti_detectnet": (6998552 - 1025 * 1000 + 1025 * 5, 0),
    # VGG-16's convolutions, five more layers, three lengths, and six numbers for each cell from 3x3 windows of six maps.
    "WIDER_FACE/SFD": (22288576 + 6 * (9 * (256 + 512 + 512 + 1024 + 512 + 256) + 6), 0),
    "VGGNet/VOC0712/SSD_300x300": (26285486, 0),
    # 60 more classes for each of the 4 or 6 boxes per cell, from 3x3 windows of six maps.
    "VGGNet/coco/SSD_300x300": (26285486 + sum(60 * boxes * (9 * channels + 1) for boxes, channels in (
        (4, 512), (6, 1024), (6, 512), (6, 256), (4, 256), (4, 256))), 0),
}
# Solvers that need more than some seconds for an iteration.
SLOW = re.compile("vgg|VGG|resnet101|resnet152|resnet50/solver_1K|inception_v3|_fp16|8K")
SOLVERS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "models").rglob("*solver*.prototxt"))


def parameters(workplace, model):
    output = workplace.run("caffe", "plan", f"--model={model}", "--phase=TEST")
    return int(re.search(r"Parameters:\s+(\d+)", output).group(1))


def test_every_folder_is_listed():
    assert {str(path.parent.relative_to(ROOT / "models")) for path in (ROOT / "models").rglob("deploy.prototxt")} == set(WEIGHTS)


@pytest.mark.parametrize("folder", WEIGHTS)
def test_weights_are_those_of_the_paper(workplace, folder):
    assert parameters(workplace, f"models/{folder}/deploy.prototxt") == sum(WEIGHTS[folder])


def test_sixteen_bits_need_no_other_weights(workplace):
    assert parameters(workplace, "models/bvlc_alexnet/deploy_fp16.prototxt") == WEIGHTS["bvlc_alexnet"][0]


def test_max_out_takes_two_more_scores_of_the_lowest_map(workplace):
    assert parameters(workplace, "models/WIDER_FACE/SFD/deploy_orig.prototxt") == (
        WEIGHTS["WIDER_FACE/SFD"][0] + 2 * (9 * 256 + 1))


def test_another_class_of_detectnet_is_another_coverage(workplace):
    assert parameters(workplace, "models/kitti_detectnet/deploy_2classes.prototxt") == WEIGHTS["kitti_detectnet"][0] + 1025


def test_the_large_form_has_the_widths_of_its_name(workplace):
    one, two, three = 128, 512, 1024
    spatial = 3 * one + 2 * one * one + one * two + 2 * two * two + two * three
    pointwise = three * three + three * 10
    biases, factors_and_shifts, statistics = 3 * one + 3 * two + 2 * three + 10, 2 * (one + two), 2 * (one + two) + 2
    assert parameters(workplace, "models/cifar10_nv/deploy_large.prototxt") == (
        9 * spatial + pointwise + biases + factors_and_shifts + statistics)


def noise(side, seed):
    return np.random.RandomState(seed).randint(0, 256, (side, side, 3), np.uint8)


def datum(side, seed):
    return caffe_pb2.Datum(channels=3, height=side, width=side, data=noise(side, seed).tobytes(), label=seed % 10)


def annotated(side, seed, kinds):
    box = dict(xmin=0.2, ymin=0.3, xmax=0.7, ymax=0.9)
    return caffe_pb2.AnnotatedDatum(datum=datum(side, seed), type=caffe_pb2.AnnotatedDatum.BBOX, annotation_group=[
        dict(group_label=1 + seed % kinds, annotation=[dict(instance_id=0, bbox=box)])])


def write_database(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    with lmdb.open(str(path), map_size=1 << 26) as database, database.begin(write=True) as transaction:
        for number, record in enumerate(records):
            transaction.put(b"%08d" % number, record.SerializeToString())


def write_list(workplace, path):
    names = []
    for number in range(4):
        name = workplace.root / f"{number}.ppm"
        name.write_bytes(b"P6 40 30 255\n" + noise(40, number)[:30].tobytes())
        names.append(f"{name} {number}\n")
    (workplace.root / path).parent.mkdir(parents=True, exist_ok=True)
    (workplace.root / path).write_text("".join(names))


def write_kitti(workplace):
    """Databases made by create_databases.py from four photographs, each with a car and a pedestrian."""
    image = pytest.importorskip("PIL.Image", reason="no python3-pil")
    for kind in ("image_2", "label_2"):
        (workplace.root / "kitti" / kind).mkdir(parents=True, exist_ok=True)
    for i in range(4):
        image.fromarray(noise(300, i)).save(workplace.root / f"kitti/image_2/{i:06}.png")
        (workplace.root / f"kitti/label_2/{i:06}.txt").write_text("".join(
            f"{kind} 0.00 0 -1.57 {box} 1.5 1.6 3.9 1.0 1.7 20.0 -1.6\n" for kind, box in (
                ("Car", "20.00 30.50 220.00 150.50"), ("Van", "1.00 2.00 90.00 100.00"),
                ("Pedestrian", f"230.00 100.00 {270 + i}.00 220.00"), ("DontCare", "0.00 0.00 10.00 10.00"))))
    done = subprocess.run([sys.executable, ROOT / "models/kitti_detectnet/create_databases.py", workplace.root / "kitti", "--test=1",
                           f"--output={workplace.root / 'models/kitti_detectnet'}"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_kitti_becomes_databases(workplace):
    write_kitti(workplace)
    records = {}
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        with lmdb.open(str(workplace.root / f"models/kitti_detectnet/kitti_{name}_lmdb"), readonly=True, lock=False) as database, \
                database.begin() as transaction:
            records[name] = {key: caffe_pb2.Datum.FromString(value) for key, value in transaction.cursor()}
    assert list(records["train_images"]) == list(records["train_labels"]) == [b"000000", b"000001", b"000002"]
    assert list(records["test_images"]) == list(records["test_labels"]) == [b"000003"]
    label = records["test_labels"][b"000003"]
    assert (label.channels, label.height, label.width) == (1, 3, 16)
    rows = np.array(label.float_data).reshape(3, 16)
    assert rows[0, :2].tolist() == [2, 16]
    assert rows[1:, :6].tolist() == [[20, 30.5, 200, 120, 0, 1], [230, 100, 43, 120, 0, 2]]
    photograph = records["test_images"][b"000003"]
    assert (photograph.encoded, photograph.height, photograph.width) == (True, 384, 1248)


def write_data(workplace, net):
    """Writes suitable data at the place that each data layer names."""
    if any("kitti" in layer.data_param.source for layer in net.layer):
        write_kitti(workplace)
        return
    for layer in net.layer:
        if layer.type == "ImageData":
            write_list(workplace, layer.image_data_param.source)
        elif layer.type == "AnnotatedData":
            kinds = 1 if "WIDER_FACE" in layer.data_param.source else 20
            write_database(workplace.root / layer.data_param.source, [annotated(64, i, kinds) for i in range(4)])
        elif layer.type == "Data":
            # For images of ImageNet, the smallest size that the crop allows.
            side = 40 if "cifar10" in layer.data_param.source else 320 if "320" in layer.data_param.source else 256
            write_database(workplace.root / layer.data_param.source, [datum(side, i) for i in range(4)])


def parse(path, message):
    return text_format.Parse(path.read_text(), message)


def shrink(workplace, path):
    """Sets batches of two, with a third of the side for DetectNet's images and a quarter for SFD's, and writes data for them."""
    target = workplace.root / path
    net = parse(target, caffe_pb2.NetParameter())
    for layer in net.layer:
        for options in (layer.data_param, layer.image_data_param):
            if options.HasField("batch_size"):
                options.batch_size = 2
        resize = layer.transform_param.resize_param
        if resize.height == 640:
            resize.height = resize.width = 160
        if layer.HasField("detectnet_groundtruth_param"):
            layer.detectnet_groundtruth_param.image_size_x //= 3
            layer.detectnet_groundtruth_param.image_size_y //= 3
    target.write_text(str(net))
    write_data(workplace, net)
    return net


@pytest.mark.parametrize("path", SOLVERS)
def test_an_iteration_of_training_and_a_test(workplace, path):
    if SLOW.search(path):
        slow()
    solver = parse(ROOT / path, caffe_pb2.SolverParameter())
    nets = [shrink(workplace, net) for net in {solver.net, solver.train_net, *solver.test_net} - {""}]
    solver.max_iter = solver.display = solver.iter_size = 1
    has_test = bool(solver.test_iter)
    if has_test:
        solver.test_iter[:], solver.test_interval = [1], 1
    solver.snapshot_after_train = False
    solver.random_seed = 1  # otherwise a crop might have no object, and then no loss
    (workplace.root / "solver.prototxt").write_text(str(solver))
    if any(layer.type == "Python" for net in nets for layer in net.layer):
        log = workplace.run_python("-c", "import caffe; caffe.get_solver('solver.prototxt').solve()")
    else:
        log = workplace.run("caffe", "train", "--solver=solver.prototxt")
    assert float(re.search(r"Iteration 0 .*loss = ([\d.e+]+|nan|inf)", log).group(1)) > 0
    if has_test:
        assert "detection_eval" in log if solver.eval_type == "detection" else "Test net output #0: " in log
    if "detectnet" in path:
        assert len(re.findall(r"Test net output #\d+: (mAP|precision|recall)", log)) == (6 if "2classes" in path else 3)
    assert "Optimization Done." in log
