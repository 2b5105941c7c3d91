"""Statements of docs/security.md that no other test checks."""
import os
import random
import shutil
import stat
import struct
import subprocess
import zlib

import pytest


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize("mask, folder_mode, file_mode", [(0o002, "0o775", "0o664"), (0o027, "0o750", "0o640")])
def test_databases_have_the_modes_that_the_umask_leaves(mask, folder_mode, file_mode, tmp_path, database, program, run):
    done = run(program("convert_mnist_data"), tmp_path / "images", tmp_path / "labels", tmp_path / "shared",
               preexec_fn=lambda: os.umask(mask))
    assert done.returncode == 0, done.stderr
    assert mode(tmp_path / "shared") == folder_mode
    assert {mode(file) for file in (tmp_path / "shared").iterdir()} == {file_mode}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can become another user")
def test_others_can_read_a_database(tmp_path, database, program, run, solver):
    """Once its folder could not be entered: it had mode 0744, like BVLC's."""
    folder = tmp_path / "readable"
    done = run(program("convert_mnist_data"), tmp_path / "images", tmp_path / "labels", folder,
               preexec_fn=lambda: os.umask(0o022))
    assert done.returncode == 0, done.stderr
    net = (tmp_path / "net.prototxt").read_text().replace(str(database), "db")
    place = f"/var/tmp/cortado_{os.getpid()}"  # others cannot enter pytest's own folder
    try:
        os.mkdir(place, 0o755)
        subprocess.run(["cp", "-a", folder, f"{place}/db"], check=True)
        with open(f"{place}/net.prototxt", "w") as file:
            file.write(net)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("caffe"), "time",
                   "--model=net.prototxt", "--iterations=1"]
        done = subprocess.run(command, cwd=place, text=True, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    finally:
        shutil.rmtree(place)


def test_snapshots_have_the_mode_that_the_umask_leaves(tmp_path, program, run, solver):
    for format in ("BINARYPROTO", "HDF5"):
        file = solver(format, max_iter=2, snapshot_format=format)
        done = run(program("caffe"), "train", f"--solver={file}", preexec_fn=lambda: os.umask(0o027))
        assert done.returncode == 0, done.stderr[-2000:]
    assert {mode(file) for file in tmp_path.glob("*_iter_2.*")} == {"0o640"}


@pytest.mark.parametrize("field", ['name: "net\\nE1121 22:00:00 FAKE"', 'layer { name: "a\\033[31m" type: "Input" top: "x" }',
                                   'layer { name: "a" type: "Input" top: "x\\r" }'])
def test_names_with_control_characters_do_not_reach_the_log(field, tmp_path, program, run):
    (tmp_path / "net.prototxt").write_text(
        field + ' layer { name: "y" type: "Input" top: "y" input_param { shape { dim: 1 } } }')
    done = run(program("caffe"), "plan", f"--model={tmp_path}/net.prototxt")
    assert done.returncode == 1
    assert "control characters" in done.stderr.splitlines()[-1]
    assert "\033" not in done.stderr and "\nE1121 22:00:00 FAKE" not in done.stderr and "\r" not in done.stderr


@pytest.mark.parametrize("field", ['snapshot_prefix: "%s"', 'lr_policy: "%s"', 'type: "%s"', 'weights: "%s"', 'plugin: "%s"',
                                   'regularization_type: "%s"', 'net_param { layer { data_param { source: "%s" } } }'])
def test_texts_of_solvers_do_not_forge_lines(field, tmp_path, program, run):
    """Whole lines of the log could once be forged."""
    (tmp_path / "solver.prototxt").write_text(field % "\\n\\033[31mI1122 FAKE")
    done = run(program("caffe"), "train", f"--solver={tmp_path}/solver.prototxt")
    assert done.returncode == 1
    assert "control characters" in done.stderr
    assert "\033" not in done.stderr and not [line for line in done.stderr.splitlines() if line.startswith("I1122 FAKE")]


def test_data_does_not_steer_the_terminal(tmp_path, program, run):
    (tmp_path / "list").write_bytes(b"a\r\033[2K\033[31mI1122 FAKE\302\233.jpg 0\n")
    (tmp_path / "net.prototxt").write_text(IMAGES.replace('"list"', f'"{tmp_path}/list"'))
    (tmp_path / "images" / "c\033[31m\nFAKE").mkdir(parents=True)
    listed = run(program("caffe"), "time", f"--model={tmp_path}/net.prototxt", "--iterations=1")
    imported = run(program("caffe"), "data", "import", f"{tmp_path}/images", f"{tmp_path}/db")
    unknown = run(program("caffe"), "train\033[31m")
    for done in (listed, imported, unknown):
        assert done.returncode != 0 and done.stderr
        assert not set("\033\r\x9b") & set(done.stdout + done.stderr), done.stderr
    assert "rename it" in imported.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can make links of other users")
@pytest.mark.parametrize("name", ["s_iter_2.caffemodel", "run/metrics.jsonl"])
def test_links_of_other_users_are_not_followed(name, tmp_path, program, run, solver):
    """Names of snapshots are predictable."""
    file = solver("s", max_iter=2)
    victim, link = tmp_path / "victim", tmp_path / name
    victim.write_text("precious")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(victim)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    done = run(program("caffe"), "train", f"--solver={file}", f"--run_dir={tmp_path}/run")
    assert done.returncode == 1 and "is a link of another user" in done.stderr
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["s_iter_2.solverstate", "s_iter_2.caffemodel"])
def test_a_pipe_that_nobody_reads_does_not_stop_a_run(name, tmp_path, program, run, solver):
    file = solver("s", max_iter=2)
    os.mkfifo(tmp_path / name)
    done = run(program("caffe"), "train", f"--solver={file}", timeout=60)
    assert done.returncode == 1 and name in done.stderr


@pytest.mark.parametrize("arguments", [["train", "--solver=pipe"], ["plan", "--model=pipe"], ["test", "--model=net", "--weights=pipe"],
                                       ["test", "--model=net", "--weights=pipe.h5"], ["train", "--solver=s", "--snapshot=pipe"],
                                       ["time", "--model=lists"]])
def test_issue_a_pipe_that_nobody_writes_to_is_not_waited_for(arguments, tmp_path, program):
    """The program once waited for it for ever, without a message."""
    for name in ("pipe", "pipe.h5"):
        os.mkfifo(tmp_path / name)
    net = """layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }"""
    (tmp_path / "net").write_text(net)
    (tmp_path / "lists").write_text(IMAGES.replace('"list"', '"pipe"'))
    (tmp_path / "s").write_text('net: "net" base_lr: 0.1 lr_policy: "fixed" max_iter: 2 snapshot_after_train: false')
    done = subprocess.run([program("caffe"), *arguments], cwd=tmp_path, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and "pipe" in done.stderr and "is a pipe" in done.stderr, done.stderr


@pytest.mark.parametrize("arguments", [["caffe", "plan", "net", "--plugin=./pipe.so"], ["cortado_run", "pipe"],
                                       ["convert_mnist_data", "pipe", "pipe", "db"],
                                       ["convert_annoset", "--anno_type=detection", "--label_map_file=map", "./", "list", "db"]])
def test_programs_do_not_wait_for_pipes(arguments, tmp_path, program):
    for name in ("pipe", "pipe.so", "pipe.xml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "net").write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 } } }')
    (tmp_path / "map").write_text('item { name: "none" label: 0 display_name: "none" }')
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "list").write_text("a.png pipe.xml\n")
    done = subprocess.run([program(arguments[0]), *arguments[1:]], cwd=tmp_path, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and "pipe" in done.stderr, done.stderr


def test_a_folder_of_the_user_is_not_taken_for_a_leftover(tmp_path, program, run):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "a.png").write_bytes(png())
    (tmp_path / "db.partial").mkdir()
    thesis = tmp_path / "db.partial" / "thesis.txt"
    thesis.write_text("precious")
    done = run(program("caffe"), "data", "import", f"{tmp_path}/images", f"{tmp_path}/db")
    assert done.returncode == 1 and "db.partial" in done.stderr
    assert thesis.read_text() == "precious"


def png():
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress(b"".join(bytes(1 + 3 * 8) for _ in range(8)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows)
            + chunk(b"IEND", b""))


IMAGES = """layer { name: "d" type: "ImageData" top: "data" top: "label" image_data_param { source: "list" batch_size: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }"""


def test_modules_are_loaded_from_beside_the_library_alone(tmp_path, program, run):
    """Not from the current folder, and not from a folder in LD_LIBRARY_PATH."""
    (tmp_path / "libcaffe_image_formats.so").write_bytes(b"no library")
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "list").write_text("a.png 0\n")
    (tmp_path / "net.prototxt").write_text(IMAGES)
    done = subprocess.run([program("caffe"), "time", "--model=net.prototxt", "--iterations=1"], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def trained(tmp_path, program, run, solver):
    """The files of a run in both formats, and of a mean."""
    for format in ("BINARYPROTO", "HDF5"):
        done = run(program("caffe"), "train", f"--solver={solver(format, max_iter=3, snapshot_format=format)}")
        assert done.returncode == 0, done.stderr[-2000:]
    return tmp_path


KINDS = {"caffemodel": "BINARYPROTO_iter_3.caffemodel", "solverstate": "BINARYPROTO_iter_3.solverstate",
         "caffemodel.h5": "HDF5_iter_3.caffemodel.h5", "solverstate.h5": "HDF5_iter_3.solverstate.h5"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_at_worst_an_error_that_names_it(kind, trained, tmp_path, program, run, solver):
    whole = (trained / KINDS[kind]).read_bytes()
    chance = random.Random(kind)
    file = tmp_path / f"damaged.{kind}"
    flag = "--weights" if "caffemodel" in kind else "--snapshot"
    short = solver("short", max_iter=4, snapshot_after_train="false")
    for _ in range(60 if os.environ.get("CAFFE_SLOW_TESTS") else 12):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 4, 16])):
            data[chance.randrange(chance.choice([64, 1024, len(data)]) % len(data) or 1)] = chance.randrange(256)
        if chance.random() < 0.25:
            data = data[:chance.randrange(len(data))]
        file.write_bytes(data)
        done = run(program("caffe"), "train", f"--solver={short}", f"{flag}={file}", timeout=60)
        assert done.returncode in (0, 1), done.stderr[-2000:]
        assert done.returncode == 0 or f"damaged.{kind}" in done.stderr or "iter_3.caffemodel" in done.stderr or (
            "not a number" in done.stderr), done.stderr[-2000:]


def test_a_file_is_not_opened_for_writing_through_a_link_that_is_planted(tmp_path, database, program, run):
    """The link is planted in the folder in which a database is made."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("original")
    (tmp_path / "new.partial").symlink_to(victim)
    done = run(program("convert_mnist_data"), tmp_path / "images", tmp_path / "labels", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert [one.name for one in victim.iterdir()] == ["kept"] and not (tmp_path / "new").is_symlink()
