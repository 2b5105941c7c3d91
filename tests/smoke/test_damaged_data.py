"""Databases that were damaged before they are read cause an error that names them, and never a run that hangs."""
import os
import random
import re
import shutil
import subprocess

import pytest

PAGE = 4096
DATABASE = re.compile(r"data\.mdb|/damaged(: |/)")


def mutate(file, seed):
    """Changes a few bytes, mostly in the headers of pages and in their tables of records."""
    moments = random.Random(seed)
    data = bytearray(file.read_bytes())
    pages = len(data) // PAGE
    for _ in range(moments.choice([1, 2, 8])):
        page = moments.randrange(pages)
        within = moments.choice([moments.randrange(16), moments.randrange(128), moments.randrange(PAGE)])
        data[page * PAGE + within] = moments.choice([0, 1, 255, moments.randrange(256)])
    file.write_bytes(data)


def outcome_of(database, tmp_path, program, run, net):
    """Returns None, or a problem with the end of training on the damaged database."""
    (tmp_path / "damaged.prototxt").write_text(net)
    (tmp_path / "damaged_solver.prototxt").write_text(
        f'net: "{tmp_path}/damaged.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 45 snapshot_after_train: false')
    try:
        done = run(program("caffe"), "train", f"--solver={tmp_path}/damaged_solver.prototxt", timeout=300,
                   errors="replace")  # keys may contain any bytes
    except subprocess.TimeoutExpired:
        return "hangs"
    text = done.stderr
    if done.returncode == 0:  # only values that cannot be checked were damaged
        return None if "Optimization Done" in text else "ends without a word"
    names = DATABASE.search(text) is not None
    named = done.returncode == 1 and names and "InternalError" not in text and "src/caffe/" not in text
    return None if named else f"status {done.returncode}: {text[-600:]}"


@pytest.mark.parametrize("shuffle", ["true", "false"])
def test_damaged_pages(shuffle, tmp_path, program, run, database):
    """Each ends with an error that names the database; damaged values may be used in training."""
    net = """layer { name: "data" type: "Data" top: "data" top: "label"
        data_param { source: "%s/damaged" batch_size: 16 backend: LMDB shuffle: %s } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""" % (tmp_path, shuffle)
    wrong = {}
    for seed in range(175 if os.environ.get("CAFFE_SLOW_TESTS") else 30):
        shutil.rmtree(tmp_path / "damaged", ignore_errors=True)
        shutil.copytree(database, tmp_path / "damaged")
        mutate(tmp_path / "damaged" / "data.mdb", f"{shuffle} {seed}")
        problem = outcome_of(tmp_path / "damaged", tmp_path, program, run, net)
        if problem:
            wrong[seed] = problem
    assert not wrong
