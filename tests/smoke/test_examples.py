"""Each example from its data to its weights, for a few iterations."""
import json
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

import numpy
import PIL.Image
import pytest

import caffe
import caffe.text
from programs import BINARIES, ROOT, need_program, real_data, slow


def render_digits(folder, train, test):
    subprocess.run([sys.executable, ROOT / "scripts" / "make_digits.py", folder, f"--train={train}", f"--test={test}"],
                   check=True)
    return folder


def accuracy(workplace, model, weights, iterations=10):
    output = workplace.run("caffe", "test", f"--model={model}", f"--weights={weights}", f"--iterations={iterations}")
    return float(re.findall(r"\] accuracy = ([\d.e+-]+)", output)[-1])


@pytest.mark.parametrize("solver, prefix", [
    ("lenet_solver", "lenet"), ("lenet_multistep_solver", "lenet_multistep"), ("lenet_solver_adam", "lenet_adam"),
    ("lenet_solver_rmsprop", "lenet_rmsprop"), ("lenet_adadelta_solver", "lenet_adadelta")])
def test_mnist_on_rendered_digits(workplace, tmp_path, solver, prefix):
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 500, 100))
    path = workplace.edit(f"examples/mnist/{solver}.prototxt", max_iter=20, test_interval=10, test_iter=1, display=5)
    log = workplace.run("caffe", "train", f"--solver={path}")
    assert "Iteration 10, Testing net (#0)" in log
    assert "Optimization Done." in log
    weights = f"examples/mnist/{prefix}_iter_20.caffemodel"
    assert (workplace.root / weights.replace("caffemodel", "solverstate")).exists()
    assert 0 <= accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", weights, 1) <= 1


def test_databases_are_kept(workplace, tmp_path):
    need_program("convert_mnist_data")
    digits = render_digits(tmp_path / "digits", 20, 10)
    assert "Made examples/mnist/mnist_test_lmdb" in workplace.run("examples/mnist/create_mnist.sh", digits)
    assert "examples/mnist/mnist_test_lmdb exists" in workplace.run("examples/mnist/create_mnist.sh", digits)


def test_lenet_learns_real_mnist(workplace):
    digits = real_data("mnist")
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", digits)
    path = workplace.edit("examples/mnist/lenet_solver.prototxt", max_iter=500)
    workplace.run("caffe", "train", f"--solver={path}")
    # 0.965 to 0.974 for different seeds here.
    assert accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet_iter_500.caffemodel") > 0.95


def test_lenet_learns_rendered_digits(workplace, tmp_path):
    slow()
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 12000, 2000))
    path = workplace.edit("examples/mnist/lenet_solver.prototxt", max_iter=2000, test_iter=20)
    workplace.run("caffe", "train", f"--solver={path}")
    assert accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet_iter_2000.caffemodel", 20) > 0.97


@pytest.mark.parametrize("rule", ["", "_nesterov", "_adagrad", "_adadelta"])
def test_autoencoder(workplace, tmp_path, rule):
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 300, 100))
    path = workplace.edit(f"examples/mnist/mnist_autoencoder_solver{rule}.prototxt", max_iter=30, test_iter=1,
                          test_interval=30, display=30)
    log = workplace.run("caffe", "train", f"--solver={path}")
    for number in (0, 1):
        first, last = (float(text) for text in re.findall(
            rf"Testing net \(#{number}\).*?l2_error = ([\d.]+)", log, re.DOTALL))
        assert last < 0.9 * first


def test_siamese(workplace, tmp_path):
    digits = render_digits(tmp_path / "digits", 600, 200)
    script = ROOT / "examples/siamese/create_mnist_siamese.py"
    for said in ("Made examples/siamese/mnist_siamese_train_lmdb", "mnist_siamese_test_lmdb exists"):
        done = subprocess.run([sys.executable, script, digits], cwd=workplace.root, check=True, capture_output=True, text=True)
        assert said in done.stdout
    path = workplace.edit("examples/siamese/mnist_siamese_solver.prototxt", max_iter=60, test_iter=2, test_interval=60)
    log = workplace.run("caffe", "train", f"--solver={path}")
    first, last = (float(text) for text in re.findall(r"Test net output #0: loss = ([\d.]+)", log))
    assert last < first
    # One of the two reads the weights of both.
    half = workplace.root / "examples/siamese/mnist_siamese.prototxt"
    half.write_text(half.read_text().replace("dim: 10000", "dim: 2"))
    workplace.run("caffe", "test", f"--model={half}", "--weights=examples/siamese/mnist_siamese_iter_60.caffemodel",
                  "--iterations=1")


def test_a_program_of_the_library_logs_as_caffe_does(workplace):
    need_program("classification")
    (workplace.root / "labels.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
    (workplace.root / "digit.pgm").write_bytes(b"P5 28 28 255\n" + bytes(28 * 28))
    net = workplace.root / "examples/mnist/lenet.prototxt"  # the old form without an input layer; the log names it
    (workplace.root / "old.prototxt").write_text(re.sub(r'layer {\s+name: "data".*?\n}\n', 'input: "data" input_dim: 1 input_dim: 1 '
                                                        'input_dim: 28 input_dim: 28\n', net.read_text(), flags=re.DOTALL))
    log = workplace.run("classification", "old.prototxt", "examples/mnist/lenet.caffemodel", "0", "labels.txt", "digit.pgm")
    assert len(re.findall(r'^[01]\.\d{4} - "digit \d"$', log, re.MULTILINE)) == 5
    assert re.search(r"^I\d{4} \d\d:\d\d.*Upgraded", log, re.MULTILINE) and "InitGoogleLogging" not in log, log


def test_hdf5_classification(workplace):
    folder = "examples/hdf5_classification"
    assert f"Made {folder}/test.h5" in workplace.run(f"{folder}/create_data.sh")
    assert f"{folder}/train.h5 exists" in workplace.run(f"{folder}/create_data.sh")
    scores = []
    for solver in ("solver", "nonlinear_solver"):
        path = workplace.edit(f"{folder}/{solver}.prototxt", max_iter=1500, test_interval=1500)
        log = workplace.run("caffe", "train", f"--solver={path}")
        scores.append(float(re.findall(r"accuracy = ([\d.]+)", log)[-1]))
    # A line between the classes gets about 0.73 right; the hidden layer above 0.97.
    assert 0.6 < scores[0] < 0.8 and scores[1] > 0.93


def test_lstm_remembers(workplace):
    solver = workplace.root / "examples/sequences/solver.prototxt"
    solver.write_text(solver.read_text() + "random_seed: 1\n")
    log = workplace.run("caffe", "train", f"--solver={solver}")
    scores = [float(text) for text in re.findall(r"accuracy = ([\d.]+)", log)]
    assert scores[0] < 0.7 and scores[-1] > 0.95


def some_of_cifar10(source, folder, count):
    """The first images of both lists, as files with their lists."""
    folder.mkdir()
    for part in ("train", "test"):
        lines = (source / f"{part}.txt").read_text().splitlines()[:count]
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")
        wanted = {line.split()[0] for line in lines}
        with tarfile.open(source / f"{part}.tar.gz") as archive:
            for member in archive:
                if member.name.removeprefix("./") in wanted:
                    target = folder / member.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
    return folder


def test_cifar10_quick(workplace, tmp_path):
    source = real_data("cifar10")
    need_program("convert_imageset")
    need_program("compute_image_mean")
    workplace.run("examples/cifar10/create_cifar10.sh", some_of_cifar10(source, tmp_path / "cifar10", 300))
    first = workplace.edit("examples/cifar10/cifar10_quick_solver.prototxt", max_iter=4, test_interval=4, test_iter=1)
    second = workplace.edit("examples/cifar10/cifar10_quick_solver_lr1.prototxt", max_iter=6, test_interval=4, test_iter=1)
    workplace.run("caffe", "train", f"--solver={first}")
    state = "examples/cifar10/cifar10_quick_iter_4.solverstate"
    workplace.run("caffe", "train", f"--solver={second}", f"--snapshot={state}")
    assert (workplace.root / "examples/cifar10/cifar10_quick_iter_6.caffemodel.h5").exists()


def test_cifar10_full(workplace, tmp_path):
    source = real_data("cifar10")
    need_program("convert_imageset")
    need_program("compute_image_mean")
    workplace.run("examples/cifar10/create_cifar10.sh", some_of_cifar10(source, tmp_path / "cifar10", 200))
    stages, state = (("", 2), ("_lr1", 4), ("_lr2", 6)), []
    for stage, iterations in stages:
        path = workplace.edit(f"examples/cifar10/cifar10_full_solver{stage}.prototxt", max_iter=iterations,
                              test_interval=2, test_iter=1)
        workplace.run("caffe", "train", f"--solver={path}", *state)
        state = [f"--snapshot=examples/cifar10/cifar10_full_iter_{iterations}.solverstate.h5"]
    assert (workplace.root / "examples/cifar10/cifar10_full_iter_6.caffemodel.h5").exists()


@pytest.mark.parametrize("suffix", ["", "_bn"])
def test_cifar10_sigmoid(workplace, tmp_path, suffix):
    source = real_data("cifar10")
    need_program("convert_imageset")
    need_program("compute_image_mean")
    workplace.run("examples/cifar10/create_cifar10.sh", some_of_cifar10(source, tmp_path / "cifar10", 200))
    path = workplace.edit(f"examples/cifar10/cifar10_full_sigmoid_solver{suffix}.prototxt", max_iter=2, test_interval=2,
                          test_iter=1)
    assert "accuracy = " in workplace.run("caffe", "train", f"--solver={path}")


@pytest.mark.parametrize("batch", ["128", "1024"])
def test_large_batches(workplace, tmp_path, batch):
    random = numpy.random.default_rng(1)
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(20):
            PIL.Image.fromarray(random.integers(0, 256, (32, 32, 3), numpy.uint8)).save(tmp_path / f"images/{name}/{number}.png")
    for phase in ("train", "test"):
        workplace.run("caffe", "data", "import", tmp_path / "images", f"examples/large_batch/cifar10_{phase}_lmdb")
    log = workplace.run("caffe", "train", f"examples/large_batch/solver_{batch}.prototxt", "--set", "max_epoch=2", "--set", "display=1",
                        "--set", "layer[train].data_param.batch_size=8", "--set", "layer[test].data_param.batch_size=8")
    assert log.count("accuracy = ") > 0 and ("LARC ratios = " in log) == (batch == "1024")
    assert (workplace.root / "examples/large_batch/large_batch_iter_10.caffemodel").exists()


def test_the_recipe_for_classes_knows_cifar10(tmp_path):
    """Of the first 200 test images, which it has not been trained on."""
    images = some_of_cifar10(real_data("cifar10"), tmp_path / "cifar10", 200)
    truth = dict(line.split() for line in (images / "test.txt").read_text().splitlines())
    answers = subprocess.run([BINARIES / "caffe", "classify", ROOT / "examples/recipes/cifar10", *(images / name for name in truth),
                              "--batch=50", "--json"], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    first = {one["image"]: one["classes"][0]["class"] for one in json.loads(answers)["images"]}
    assert len(first) == 200
    assert sum(first[str(images / name)] == int(label) for name, label in truth.items()) >= 170


def share_found(scenes, *model):
    """The share of the objects of scenes/boxes that `caffe detect` finds at their places."""
    truth = json.loads((scenes / "boxes/instances.json").read_text())
    files = {one["id"]: scenes / "boxes" / one["file_name"] for one in truth["images"]}
    answers = json.loads(subprocess.run([BINARIES / "caffe", "detect", *model, *files.values(), "--json"], check=True, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    found = {one["image"]: one["detections"] for one in answers["images"]}
    hits = 0
    for thing in truth["annotations"]:
        left, top, width, height = thing["bbox"]
        hits += any(box["class"] == thing["category_id"] and abs(box["xmin"] - left) + abs(box["xmax"] - left - width) < 0.3 * width and
                    abs(box["ymin"] - top) + abs(box["ymax"] - top - height) < 0.3 * height for box in found[str(files[thing["image_id"]])])
    return hits / len(truth["annotations"])


@pytest.mark.parametrize("missing", ["numpy", "PIL"])
def test_scenes_without_the_packages_are_a_line(tmp_path, missing):
    (tmp_path / f"{missing}.py").write_text("raise ImportError('not here')")
    done = subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", tmp_path / "scenes"], env={"PYTHONPATH": str(tmp_path)}, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and not (tmp_path / "scenes").exists()
    assert "(not here); run it with /usr/bin/python3 and Debian's packages: apt-get install python3-numpy python3-pil" in done.stderr


def test_scenes_of_single_objects_are_a_folder_for_each_class(tmp_path):
    def draw(*options):
        return subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", tmp_path / "photos", *options], check=False,
                              capture_output=True, text=True)

    done = draw("--classes=disc,star", "--images=2", "--side=32")
    assert done.returncode == 0 and "2 images of each of 2 classes" in done.stdout
    made = sorted(tmp_path.glob("photos/*/*.png"))
    assert [f"{path.parent.name}/{path.name}" for path in made] == [f"{kind}/0000{number}.png" for kind in ("disc", "star") for number in (0, 1)]
    assert len({path.read_bytes() for path in made}) == 4 and PIL.Image.open(made[0]).size == (32, 32)

    again = draw("--classes=star,cross")
    assert again.returncode == 1 and again.stderr.endswith("star already exists; choose another folder or delete this one\n")
    assert not (tmp_path / "photos/cross").exists()
    wrong = draw("--classes=disc,cube")
    assert wrong.returncode == 2 and "there is no class 'cube'; the classes are disc, square, triangle, cross, star" in wrong.stderr


def test_the_recipe_for_boxes_finds_scenes_it_has_not_seen(workplace, tmp_path):
    """Nine of ten things, by the weights of examples/recipes/boxes; its net is what `caffe new` writes today."""
    scenes = tmp_path / "scenes"
    subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", scenes, "--images=12", "--seed=7"], check=True, stdout=subprocess.DEVNULL)
    recipe = ROOT / "examples/recipes/boxes"
    workplace.run("caffe", "new", scenes / "boxes", f"--output={tmp_path / 'boxes'}")
    assert (tmp_path / "boxes/deploy.prototxt").read_text() == (recipe / "deploy.prototxt").read_text()
    assert share_found(scenes, recipe) >= 0.9


def test_the_recipe_for_masks_colours_scenes_it_has_not_seen(workplace, tmp_path):
    """Mean intersection over union by the weights of examples/recipes/masks; the net is what `caffe new` writes today."""
    scenes, recipe = tmp_path / "scenes", ROOT / "examples/recipes/masks"
    subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", scenes, "--images=12", "--seed=7"], check=True, stdout=subprocess.DEVNULL)
    workplace.run("caffe", "new", scenes / "masks", f"--output={tmp_path / 'masks'}")

    nets = [(folder / "deploy.prototxt").read_text() for folder in (tmp_path / "masks", recipe)]
    assert len({re.sub(r"mean_value: .*", "mean_value", net) for net in nets}) == 1  # but for the mean of the images
    images = sorted((scenes / "masks/images").glob("*.png"))
    workplace.run("caffe", "segment", recipe, *images, f"--masks={tmp_path / 'found'}")
    truth, found = (numpy.stack([numpy.array(PIL.Image.open(folder / image.name)) for image in images])
                    for folder in (scenes / "masks/masks", tmp_path / "found"))
    shared = [((truth == k) & (found == k)).sum() / ((truth == k) | (found == k)).sum() for k in range(4)]
    assert sum(shared) / 4 >= 0.93


def test_the_model_of_characters_foretells_what_it_has_not_read(workplace):
    """Its weights need fewer bits for each character of a sentence in the Bible's words than 2.5; by chance it is log2(73) = 6.2."""
    text = ROOT / "examples/text"
    tokenizer = caffe.text.open_tokenizer(text)
    net = caffe.Net(str(text / "deploy.prototxt"), caffe.TEST, weights=str(text / "characters.caffemodel"))
    sentence = "And the men of that city went up unto the house of the king, and said unto him, Thy servants are come from a far country."
    numbers = tokenizer.encode(sentence)
    net.blobs["tokens"].data[0, :len(numbers)] = numbers
    chances = net.forward()["prob"][0, numpy.arange(len(numbers) - 1), numbers[1:]]
    assert -numpy.log2(chances).mean() < 2.5
    scores = net.blobs["scores"].data[0].copy()
    writer = caffe.Net(str(text / "generate.prototxt"), caffe.TEST, weights=str(text / "characters.caffemodel"))
    for place, number in enumerate(numbers):  # the same from one character at a time
        writer.blobs["tokens"].data[...], writer.blobs["place"].data[...], writer.blobs["cont"].data[...] = number, place, place > 0
        writer.forward()
        assert writer.blobs["scores"].data[0, 0] == pytest.approx(scores[place], abs=1e-5 * abs(scores).max())
    said = workplace.run_python("examples/text/sample.py", text / "characters.caffemodel", "--start=And the king said", "--characters=200")
    assert "And the king said" in said and len(said) > 200


def test_texts_are_trained_on_by_the_readmes_commands(workplace):
    """The commands of examples/text/README.md, for two iterations on a text, and then on one with other characters."""
    folder = workplace.root = workplace.root / "examples/text"
    (folder / "bible.txt").write_text("In the beginning was a text, and another one.\n" * 400, encoding="utf-8")
    (folder / "my_text.txt").write_text("".join(map(chr, range(33, 126))) * 200, encoding="utf-8")  # 93 characters
    readme = (folder / "README.md").read_text(encoding="utf-8")
    commands = [line for line in readme.splitlines() if re.match(r"(caffe|sed|rm) |python3 .*--tokenizer", line)]
    assert [line.split()[0] for line in commands] == ["caffe", "caffe", "rm", "caffe", "sed", "caffe", "python3"]
    for line in commands:
        more = ["--set", "max_iter=2", "--set", "rampup_interval=1"] if " train " in line else []
        words = shlex.split(line.replace("iter_3000", "iter_2"))
        if words[0] == "caffe":
            workplace.run(*words, *more)
        elif words[0] == "python3":
            assert "\nOnce" in workplace.run_python(*words[1:], "--characters=5")
        else:
            subprocess.run(words, cwd=folder, check=True)


def test_the_net_of_dates_writes_dates_it_has_not_read(workplace):
    """Its weights on 200 dates of another seed; one in twenty may be wrong."""
    pytest.importorskip("h5py")
    workplace.run_python("examples/seq2seq/make_dates.py", "--train=10", "--test=200", "--seed=9")
    said = workplace.run_python("examples/seq2seq/write_dates.py", "examples/seq2seq/dates.caffemodel", "--test", "the 3rd of Mar. 1984")
    assert float(re.search(r"([\d.]+) of 200 dates are right", said)[1]) >= 0.95
    assert "1984-03-03" in said
    log = workplace.run("caffe", "train", "examples/seq2seq", "--set", "max_iter=2", "--set", "rampup_interval=1", "--set", "test_iter=1")
    assert "Optimization Done." in log


def test_the_net_of_spoken_digits_understands_speakers_it_has_not_heard(workplace, tmp_path):
    """Its weights on 100 recordings of another seed; one in ten may be wrong."""
    pytest.importorskip("h5py")
    folder = workplace.root = workplace.root / "examples/speech"
    workplace.run_python("make_digits.py", "--train=64", "--test=100", "--seed=9")
    workplace.run_python("make_digits.py", "--say=271828", "said.wav")
    said = workplace.run_python("read_digits.py", "digits.caffemodel", "--test", "said.wav")
    assert float(re.search(r"([\d.]+) of 100 recordings are right", said)[1]) >= 0.9
    assert float(re.search(r"([\d.]+) of the digits are wrong", said)[1]) <= 0.03
    assert "\n271828\n" in said
    workplace.run("caffe", "deploy", "train_val.prototxt", "--inputs=features,cont", "--stage=deploy", f"--output={tmp_path / 'deploy'}")
    assert (tmp_path / "deploy").read_text() == (folder / "deploy.prototxt").read_text()
    log = workplace.run("caffe", "train", folder, "--set", "max_iter=2", "--set", "rampup_interval=1", "--set", "test_iter=1")
    assert "Optimization Done." in log


def test_the_detector_of_one_stage_finds_scenes_it_has_not_seen(workplace, tmp_path):
    """Four of five things by the weights of examples/yolo; then the commands of its README, for two iterations."""
    folder = workplace.root = workplace.root / "examples/yolo"
    scenes = tmp_path / "scenes"
    subprocess.run([sys.executable, ROOT / "scripts/make_scenes.py", scenes, "--images=20", "--seed=7"], check=True, stdout=subprocess.DEVNULL)
    assert share_found(scenes, folder / "deploy.prototxt", f"--weights={folder / 'yolo.caffemodel'}") >= 0.8
    shutil.rmtree(folder / "scenes", ignore_errors=True)  # the checkout's, if there are some
    workplace.run("caffe", "new", scenes / "boxes", f"--output={folder / 'scenes'}")
    log = workplace.run("caffe", "train", folder, "--set", "max_iter=2", "--set", "test_interval=2", "--set", "test_iter=1", "--set", "display=1")
    assert "coarse_loss = " in log and "fine_loss = " in log and "mAP" in log
    for package in ("sklearn", "jinja2"):
        pytest.importorskip(package)
    score = workplace.run("caffe", "evaluate", "train_val.prototxt", "--weights=yolo.caffemodel")
    assert float(re.search(r"VOC 2012 ([\d.]+)", score)[1]) >= 0.8  # 3 scenes only


def test_the_generator_makes_all_ten_digits(workplace, tmp_path):
    """LeNet recognizes them, by the weights of examples/gan; then both nets are trained for two iterations."""
    need_program("convert_mnist_data")
    generate = ("examples/gan/generate.py", "examples/gan/generator.caffemodel", "--score", f"--sheet={tmp_path / 'digits.png'}")
    said = workplace.run_python(*generate)
    assert float(re.search(r"score ([\d.]+) of 10", said)[1]) >= 6
    assert min(int(count) for count in re.search(r"of each digit ([\d ]+)", said)[1].split()) >= 400
    assert PIL.Image.open(tmp_path / "digits.png").size == (16 * 28, 10 * 28)
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 200, 10))
    workplace.run_python("examples/gan/train.py", "--iterations=2")
    caffe.Net(str(workplace.root / "examples/gan/deploy.prototxt"), caffe.TEST,
              weights=str(workplace.root / "examples/gan/snapshots/generator.caffemodel"))


def test_style_is_carried_over(workplace, tmp_path):
    workplace.run_python("examples/style/make_pictures.py")
    result = tmp_path / "result.png"
    said = workplace.run_python("examples/style/transfer.py", "examples/style/content.png", "examples/style/style.png", result, "--iterations=8")
    first, last = (float(loss) for loss in re.findall(r"loss ([\d.]+)", said))
    assert last < 0.8 * first, said
    assert PIL.Image.open(result).size == (128, 128)
