"""Commands in Python that a signal ends: no copy of the images is left, no program goes on, and nothing is said of imports."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from PIL import Image

from processes import ends, line_from
from programs import BINARIES, PACKAGE, need_program

# In the place of the program caffe: says which process it is, and then works for long.
WORKS = "#!/bin/sh\necho $$ > {pipe}\nexec sleep 10000\n"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
FAILS = "#!/bin/sh\nexit 1\n"
# An interrupt comes after a program has started, but before Python says which one it is.
INTERRUPTED = """
import pathlib, signal, subprocess
from caffe.model_folder.databases import run

class Interrupted(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        started.append(self)
        signal.raise_signal(signal.SIGINT)

started = []
subprocess.Popen = Interrupted
try:
    run(pathlib.Path("/bin/sleep"), 10000)
except KeyboardInterrupt:
    print(started[0].returncode)
    started[0].kill()
"""


@pytest.fixture
def folder(tmp_path):
    for name in "ab":
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (32, 32)).save(tmp_path / "photos" / name / f"{number}.png")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def new(folder, program):
    """A process of `caffe new photos --output=m` with this text as the program caffe."""
    file = pathlib.Path(folder, "program")
    file.write_text(program.format(pipe=folder / "pipe"), encoding="utf-8")
    file.chmod(0o755)
    return subprocess.Popen([sys.executable, "-m", "caffe.model_folder", "photos", "--output=m", f"--program={file}"], cwd=folder,
                            env={**os.environ, "PYTHONPATH": str(PACKAGE)}, stderr=subprocess.PIPE, text=True, preexec_fn=heed)


def heed():
    """Ends by the signals, also where they are ignored here, as under nohup."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def hidden(folder):
    return [file.name for file in folder.iterdir() if file.name.startswith(".m.")]


@pytest.mark.parametrize("number", SIGNALS)
def test_nothing_is_left(folder, number):
    process = new(folder, WORKS)
    child = int(line_from(folder / "pipe", process))
    assert len(hidden(folder)) == 1
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == -number and "Traceback" not in said
    assert hidden(folder) == [] and ends(child)


def test_an_interrupt_while_a_program_starts(tmp_path):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)}, preexec_fn=heed)
    assert done.stdout == f"{-signal.SIGKILL}\n"


def test_what_a_killed_one_has_left_is_removed(folder):
    (folder / ".m.original").mkdir()
    killed = new(folder, WORKS)
    child = int(line_from(folder / "pipe", killed))
    killed.kill()
    killed.communicate()
    os.kill(child, signal.SIGKILL)
    left = hidden(folder)
    assert len(left) == 2
    works = new(folder, WORKS)
    child = int(line_from(folder / "pipe", works))
    own = set(hidden(folder)) - set(left)
    assert len(own) == 1
    assert new(folder, FAILS).communicate()[1].startswith("caffe new: ")
    assert set(hidden(folder)) == {".m.original", *own}  # that of a living process stays
    works.terminate()
    works.communicate()
    assert hidden(folder) == [".m.original"] and ends(child)


def test_an_interrupt_while_packages_are_imported(tmp_path):
    need_program("caffe")
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", encoding="utf-8")
    done = subprocess.run([BINARIES / "caffe", "new", "--nets"], check=False, capture_output=True, text=True,
                          env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(tmp_path)},
                          preexec_fn=heed)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
