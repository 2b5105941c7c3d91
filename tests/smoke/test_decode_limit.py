"""Small files that claim gigabytes are refused before memory is allocated, with the file, the limit and the option."""
import resource
import struct
import zlib

import h5py
import lmdb
import numpy as np
import pytest

from caffe.proto import caffe_pb2

MEMORY = 3 << 30  # address space in bytes: the program itself needs less than 1 GiB

LOSS = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }
"""
IMAGES = """layer { name: "d" type: "ImageData" top: "data" top: "label"
  image_data_param { source: "%s" batch_size: 1 new_height: 8 new_width: 8 } }""" + LOSS
INPUT = """layer { name: "d" type: "DummyData" top: "data" dummy_data_param { shape { dim: 2 dim: 4 } } }""" + LOSS


@pytest.fixture(name="h5py")
def h5py_module():
    return pytest.importorskip("h5py")


@pytest.fixture
def limited(program, run, tmp_path):
    """Runs `caffe` with little memory."""
    def call(command, net, *flags, memory=MEMORY):
        model = []
        if net:
            (tmp_path / "net.prototxt").write_text(net)
            model = [f"--model={tmp_path}/net.prototxt", "--iterations=1"]
        return run(program("caffe"), command, *model, *flags,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
    return call


def assert_refused(done, *words):
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1, done.stderr[-2000:]
    for word in ("bytes of memory", "the limit is", "-max_decoded_mb", *words):
        assert word in last, done.stderr[-2000:]


def jpeg(side, frame=0xC0, scan_components=3):
    """A header for a square image of three colours, and 300 KB that are not an image."""
    segment = lambda marker, data: struct.pack(">BBH", 255, marker, 2 + len(data)) + data
    components = b"".join(bytes([number, 0x11, 0]) for number in (1, 2, 3))
    scan = b"".join(bytes([number, 0]) for number in (1, 2, 3)[:scan_components])
    return (b"\xff\xd8" + segment(0xDB, bytes(1) + bytes([1] * 64))
            + segment(frame, struct.pack(">BHHB", 8, side, side, 3) + components)
            + segment(0xDA, bytes([scan_components]) + scan + bytes([0, 63, 0])) + bytes(300000))


def png(side):
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 3 * side)) for _ in range(side)) + packer.flush()
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def bmp(side):
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 54, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(1000)


IMAGE_BOMBS = {"header.jpg": lambda: jpeg(65500), "progressive.jpg": lambda: jpeg(14000, frame=0xC2),
               "scans.jpg": lambda: jpeg(14000, scan_components=1), "zeros.png": lambda: png(20000),
               "header.bmp": lambda: bmp(30000), "header.ppm": lambda: b"P6 30000 30000 255\n" + bytes(1000)}


@pytest.mark.parametrize("name", IMAGE_BOMBS)
def test_images(name, limited, tmp_path):
    (tmp_path / name).write_bytes(IMAGE_BOMBS[name]())
    (tmp_path / "list").write_text(f"{tmp_path}/{name} 0\n")
    assert_refused(limited("time", IMAGES % f"{tmp_path}/list"), name)


def test_an_image_within_the_limit_is_decoded(limited, tmp_path):
    """Twelve megapixels of one colour are far more than 16 times the file, but below the limit."""
    (tmp_path / "plain.png").write_bytes(png(3500))
    (tmp_path / "list").write_text(f"{tmp_path}/plain.png 0\n")
    assert limited("time", IMAGES % f"{tmp_path}/list").returncode == 0
    assert_refused(limited("time", IMAGES % f"{tmp_path}/list", "-max_decoded_mb=30"), "plain.png", "30 MiB")


def test_plain_data_that_is_large_is_read(limited, tmp_path):
    """12 MB of pixels in a file of 12 MB: no bomb, for any limit."""
    (tmp_path / "large.ppm").write_bytes(b"P6 2000 2000 255\n" + bytes(12000000))
    (tmp_path / "list").write_text(f"{tmp_path}/large.ppm 0\n")
    assert limited("time", IMAGES % f"{tmp_path}/list", "-max_decoded_mb=1").returncode == 0


def hdf5_rows(h5py, tmp_path, shape, **options):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("data", shape, dtype="f4", **options)
    (tmp_path / "list").write_text(f"{tmp_path}/rows.h5\n")
    return 'layer { name: "d" type: "HDF5Data" top: "data" hdf5_data_param { source: "%s/list" batch_size: 2 } }' % (
        tmp_path) + LOSS


def test_hdf5_rows_without_values(h5py, limited, tmp_path):
    net = hdf5_rows(h5py, tmp_path, (1 << 20, 2047), chunks=(1 << 10, 2047))
    assert (tmp_path / "rows.h5").stat().st_size < 10000
    assert_refused(limited("time", net), "rows.h5", "'data'", str((1 << 20) * 2047 * 4))


def test_hdf5_chunks_that_are_larger_than_the_dataset(h5py, limited, tmp_path):
    net = hdf5_rows(h5py, tmp_path, (4, 4), maxshape=(None, None), chunks=(1 << 14, 1 << 15), compression="gzip")
    assert_refused(limited("time", net), "rows.h5", "'data'")


def test_hdf5_weights(h5py, limited, tmp_path):
    with h5py.File(tmp_path / "w.caffemodel.h5", "w") as file:
        file.create_dataset("data/ip/0", (1 << 15, 1 << 15), dtype="f4")
    assert_refused(limited("test", INPUT, f"--weights={tmp_path}/w.caffemodel.h5"), "w.caffemodel.h5", "data/ip/0")


def test_hdf5_states_of_many_datasets(h5py, limited, tmp_path, solver):
    """None of them is too large by itself."""
    with h5py.File(tmp_path / "run.solverstate.h5", "w") as file:
        file.create_dataset("iter", (1,), data=[3], dtype="i4")
        file.create_dataset("current_step", (1,), data=[0], dtype="i4")
        for number in range(8):
            file.create_dataset(f"history/{number}", (1 << 26,), dtype="f4")
    done = limited("train", None, f"--solver={solver('run', max_iter=10)}", f"--snapshot={tmp_path}/run.solverstate.h5")
    assert_refused(done, "run.solverstate.h5", "history/", "with the datasets before it")


def test_messages_of_empty_messages(limited, tmp_path):
    """Three bytes in the file become a layer with more than a thousand bytes in memory."""
    (tmp_path / "w.caffemodel").write_bytes(b"\xa2\x06\x00" * 4000000)
    assert_refused(limited("test", INPUT, f"--weights={tmp_path}/w.caffemodel"), "w.caffemodel", "NetParameter")


def test_messages_of_unknown_fields(limited, tmp_path, database):
    (tmp_path / "mean.binaryproto").write_bytes(b"\xf2\x07\x00" * 20000000)
    net = """layer { name: "d" type: "Data" top: "data" transform_param { mean_file: "%s/mean.binaryproto" }
      data_param { source: "%s" batch_size: 2 backend: LMDB } }""" % (tmp_path, database) + LOSS
    assert_refused(limited("time", net), "mean.binaryproto", "BlobProto")


def test_annotated_records(limited, tmp_path):
    record = caffe_pb2.AnnotatedDatum()
    record.datum.channels, record.datum.height, record.datum.width, record.datum.data = 1, 2, 2, bytes(4)
    with lmdb.open(str(tmp_path / "annotated"), map_size=1 << 28) as environment, environment.begin(write=True) as txn:
        txn.put(b"the record", record.SerializeToString() + b"\x1a\x00" * 10000000)
    net = """layer { name: "d" type: "AnnotatedData" top: "data" top: "label"
      data_param { source: "%s/annotated" batch_size: 1 backend: LMDB } }""" % tmp_path + LOSS
    assert_refused(limited("time", net, "-max_decoded_mb=200"), "the record", "AnnotatedDatum")


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_wrong_limits(value, limited, program, run):
    done = limited("time", INPUT, f"-max_decoded_mb={value}")
    assert done.returncode == 1 and "max_decoded_mb" in done.stderr.splitlines()[-1] and value in done.stderr
    done = run(program("compute_image_mean"), f"-max_decoded_mb={value}", "none")
    assert done.returncode == 1 and "max_decoded_mb" in done.stderr


def test_the_converters_have_the_option(program, run, tmp_path):
    (tmp_path / "zeros.png").write_bytes(png(3500))
    (tmp_path / "list").write_text("zeros.png 0\n")
    done = run(program("convert_imageset"), "-max_decoded_mb=30", f"{tmp_path}/", f"{tmp_path}/list", f"{tmp_path}/db")
    assert "zeros.png" in done.stderr and "the limit is 30 MiB" in done.stderr
    assert run(program("convert_imageset"), f"{tmp_path}/", f"{tmp_path}/list", f"{tmp_path}/whole").returncode == 0


def test_weights_as_h5py_compresses_them_are_read(h5py, limited, tmp_path):
    """Zeros are compressed to a thousandth of their size; below the limit this is not a bomb."""
    with h5py.File(tmp_path / "w.caffemodel.h5", "w") as file:
        file.create_dataset("data/ip/0", data=np.zeros((2, 4), "f4"), compression="gzip")
        file.create_dataset("data/ip/1", data=np.zeros((2,), "f4"))
    assert limited("test", INPUT, f"--weights={tmp_path}/w.caffemodel.h5").returncode == 0
