"""Nets and batches that do not fit into memory: one message that says what to lower."""
import resource

import pytest

# 4 GiB of activations; batches of 1.1 GiB, with several read ahead.
NET = """layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 1024 dim: 1024 dim: 1024 } } }"""
BATCHES = """layer { name: "data" type: "Data" top: "data" data_param { source: "%s" batch_size: 2000000 prefetch: 8 } }"""
LOSS = """layer { name: "loss" type: "Reduction" bottom: "data" top: "loss" loss_weight: 1 }"""
LIMIT = 3 << 30  # address space in bytes


@pytest.mark.parametrize("layer", [NET, BATCHES], ids=["activations", "batches"])
def test_is_one_clear_message(layer, tmp_path, database, program, run):
    (tmp_path / "net.prototxt").write_text((layer % database if "%s" in layer else layer) + LOSS)
    done = run(program("caffe"), "time", f"--model={tmp_path}/net.prototxt",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))
    assert done.returncode == 1, done.stderr
    assert "memory" in done.stderr.splitlines()[-1] and "lower batch_size" in done.stderr.splitlines()[-1]
