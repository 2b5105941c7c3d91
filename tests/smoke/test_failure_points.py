"""The number of places at which each program can fail: its disk operations and its allocations.

test_disk_faults.py and test_memory_faults.py make each of them fail. docs/runs.md has the table, which is compared loosely,
because libraries differ; when this file is run directly, it prints a new table.
"""
import pathlib
import sys
import tempfile

import pytest

import failing_memory
import simulated_disk
from programs import BINARIES, ROOT
from failing_memory import FailingMemory
from simulated_disk import Place
from test_disk_faults import NET, SOLVER
from test_memory_faults import CONVERTERS, photos, put

COLUMNS = ["open", "write", "fsync", "rename", "others", "allocations"]


def training(format):
    def prepare(root):
        (root / "net.prototxt").write_text(NET)
        (root / "solver.prototxt").write_text(SOLVER % format)
    return prepare


def is_of_iteration_2(path):
    return "iter_4" not in path


def nothing(path):
    return False


TRAIN = ["caffe", "train", "--solver=solver.prototxt"]
# Command, the function that prepares its folder, and which of a whole run's files exist when it begins.
PROGRAMS = {
    "`caffe train`, 2 snapshots": (TRAIN, training("BINARYPROTO"), nothing),
    "`caffe train --snapshot`, 1 snapshot": (
        [*TRAIN, "--snapshot=disk/new/run_iter_2.solverstate"], training("BINARYPROTO"), is_of_iteration_2),
    "the same with HDF5": (
        [*TRAIN, "--snapshot=disk/new/run_iter_2.solverstate.h5"], training("HDF5"), is_of_iteration_2),
    "`convert_imageset`, 4 images": (["convert_imageset", *CONVERTERS["convert_imageset"]], photos, nothing),
    "`caffe data import --val`, 4 images": (["caffe", *CONVERTERS["caffe"]], photos, nothing),
}


def count(name, folder):
    command, prepare, is_there = PROGRAMS[name]
    command = [BINARIES / command[0], *command[1:]]
    place = Place(folder)
    prepare(place.root)
    files = {}
    if is_there is not nothing:
        done, files = place.run(command[:3], {}, watched=False)
        assert done.returncode == 0, done.stderr
        files = {path: data for path, data in files.items() if is_there(path)}
    done, _ = place.run(command, files)
    assert done.returncode == 0, done.stderr
    counts = dict(simulated_disk.counts(simulated_disk.operations(place.log)))
    with FailingMemory(command, place.root) as program:
        put(place.disk, {path: data for path, data in files.items() if data is not None})
        status, output, allocations = program.run()
    assert status == 0, output
    found = [counts.pop(kind, 0) for kind in COLUMNS[:4]]
    return [*found, sum(counts.values()), allocations]


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def documented():
    """The counts of each program, from docs/runs.md."""
    lines = (ROOT / "docs" / "runs.md").read_text().splitlines()
    begin = lines.index(row(["program", *COLUMNS])) + 2
    rows = {}
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        name, *counts = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name] = [int(one.replace(",", "")) for one in counts]
    return rows


def test_the_table_has_all_programs():
    assert list(documented()) == list(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_can_fail_in_about_as_many_places_as_documented(tmp_path, name):
    if not (simulated_disk.LIBRARY.exists() and failing_memory.LIBRARY.exists()):
        pytest.skip("the libraries that fail on demand are not built")
    found = count(name, tmp_path)
    print(f"\n{name}: " + ", ".join(f"{number} {kind}" for number, kind in zip(found, COLUMNS)))
    for kind, number, expected in zip(COLUMNS, found, documented()[name]):
        assert number >= expected / 2, f"{name}: {number} of kind {kind}, docs/runs.md says {expected}"


def main():
    print(row(["program", *COLUMNS]))
    print("|---|" + "--:|" * len(COLUMNS))
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            *operations, allocations = count(name, pathlib.Path(folder) / "place")
        print(row([name, *operations, f"{round(allocations, 2 - len(str(allocations))):,}"]))


if __name__ == "__main__":
    sys.exit(main())
