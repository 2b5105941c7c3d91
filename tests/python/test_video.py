"""VideoData: a video as a net's data."""
import io
import struct

import numpy as np
import pytest
from PIL import Image

import caffe


def chunk(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def video(path, colours, width=32, height=16):
    """Writes an AVI of JPEG frames, each of one colour (blue, green, red)."""
    frames = []
    for blue, green, red in colours:
        file = io.BytesIO()
        Image.new("RGB", (width, height), (red, green, blue)).save(file, "JPEG", quality=95)
        frames.append(chunk(b"00dc", file.getvalue()))
    count, largest = len(frames), max(map(len, frames))
    main = struct.pack("<14I", 40000, largest * 25, 0, 0x10, count, 0, 1, largest, width, height, 0, 0, 0, 0)
    stream = b"vidsMJPG" + struct.pack("<10I4H", 0, 0, 0, 1, 25, 0, count, largest, 0xffffffff, 0, 0, 0, width, height)
    picture = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    header = b"hdrl" + chunk(b"avih", main) + chunk(
        b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", picture))
    index, at = b"", 4
    for frame in frames:
        index += b"00dc" + struct.pack("<3I", 0x10, at, struct.unpack("<I", frame[4:8])[0])
        at += len(frame)
    body = b"AVI " + chunk(b"LIST", header) + chunk(b"LIST", b"movi" + b"".join(frames)) + chunk(b"idx1", index)
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)


COLOURS = [(20 + 40 * i, 60, 220 - 40 * i) for i in range(5)]
NET = """layer {{ name: "video" type: "VideoData" top: "data" top: "label"
  video_data_param {{ video_type: VIDEO video_file: "{file}" skip_frames: {skip} }}
  data_param {{ batch_size: 2 }} transform_param {{ {transform} }} }}"""


def open_video(tmp_path, write, skip=0, transform=""):
    path = tmp_path / "video.avi"
    video(path, COLOURS)
    try:
        return caffe.Net(write(NET.format(file=path, skip=skip, transform=transform)), caffe.TEST)
    except caffe.Error as error:
        if "videoio" in str(error):
            pytest.skip("built without OpenCV's videoio (scripts/install_dependencies.sh video)")
        raise


@pytest.mark.parametrize("skip, shown", [(0, [0, 1, 2, 3, 4, 0, 1, 2]), (1, [0, 2, 4, 0, 2, 4])])
def test_frames_come_in_order_and_start_again(tmp_path, write, skip, shown):
    net = open_video(tmp_path, write, skip)
    seen = []
    for _ in range(len(shown) // 2):
        net.forward()
        assert net.blobs["data"].data.shape == (2, 3, 16, 32)
        assert (net.blobs["label"].data == 0).all()
        seen += [frame.reshape(3, -1).mean(1) for frame in net.blobs["data"].data]
    np.testing.assert_allclose(seen, [COLOURS[i] for i in shown], atol=4)


def test_transform_applies(tmp_path, write):
    net = open_video(tmp_path, write, transform="crop_size: 8 scale: 0.5 mean_value: 10")
    net.forward()
    assert net.blobs["data"].data.shape == (2, 3, 8, 8)
    np.testing.assert_allclose(net.blobs["data"].data[0].reshape(3, -1).mean(1), (np.array(COLOURS[0]) - 10) / 2, atol=2)


def test_missing_video_is_named(tmp_path, write):
    open_video(tmp_path, write)  # skips the test without the library
    absent = tmp_path / "absent.avi"
    with pytest.raises(caffe.Error, match="absent.avi: cannot be opened as a video"):
        caffe.Net(write(NET.format(file=absent, skip=0, transform="")), caffe.TEST)
    broken = tmp_path / "broken.avi"
    broken.write_bytes(b"RIFF no video at all")
    with pytest.raises(caffe.Error, match="broken.avi: cannot be opened as a video"):
        caffe.Net(write(NET.format(file=broken, skip=0, transform="")), caffe.TEST)


def test_missing_camera_is_named(tmp_path, write):
    open_video(tmp_path, write)  # skips the test without the library
    with pytest.raises(caffe.Error, match="camera 63 cannot be opened"):
        caffe.Net(write('layer { name: "eye" type: "VideoData" top: "data" video_data_param { device_id: 63 } '
                        "data_param { batch_size: 1 } }"), caffe.TEST)


@pytest.mark.parametrize("option, error", [("shuffle: true", "shuffle or cache"), ("cache: true", "shuffle or cache"),
                                           ("more { source: 'other.avi' }", "reads one video"), ("weight: 2", "reads one video")])
def test_options_of_databases_are_refused(tmp_path, write, option, error):
    video(tmp_path / "video.avi", COLOURS)
    text = NET.format(file=tmp_path / "video.avi", skip=0, transform="").replace("batch_size: 2", f"batch_size: 2 {option}")
    with pytest.raises(caffe.Error, match=error):
        caffe.Net(write(text), caffe.TRAIN)


def test_video_needs_a_name(write):
    with pytest.raises(caffe.Error, match="video_file"):
        caffe.Net(write('layer { name: "video" type: "VideoData" top: "data" video_data_param { video_type: VIDEO } '
                        "data_param { batch_size: 1 } }"), caffe.TEST)
