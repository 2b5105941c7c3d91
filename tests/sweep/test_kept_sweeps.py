"""Sweeps that earlier versions have written, in tests/kept."""
import json
import pathlib
import shutil

import pytest
from test_sweep import sweep

KEPT = sorted((pathlib.Path(__file__).parent.parent / "kept").glob("*/sweep"))


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.parent.name)
def test_they_are_continued(folder, tmp_path):
    shutil.copytree(folder.parent, tmp_path / "kept")
    assert sweep(str(tmp_path / "kept" / "sweep"), "--resume", "--trials=3") == 0
    assert "trial_id" in json.loads((tmp_path / "kept" / "sweep" / "journal.log").read_text().splitlines()[-1])
    assert (tmp_path / "kept" / "sweep" / "0002" / "run" / "metrics.jsonl").exists()
