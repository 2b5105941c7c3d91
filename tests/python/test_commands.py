"""Exit statuses of commands written in Python, and the files that they refuse to write."""
import os
import subprocess
import sys

import caffe
import pytest
from caffe import _output


@pytest.mark.parametrize("work, status, said", [
    ("pass", 0, ""),
    ("raise caffe.InvalidArgument('x.png: is not an image')", 1, "caffe new: x.png: is not an image\n"),
    ("open('/none/x')", 1, "caffe new: /none/x: No such file or directory\n"),
    ("open(b'/none/caf\\xe9.partial', 'w')", 1, "caffe new: /none/caf\\udce9: No such file or directory\n"),
    ("raise KeyboardInterrupt", -2, "caffe new: interrupted\n"),
    ("raise BrokenPipeError", -13, "")])
def test_ends(work, status, said):
    program = f"import sys, caffe\nfrom caffe._output import run_command\ndef work():\n  {work}\nsys.exit(run_command('new', work))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(caffe.__path__[0]) + "/..", "GLOG_minloglevel": "2"})
    assert (done.returncode, done.stderr) == (status, said)


def test_errors_of_other_types_end_in_a_line_only_where_a_command_says_so(capsys):
    def wrong():
        raise ValueError("--shape is x")
    assert _output.run_command("import", wrong, also=(ValueError,)) == 1
    assert capsys.readouterr().err == "caffe import: --shape is x\n"
    with pytest.raises(ValueError):
        _output.run_command("new", wrong)


def test_a_file_that_is_read_is_not_written(tmp_path):
    (tmp_path / "model").write_text("")
    (tmp_path / "link").symlink_to("model")
    with pytest.raises(caffe.InvalidArgument, match="link: would be written over .*model, which is read; give another --output"):
        _output.require_other(tmp_path / "link", "", None, tmp_path / "model")
    _output.require_other(tmp_path / "new", tmp_path / "model")


def test_a_folder_that_takes_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(caffe.IoError, match="page.html: no file can be made in the folder .*no permission to write"):
        _output.require_place(tmp_path / "page.html")


def test_a_killed_process_blocks_no_file(tmp_path):
    """A process with the number of ours has left its unfinished file."""
    stale = tmp_path / f".model.{os.getpid()}.partial"
    stale.write_text("half")
    (tmp_path / "model").write_text("old")
    (tmp_path / "model").chmod(0o640)
    for name in ("model", "new"):
        _output.write_whole(str(tmp_path / name), "whole")
        assert (tmp_path / name).read_text() == "whole"
    mask = os.umask(0)
    os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("model", "new")] == [0o640, 0o666 & ~mask]
    assert stale.read_text() == "half" and len(list(tmp_path.iterdir())) == 3


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(caffe.IoError, match="folder: cannot be written: Is a directory"):
        _output.write_whole(str(tmp_path / "folder"), "whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
