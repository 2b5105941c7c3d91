"""tools/extra/resize_and_crop_images.py."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tqdm")
Image = pytest.importorskip("PIL.Image")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "extra" / "resize_and_crop_images.py"


def run(tmp_path, *arguments, status=0):
    done = subprocess.run([sys.executable, SCRIPT, f"--input_folder={tmp_path / 'from'}",
                           f"--output_folder={tmp_path / 'to'}", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(name="images")
def write_images(tmp_path):
    (tmp_path / "from" / "a").mkdir(parents=True)
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = (200, 100, 50)  # the centre square
    Image.fromarray(wide).save(tmp_path / "from" / "a" / "wide.png")
    Image.fromarray(np.full((50, 30), 77, np.uint8)).save(tmp_path / "from" / "grey.jpg")
    return tmp_path


def test_the_centre_is_kept(images):
    done = run(images, "--output_side_length=10", "--workers=1")
    assert "Wrote 2 images" in done.stdout and "%" not in done.stderr  # no progress bar in a log
    wide = np.asarray(Image.open(images / "to" / "a" / "wide.png"))
    assert wide.shape == (10, 10, 3)
    assert (np.abs(wide[2:-2, 2:-2].astype(int) - (200, 100, 50)) <= 1).all()  # the filter reaches beyond the edge
    grey = np.asarray(Image.open(images / "to" / "grey.jpg"))
    assert grey.shape == (10, 10) and np.abs(grey.astype(int) - 77).max() <= 2


def test_lists_and_broken_images(images):
    (images / "from" / "torn.jpg").write_bytes(b"\xff\xd8torn")
    (images / "list").write_text("grey.jpg 3\ntorn.jpg 4\n")
    done = run(images, f"--file={images / 'list'}", status=1)
    assert "torn.jpg" in done.stderr and "Wrote 1 image to" in done.stdout
    assert Image.open(images / "to" / "grey.jpg").size == (256, 256)
    assert not (images / "to" / "a").exists() and not (images / "to" / "torn.jpg").exists()


def test_an_empty_folder(tmp_path):
    (tmp_path / "from").mkdir()
    assert "no images" in run(tmp_path, status=1).stderr
