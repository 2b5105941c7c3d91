"""The completions that bash offers after it has read `caffe completion bash`."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAFFE = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin" / "caffe"

pytestmark = pytest.mark.skipif(not CAFFE.exists(), reason=f"{CAFFE} is not built")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for name in ("net.prototxt", "solver.prototxt", "a b.prototxt", "w.caffemodel", "w.caffemodel.h5", "s.solverstate", "notes.txt"):
        (folder / name).touch()
    (folder / "models").mkdir()
    return folder


def complete(folder, *words):
    """The completions of the last word; bash splits a line at each '='."""
    script = f"source <({CAFFE} completion bash)\n" + r"""
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _caffe; printf '%s\n' "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script, "bash", "caffe", *words], cwd=folder, text=True, check=True, stdout=subprocess.PIPE)
    return sorted(done.stdout.split("\n")[:-1]) if done.stdout.strip() else []


PROTOTXTS = ["a b.prototxt", "models", "net.prototxt", "solver.prototxt"]


def test_commands(folder):
    assert complete(folder, "tr") == ["train"]
    assert {"train", "test", "time", "plan", "help"} <= set(complete(folder, ""))
    assert complete(folder, "help", "pl") == ["plan"]
    assert complete(folder, "completion", "") == ["bash", "zsh"]


def test_a_group_of_commands(folder):
    assert complete(folder, "da")[0] == "data"
    assert complete(folder, "data", "") == ["bench", "export", "head", "import", "import-text", "stat", "verify"]
    assert complete(folder, "data", "import", "--gr") == ["--gray"]
    assert "models" in complete(folder, "data", "import", "")


def test_flags_are_those_of_the_command(folder):
    assert complete(folder, "train", "--sol") == ["--solver="]
    assert complete(folder, "train", "-sol") == ["-solver="]
    assert complete(folder, "plan", "--js") == ["--json"]
    assert complete(folder, "train", "--iter") == []
    assert complete(folder, "train", "solver.prototxt", "--wei") == ["--weights="]


def test_two_words_name_a_command(folder):
    assert complete(folder, "data", "im") == ["import", "import-text"]
    assert complete(folder, "data", "import", "--re") == ["--resize="]
    assert complete(folder, "data", "import", "net") == ["net.prototxt"]


def test_every_flag_of_help_is_completed(folder):
    for command in complete(folder, ""):
        text = subprocess.run([CAFFE, "help", command], text=True, check=True, stdout=subprocess.PIPE).stdout
        flags = [line.split()[0].split("=")[0] for line in text.split("\n") if line.startswith("  --")]
        assert set(flags) <= {flag.rstrip("=") for flag in complete(folder, command, "--")}, command


def test_files(folder):
    assert complete(folder, "train", "") == PROTOTXTS
    assert complete(folder, "train", "--solver", "=", "s") == ["solver.prototxt"]
    assert complete(folder, "train", "--solver", "=") == PROTOTXTS
    assert complete(folder, "train", "-solver", "s") == ["solver.prototxt"]
    assert complete(folder, "train", "--solver=s") == ["--solver=solver.prototxt"]  # as in zsh
    assert complete(folder, "test", "net.prototxt", "--weights", "w") == ["w.caffemodel", "w.caffemodel.h5"]
    assert complete(folder, "train", "--snapshot", "=", "") == ["models", "s.solverstate"]


def test_values(folder):
    assert complete(folder, "time", "--phase", "=", "T") == ["TEST", "TRAIN"]
    assert complete(folder, "time", "--explain", "n") == ["net.prototxt"]
    assert complete(folder, "plan", "-precision", "b") == ["bf16"]
    assert "Convolution" in complete(folder, "layers", "Conv")


def test_zsh_can_read_its_script(folder):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    script = f"autoload -U compinit; compinit -D; source <({CAFFE} completion zsh); print $_comps[caffe]"
    done = subprocess.run(["zsh", "-f", "-c", script], cwd=folder, text=True, check=True, stdout=subprocess.PIPE)
    assert "_caffe" in done.stdout


def test_other_shells_are_refused():
    done = subprocess.run([CAFFE, "completion", "fish"], text=True, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "give bash or zsh" in done.stderr
