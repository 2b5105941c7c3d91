"""A separate repository with scripts/run_proofs.py and the files that it needs, whose compiler is a stand-in."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ("proofs.py", "process_groups.py", "run_proofs.py", "run_cpp_tests.py", "run_pytest.py", "build_preset.py",
           "common.sh")
NINJA = """#!/bin/sh
case "$*" in
*query*) printf 'all:\\n  input: phony\\n    bin/quick_test\\n    bin/deep_test\\n  outputs:\\n' ;;
*) echo "$@" >>ninja.log ;;
esac
"""
TABLE = """
[[proof]]
name = "quick"
part = "gate"
minutes = 1
folders = ["src/caffe/net", "scripts"]
python = ["tests/quick/test_*.py"]
"""


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in SCRIPTS:
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    programs = tmp_path / "build" / "programs"
    programs.mkdir(parents=True)
    for name, text in (("ninja", NINJA), ("cmake", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    write(tmp_path, "build/cpu-release/python/caffe/__init__.py", "")
    write(tmp_path, ".gitignore", "build\n__pycache__\n*.log\nseen\n")
    write(tmp_path, "pyproject.toml", "[tool.pytest.ini_options]\n")
    write(tmp_path, "src/caffe/net/net.cpp", "")
    write(tmp_path, "tests/proofs.toml", TABLE)
    write(tmp_path, "tests/quick/test_one.py", "def test_passes():\n    pass\n")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


def write(tree, path, text):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def environment_of(tree, **more):
    """The environment without git's variables: in hooks and `git rebase -x` some of them name the contributor's own repository."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("GIT_") and name != "CMAKE_BUILD_PARALLEL_LEVEL"}
    return {**kept, "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": f"{tree / 'build' / 'programs'}:{os.environ['PATH']}",
            "PYTHON": sys.executable, **more}


def git(tree, *command):
    return subprocess.run(["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b", *command], check=True, text=True,
                          capture_output=True, env=environment_of(tree)).stdout.strip()


def commit(tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "all")
    return git(tree, "rev-parse", "HEAD")


def command_of(tree, *options):
    return [sys.executable, tree / "scripts" / "run_proofs.py", *options]


def run(tree, *options, **environment):
    done = subprocess.run(command_of(tree, *options), cwd=tree, env=environment_of(tree, **environment), check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def deep(name, folder, minutes=4, **fields):
    """A row of a table for a proof of the depth that runs a command."""
    fields = {"name": name, "part": "depth", "minutes": minutes, "folders": [folder], "command": ["true"], **fields}
    return "\n[[proof]]\n" + "".join(f"{key} = {str(value).replace(chr(39), chr(34))}\n" if isinstance(value, (list, int)) else
                                     f'{key} = "{value}"\n' for key, value in fields.items())
