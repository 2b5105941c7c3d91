"""What pages make of commands and of what they say."""
import pytest

from caffe.studio.commands import _complaint
from caffe.studio.pages.run import resume_words


@pytest.mark.parametrize("text, said", [
    ("W1128 10:00:00.000000 1 net.cpp:1] first\ncaffe plan: net.prototxt:3:1: no field 'num_outptu'\n  num_outptu: 3\n  ^\n",
     "net.prototxt:3:1: no field 'num_outptu'\n  num_outptu: 3\n  ^"),
    ("E1128 10:00:00.000000 1 a.cpp:1] x.png: no image\ncaffe classify: 1 of the images could not be read; see above",
     "x.png: no image\n1 of the images could not be read; see above"),
    ("Traceback\n  line\nValueError: bad", "ValueError: bad"), ("", "")])
def test_messages(text, said):
    assert _complaint(text) == said


def test_how_a_run_is_resumed(tmp_path):
    folder = tmp_path / "my model"
    folder.mkdir()
    (folder / "solver.prototxt").touch()
    words = lambda command, place=folder: resume_words({"command": command, "folder": str(place)})  # noqa: E731
    assert words("caffe train --solver=solver.prototxt") == ["train", "--solver=solver.prototxt", "--auto_resume"]
    for snapshot in ("--snapshot=x.solverstate", "-snapshot=x.solverstate", "--snapshot x.solverstate", "-snapshot x.solverstate"):
        assert words(f"caffe train --solver=s {snapshot} --gpu=0") == ["train", "--solver=s", "--gpu=0", "--auto_resume"]
    assert words("/opt/bin/caffe train --solver=s --snapshot_after=3 --auto_resume") == ["train", "--solver=s", "--snapshot_after=3", "--auto_resume"]
    (folder / "deploy.prototxt").touch()
    for named in ("'my model'", "'../there/my model/'", "'--solver=my model'"):
        assert words(f"caffe train --precision=bf16 {named}") == ["train", "--precision=bf16", ".", "--auto_resume"]
    for command in ("", "caffe", "caffe test --model=m", "/usr/bin/python3 train.py", "python3 train", "caffe train 'cut"):
        assert words(command) == []
