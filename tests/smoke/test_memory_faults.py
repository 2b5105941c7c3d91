"""Allocations of whole programs fail, one in each run: from main() on, in all threads.

Afterwards the program has done its work, or has ended with status 1 and a text; no file is incomplete or half-written,
and good data is still there. The quick form makes some 100 allocations of each program fail. CAFFE_SLOW_TESTS=1 chooses the
first and the last one of each call stack that allocates memory, CAFFE_ALL_ALLOCATIONS=1 every allocation.
"""
import os
import shutil

import pytest

import failing_memory
from programs import ROOT
from failing_memory import FailingMemory
from test_disk_faults import NET, SOLVER

IMAGES = ROOT / "tests" / "fuzz" / "corpus" / "image"


@pytest.fixture(name="failing", autouse=True)
def need_library():
    if not failing_memory.LIBRARY.exists():
        pytest.skip(f"{failing_memory.LIBRARY} is not built")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def put(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def choose(program, allocations, quick):
    """The allocations that fail, and all call stacks that allocate memory, if they are known."""
    if os.environ.get("CAFFE_ALL_ALLOCATIONS"):
        return range(1, allocations + 1), set()
    if not os.environ.get("CAFFE_SLOW_TESTS"):
        return range(1, allocations + 1, max(1, allocations // quick)), set()
    stacks = program.stacks()
    last = {stack: number for number, stack in enumerate(stacks, 1)}
    first = {stack: number for number, stack in reversed(list(enumerate(stacks, 1)))}
    return sorted({*first.values(), *last.values()}), set(stacks)


def fail_each(name, command, folder, is_whole, quick=100):
    """Each run starts with the current files of `folder`/disk; is_whole(files, before, all) judges the files that a run leaves."""
    disk = folder / "disk"
    before = contents(disk)
    with FailingMemory(command, folder) as program:
        status, output, allocations = program.run()
        assert status == 0, output
        everything = contents(disk)
        put(disk, before)
        numbers, stacks = choose(program, allocations, quick)
        failed, missed = 0, set(stacks)
        for number in numbers:
            put(disk, before)
            status, output, _ = program.run(number)
            missed.discard(program.failed_stack)
            what = f"{name}, allocation {number} of {allocations}: status {status}: {output[-2000:]}"
            assert status in (0, 1), what
            files = contents(disk)
            if status == 0:
                assert files == everything, what
            else:
                assert "memory" in output or "bad_alloc" in output or "\nE" in "\n" + output, what
                assert is_whole(files, before, everything), f"{sorted(files)} is left after {what}"
                failed += 1
        print(f"\n{name}: {allocations} allocations, {len(stacks)} call stacks, {len(missed)} of them missed; "
              f"{len(numbers)} failed, {failed} runs ended with an error")
        assert failed > 30
        assert len(missed) <= len(stacks) // 100, "which allocation comes when is another one in each run"
        put(disk, before)
        assert program.run()[0] == 0 and contents(disk) == everything


def is_whole_snapshot(files, before, everything):
    return before.items() <= files.items() <= everything.items()


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_resumed_run_survives_every_allocation(tmp_path, program, format):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER % format)
    (tmp_path / "disk").mkdir()
    train = [program("caffe"), "train", "--solver=solver.prototxt"]
    with FailingMemory(train, tmp_path) as first:
        status, output, _ = first.run()
        assert status == 0, output
    files = contents(tmp_path / "disk")
    put(tmp_path / "disk", {path: data for path, data in files.items() if "iter_4" not in path})
    state = "disk/new/run_iter_2.solverstate" + (".h5" if format == "HDF5" else "")
    fail_each(f"caffe train -snapshot, {format}", [*train, f"--snapshot={state}"], tmp_path, is_whole_snapshot)


def photos(root):
    """4 JPEGs in 2 classes, and a list of them."""
    lines = []
    for number, image in enumerate(["rgb", "progressive", "gray", "rgb"]):
        path = f"class{number % 2}/{number}.jpg"
        (root / "photos" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(IMAGES / f"{image}.jpg", root / "photos" / path)
        lines.append(f"{path} {number % 2}\n")
    (root / "list").write_text("".join(lines))
    (root / "disk").mkdir()


def is_whole_database(files, _, everything):
    """True for a complete database or none at all."""
    folders = {path.split("/")[0] for path in files}
    return files == {path: data for path, data in everything.items() if path.split("/")[0] in folders}


CONVERTERS = {
    "convert_imageset": ["photos/", "list", "disk/db", "--resize_width=4", "--resize_height=4"],
    "caffe": ["data", "import", "photos", "disk/db", "--val=50%", "--resize=4x4"],
}


@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_converter_survives_every_allocation(tmp_path, program, converter):
    photos(tmp_path)
    fail_each(converter, [program(converter), *CONVERTERS[converter]], tmp_path, is_whole_database)
