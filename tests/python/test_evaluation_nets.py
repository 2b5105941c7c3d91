"""caffe.evaluation on nets: each record is scored once; also tests what is left out, what is refused, and the page.

The net's answer is the brightest channel of an image: the net has no weights, and each answer is known.
"""
import json
import re

import numpy as np
import pytest

import built_package  # noqa: F401 # pylint: disable=unused-import
import caffe
from caffe import evaluation
from caffe._output import write_whole
from caffe.evaluation import outputs, pictures
from caffe.evaluation.records import display_name
from caffe.proto import caffe_pb2

pytest.importorskip("sklearn", reason="scikit-learn is not installed (python3-sklearn)")

NAMES = ("blue", "green", "red")
LAYERS = """
layer { name: 'scores' type: 'Pooling' bottom: 'data' top: 'scores' pooling_param { pool: AVE global_pooling: true } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label' top: 'loss' }
layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'label' top: 'accuracy' include { phase: TEST } }
"""


def image(channel, brightness=200):
    pixels = np.full((3, 4, 4), 10, np.uint8)
    pixels[channel] = brightness
    return pixels


# The last two of ten have wrong labels.
SHOWN = [k % 3 for k in range(10)]
LABELS = SHOWN[:8] + [0, 1]


def record(number, label=None):
    datum = caffe_pb2.Datum(channels=3, height=4, width=4, label=LABELS[number] if label is None else label,
                            data=image(SHOWN[number], 100 + 10 * number).tobytes())
    return datum.SerializeToString()


@pytest.fixture
def database(tmp_path):
    """database(records, names=None): the folder of an LMDB with keys like those of `caffe data import`."""
    lmdb = pytest.importorskip("lmdb")

    def make(records, names=None):
        folder = tmp_path / "db"
        with lmdb.open(str(folder), map_size=1 << 24) as environment, environment.begin(write=True) as transaction:
            for number, value in enumerate(records):
                name = names[number] if names else f"{NAMES[SHOWN[number]]}/{number}.png"
                transaction.put(f"{number:08}_{name}".encode(), value)
        (folder / "labels.txt").write_text("".join(f"{name}\n" for name in NAMES))
        return folder

    return make


@pytest.fixture
def subject(write, database):
    """subject(batch, records, layers): the subject of a net that reads the database; by default the ten records."""
    def make(batch=4, records=None, layers=LAYERS, names=None, data="", transform="scale: 0.02", **more):
        folder = database([record(k) for k in range(10)] if records is None else records, names)
        return evaluation.open_subject(write(f"""
            layer {{ name: 'data' type: 'Data' top: 'data' top: 'label' transform_param {{ {transform} }}
                     data_param {{ source: '{folder}' batch_size: {batch} backend: LMDB {data} }} }} {layers}"""), **more)

    return make


class TestEachRecordOnce:
    @pytest.mark.parametrize("batch", [1, 3, 4, 10, 16])
    @pytest.mark.parametrize("data", ["", "rand_skip: 5 shuffle: true cache: true"])
    def test_of_ten_records(self, subject, batch, data):
        found = subject(batch, data=data)
        records = [one for batch in evaluation.each_record_once(found.net) for one in batch]
        assert [one.index for one in records] == list(range(10))
        assert records[7].name == "green/7.png"

    @pytest.mark.parametrize("batch", [1, 4, 16])
    def test_figures_do_not_depend_on_the_batch(self, subject, batch):
        figures = evaluation.evaluate(subject(batch)).figures
        assert (figures["records"], figures["items"], figures["accuracy"]) == (10, 10, pytest.approx(0.8))
        assert np.array(figures["confusion_matrix"]).sum() == 10
        assert [row["name"] for row in figures["classes"]] == list(NAMES)
        shown = np.array([image(SHOWN[k], 100 + 10 * k).mean(axis=(1, 2)) * 0.02 for k in range(10)])
        assert figures["log_loss"] == pytest.approx(evaluation.log_loss(LABELS, evaluation.probabilities_of(shown)), rel=1e-5)

    def test_of_a_list_that_shuffles(self, write, tmp_path):
        images = pytest.importorskip("PIL.Image")
        for k in range(10):
            images.fromarray(image(SHOWN[k])[::-1].transpose(1, 2, 0)).save(tmp_path / f"{k}.png")
        (tmp_path / "list.txt").write_text("".join(f"{k}.png {LABELS[k]}\n" for k in range(10)))
        found = evaluation.open_subject(write(f"""layer {{ name: 'data' type: 'ImageData' top: 'data' top: 'label'
            image_data_param {{ source: '{tmp_path}/list.txt' root_folder: '{tmp_path}/' batch_size: 4 shuffle: true rand_skip: 3 }} }}
            {LAYERS}"""))
        figures = evaluation.evaluate(found).figures
        assert (figures["records"], figures["accuracy"]) == (10, pytest.approx(0.8))
        assert sorted(one["file"] for one in figures["mistakes"]) == ["8.png", "9.png"]

    def test_of_hdf5_rows(self, write, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "rows.h5", "w") as file:
            file["data"] = np.array([image(SHOWN[k]) for k in range(10)], np.float32)
            file["label"] = np.array(LABELS, np.float32)
        (tmp_path / "list.txt").write_text(f"{tmp_path}/rows.h5\n")
        found = evaluation.open_subject(write(f"""layer {{ name: 'data' type: 'HDF5Data' top: 'data' top: 'label'
            hdf5_data_param {{ source: '{tmp_path}/list.txt' batch_size: 4 shuffle: true }} }} {LAYERS}"""))
        figures = evaluation.evaluate(found).figures
        assert (figures["records"], figures["accuracy"]) == (10, pytest.approx(0.8))
        assert [one["file"] for one in figures["mistakes"]] == ["record 8", "record 9"]


class TestWhatIsLeftOut:
    @pytest.mark.parametrize("broken", [[0], [3, 4], [9]])
    def test_records_that_cannot_be_read(self, subject, broken):
        figures = evaluation.evaluate(subject(records=[b"broken" if k in broken else record(k) for k in range(10)])).figures
        assert figures["left_out"] == broken and figures["items"] == 10 - len(broken)

    def test_all_records(self, subject):
        with pytest.raises(caffe.IoError, match="the last of 3 broken records in a row"):
            subject(records=[b"broken"] * 3)

    def test_the_label_that_the_loss_ignores(self, subject):
        layers = LAYERS.replace("type: 'SoftmaxWithLoss'", "type: 'SoftmaxWithLoss' loss_param { ignore_label: 255 }")
        records = [record(k, 255 if k == 2 else None) for k in range(10)]
        figures = evaluation.evaluate(subject(records=records, layers=layers)).figures
        assert (figures["items"], figures["unlabelled"]) == (9, 1)
        records = [record(k, 255) for k in range(10)]
        with pytest.raises(caffe.InvalidArgument, match="all 10 records have the label 255"):
            evaluation.evaluate(subject(records=records, layers=layers))

    def test_a_class_that_the_data_does_not_have(self, subject):
        figures = evaluation.evaluate(subject(records=[record(k) for k in (0, 3, 6)], names=["a", "b", "c"])).figures
        assert [row["recall"] for row in figures["classes"]] == [1, None, None]
        assert figures["accuracy"] == figures["macro"]["recall"] == 1 and figures["mistakes"] == []


class TestWhatIsRefused:
    def test_labels_beyond_the_classes_say_which_record(self, subject):
        with pytest.raises(caffe.InvalidArgument, match="label 7 at position 1 of the batch is outside 0..2.*position 0 is record 4, "
                           "'green/4.png'"):
            evaluation.evaluate(subject(records=[record(k, 7 if k == 5 else None) for k in range(10)]))

    def test_a_net_without_labels(self, subject):
        with pytest.raises(caffe.InvalidArgument, match="nothing in the net compares scores with labels.*train_val.prototxt"):
            evaluation.evaluate(subject(layers=LAYERS.split("layer { name: 'loss'")[0]))

    def test_a_net_without_data(self, write):
        with pytest.raises(caffe.InvalidArgument, match="no data layer of phase TEST that says how many records"):
            evaluation.open_subject(write("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }"))

    def test_weights(self, subject, write, tmp_path):
        learned = LAYERS.replace("'Pooling'", "'InnerProduct'").replace(
            "pooling_param { pool: AVE global_pooling: true }", "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } }")
        with pytest.raises(caffe.InvalidArgument, match="--weights is missing"):
            subject(layers=learned)
        other = caffe.Net(write("""layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
            layer { name: 'other' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 2 } }""", "other.prototxt"),
                          caffe.TEST)
        other.save(str(tmp_path / "other.caffemodel"))
        with pytest.raises(caffe.InvalidArgument, match="other.caffemodel"):
            subject(layers=learned, weights=str(tmp_path / "other.caffemodel"))
        with pytest.raises(caffe.IoError, match="none.caffemodel"):
            subject(layers=learned, weights=str(tmp_path / "none.caffemodel"))

    def test_too_few_names(self, subject):
        with pytest.raises(caffe.InvalidArgument, match="2 names of classes, but the net has 3 classes"):
            evaluation.evaluate(subject(labels=["a", "b"]))

    def test_a_blob_of_scores_that_nothing_reads(self, subject):
        with pytest.raises(caffe.InvalidArgument, match="--scores is 'data', which no Accuracy and no loss reads; they read 'scores'"):
            evaluation.evaluate(subject(scores="data"))

    def test_a_definition_that_is_wrong_is_named_with_its_line(self, write):
        with pytest.raises(caffe.InvalidArgument, match=r"net.prototxt:2"):
            evaluation.open_subject(write("name: 'x'\nlayers_of_cake { }"))


class TestScores:
    def test_probabilities_are_taken_as_they_are(self, subject):
        layers = LAYERS.split("layer { name: 'loss'")[0] + """
            layer { name: 'prob' type: 'Softmax' bottom: 'scores' top: 'prob' }
            layer { name: 'accuracy' type: 'Accuracy' bottom: 'prob' bottom: 'label' top: 'accuracy' }"""
        assert evaluation.evaluate(subject(layers=layers)).figures["log_loss"] == pytest.approx(
            evaluation.evaluate(subject()).figures["log_loss"], rel=1e-5)

    def test_scores_of_a_hinge_are_none(self, subject):
        layers = LAYERS.split("layer { name: 'loss'")[0] + "layer { name: 'h' type: 'HingeLoss' bottom: 'scores' bottom: 'label' top: 'h' }"
        figures = evaluation.evaluate(subject(layers=layers)).figures
        assert (figures["accuracy"], figures["log_loss"], figures["calibration"]) == (pytest.approx(0.8), None, None)

    def test_the_surest_mistakes_come_first_with_what_the_net_saw(self, subject):
        figures = evaluation.evaluate(subject(), worst=1).figures
        assert [(one["file"], one["name"], one["predicted_name"]) for one in figures["mistakes"]] == [("blue/9.png", "green", "blue")]

    def test_pictures_are_without_mean_and_scale(self, subject):
        opened = subject(batch=10, transform="scale: 0.02 mean_value: 90 mean_value: 80 mean_value: 70")
        opened.net.forward()
        assert (opened.picture(4) == image(1, 140)[::-1].transpose(1, 2, 0)).all()


class TestMasks:
    def test_images_of_several_sizes_with_void_pixels(self, write, tmp_path):
        """The answer is each pixel's brightest channel."""
        images = pytest.importorskip("PIL.Image")
        random = np.random.default_rng(5)
        lines, shown = [], []
        for k, (height, width) in enumerate([(6, 9), (8, 5), (7, 7)]):
            classes, mask = random.integers(3, size=(2, height, width)).astype(np.uint8)
            mask[0] = 255
            pixels = np.full((height, width, 3), 10, np.uint8)
            np.put_along_axis(pixels, 2 - classes[..., None], 200, axis=2)  # red, green and blue
            images.fromarray(pixels).save(tmp_path / f"{k}.png")
            images.fromarray(mask).save(tmp_path / f"{k}_mask.png")
            lines.append(f"{k}.png {k}_mask.png\n")
            shown.append((mask, classes))
        (tmp_path / "list.txt").write_text("".join(lines))
        done = evaluation.evaluate(evaluation.open_subject(write(f"""
            layer {{ name: 'data' type: 'ImageSegData' top: 'data' top: 'label' image_data_param {{ source: '{tmp_path}/list.txt'
                     root_folder: '{tmp_path}/' batch_size: 1 shuffle: true label_type: PIXEL }} }}
            layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'loss' loss_param {{ ignore_label: 255 }} }}
            """), labels=NAMES))
        expected = sum(evaluation.confusion_of_masks(mask, classes, 3, ignored=255) for mask, classes in shown)
        assert done.figures["confusion_matrix"] == expected.tolist() and done.figures["records"] == 3
        each = {f"{k}.png": evaluation.score_masks(evaluation.confusion_of_masks(mask, classes, 3, ignored=255))["mean_iou"]
                for k, (mask, classes) in enumerate(shown)}
        worst = done.figures["mistakes"]
        assert [one["mean_iou"] for one in worst] == pytest.approx(sorted(each.values()))
        assert all(one["mean_iou"] == pytest.approx(each[one["file"]]) for one in worst)
        assert done.page().count("<img") == 3


class TestPages:
    @pytest.fixture(autouse=True)
    def packages(self):
        pytest.importorskip("jinja2", reason="Jinja2 is not installed (python3-jinja2)")
        pytest.importorskip("PIL")

    def test_nothing_comes_from_elsewhere_and_names_are_text(self, subject):
        names = [f"<b>{k}</b>&\"'.png" for k in range(10)]
        page = evaluation.evaluate(subject(names=names, labels=["<script>x</script>", "<b>", "a\"b"], title="<i>m</i>")).page()
        assert "http:" not in page and "https:" not in page and "//" not in re.sub(r"data:image/\w+;base64,[\w+/=]+|// Sorts.*", "", page)
        for tag in ("<b>8", "<script>x", "<i>m", "<b></td>"):
            assert tag not in page
        assert "&lt;b&gt;9&lt;/b&gt;" in page and "&lt;script&gt;x" in page and "&lt;i&gt;m" in page
        assert page.count("data:image/png;base64,") == 2
        for picture in re.findall(r"<img [^>]*>", page):
            assert 'alt="' in picture
        assert len(re.findall("<table", page)) == len(re.findall("<caption>", page)) > 3
        assert 'name="viewport"' in page and "prefers-color-scheme: dark" in page

    def test_without_mistakes(self, subject):
        page = evaluation.evaluate(subject(records=[record(k) for k in range(3)])).page()
        assert "Surest mistakes" not in page and "100.0%" in page

    def test_of_data_that_is_no_image(self, write, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "rows.h5", "w") as file:
            file["data"], file["label"] = np.eye(3, dtype=np.float32), np.array([0, 1, 1], np.float32)
        (tmp_path / "list.txt").write_text(f"{tmp_path}/rows.h5\n")
        page = evaluation.evaluate(evaluation.open_subject(write(f"""layer {{ name: 'data' type: 'HDF5Data' top: 'data' top: 'label'
            hdf5_data_param {{ source: '{tmp_path}/list.txt' batch_size: 2 }} }}
            layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'loss' }}"""))).page()
        assert "the net's input is not an image" in page.replace("&#39;", "'")


def test_masks_cover_a_grey_image_with_the_colours_of_classes():
    pixels = np.full((1, 3, 3), (200, 0, 0), np.uint8)
    covered = pictures.with_mask(pixels, np.array([[0, 1, 255]]), [(0, 0, 0), (0, 0, 100)], share=0.5)
    assert covered.tolist() == [[[30, 30, 30], [30, 30, 80], [200, 0, 0]]]


class TestFiles:
    def test_only_files_of_its_own_are_replaced(self, tmp_path):
        file = tmp_path / "evaluation.json"
        outputs.require_own(str(file), "--metrics")
        write_whole(str(file), outputs.json_text({"accuracy": 1}))
        outputs.require_own(str(file), "--metrics")
        assert json.loads(file.read_text())["accuracy"] == 1
        file.write_text('{"accuracy": 1}')
        with pytest.raises(caffe.InvalidArgument, match="evaluation.json: already exists, .* give another --metrics, or remove it"):
            outputs.require_own(str(file), "--metrics")
        with pytest.raises(caffe.IoError, match="there is no folder"):
            outputs.require_own(str(tmp_path / "none" / "x.html"), "--page")
        assert [entry.name for entry in tmp_path.iterdir()] == ["evaluation.json"]

    def test_a_link_to_nothing_is_not_followed(self, tmp_path):
        (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(caffe.Error, match="page.html"):
            outputs.require_own(str(tmp_path / "page.html"), "--page")

    def test_nothing_half_written_stays(self, tmp_path):
        with pytest.raises(UnicodeEncodeError):
            write_whole(str(tmp_path / "x.json"), "\ud800")
        assert list(tmp_path.iterdir()) == []


def test_names_of_records():
    assert display_name("00000012_red/3.png") == "red/3.png" and display_name("12: a b.png") == "a b.png"
    assert display_name("00000012") == "00000012" and display_name("00000012_") == "00000012_"
    assert display_name("00000001_a\udcff\x1b.png") == "a\\udcff\\x1b.png"
