"""Every disk operation fails once, or is once the last one before a kill or a power cut.

After each: the program continues or ends with status 1 and a text, no incomplete file has a final name, good data is
still there and can be resumed to the same bytes, and the next start leaves no stray file. The quick form uses one error
per operation; CAFFE_SLOW_TESTS=1 uses all, and more runs.
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import struct
import subprocess
import zlib

import pytest

import simulated_disk
from programs import slow, write_idx
from simulated_disk import Place, PowerCuts, without_random_names

NET = """
name: "small"
layer {
  name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param {
    shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 }
  }
}
layer { name: "drop" type: "Dropout" bottom: "x" top: "x" }
layer {
  name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 random_seed: 7 solver_mode: CPU display: 0
max_iter: 4 snapshot: 2 snapshot_prefix: "disk/new/run" snapshot_format: %s
"""
IS_SLOW = bool(os.environ.get("CAFFE_SLOW_TESTS"))


class Training:
    """`caffe train` for 4 iterations with snapshots at 2 and 4, starting from the newest one on the disk."""

    def __init__(self, caffe, format, run_dir=False):
        self.caffe, self.format, self.run_dir = caffe, format, run_dir
        self.ending = ".h5" if format == "HDF5" else ""
        self.reference = {}

    def prepare(self, root):
        (root / "net.prototxt").write_text(NET)
        (root / "solver.prototxt").write_text(SOLVER % self.format)

    def newest(self, files):
        """The newest state whose weights also exist; None if there is none."""
        states = [int(match[1]) for path in files
                  if (match := re.fullmatch(rf"new/run_iter_(\d+)\.solverstate{re.escape(self.ending)}", path))
                  and f"new/run_iter_{match[1]}.caffemodel{self.ending}" in files]
        return f"disk/new/run_iter_{max(states)}.solverstate{self.ending}" if states else None

    def command(self, files):
        state = self.newest(files)
        return [self.caffe, "train", "--solver=solver.prototxt", *(["--run_dir=disk/log"] if self.run_dir else []),
                *([f"--snapshot={state}"] if state else [])]

    def is_final(self, path):
        return ".tmp." not in path and not path.endswith(".lock")

    def check_whole(self, path, data):
        if path.startswith("new/"):
            assert data == self.reference[path], f"{path} is torn"
        elif path.endswith(".json"):
            json.loads(data)
        elif path.endswith(".prototxt"):
            assert data.endswith(b"}\n") or data.endswith(b"\n"), f"{path} is torn"

    def check_restarted(self, files):
        # A failed snapshot is not written again once there is a newer one.
        snapshots = {path: data for path, data in files.items() if path.startswith("new")}
        assert snapshots.items() <= self.reference.items() and self.newest(files) == self.newest(self.reference)
        strays = [path for path in files if not self.is_final(path)]
        assert not strays, strays
        if self.run_dir:
            assert {path for path in files if path.startswith("log/") and "events" not in path} == {
                path for path in self.reference if path.startswith("log/") and "events" not in path}
            for line in files["log/metrics.jsonl"].splitlines():
                json.loads(line)

    def is_complete(self, files):
        return not self.run_dir and files == self.reference

    def is_promised(self, path):
        # Metrics and events are appended, but not synchronized; a lock ends with its process.
        return path.startswith("new/") and self.is_final(path)

    def tidied(self, files):
        """Cleans up like a user before the next start: a killed run without a snapshot keeps its folder until it is deleted."""
        if not self.run_dir or self.newest(files):
            return files
        return {path: data for path, data in files.items() if not path.startswith("log")}


class Conversion:
    """A converter that makes one database, whose folder appears atomically."""

    def __init__(self, command, prepare):
        self._command, self.prepare = command, prepare
        self.reference = {}

    def command(self, files):
        return self._command

    def newest(self, files):
        return "db" if "db" in files else None

    def is_final(self, path):
        return path.split("/")[0] == "db" and ".tmp." not in path

    def check_whole(self, path, data):
        assert data == self.reference[path], f"{path} is torn"

    def check_restarted(self, files):
        assert files == self.reference

    def is_promised(self, path):
        return True

    def tidied(self, files):
        return files

    def is_complete(self, files):
        if "db" not in files:
            return False
        inside = {path: data for path, data in files.items() if path.startswith("db")}
        assert inside == self.reference, "the database is there, but not whole"
        return files == self.reference


def in_parallel(root, prepare, work, items):
    """Calls work(place, item) for all items, with as many threads as processors, each with its own place."""
    threads = min(4, os.cpu_count() or 1)
    places = [Place(root / f"place{i}") for i in range(threads)]
    for place in places:
        prepare(place.root)

    def run(index):
        for item in items[index::threads]:
            work(places[index], item)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(run, index) for index in range(threads)]:
            future.result()


class Enumeration:
    """All faults of one run of a scenario that starts with `files` on the disk."""

    def __init__(self, scenario, root, files):
        self.scenario, self.root, self.files = scenario, root, files
        place = Place(root / "reference")
        scenario.prepare(place.root)
        done, after = place.run(scenario.command({}), {})
        assert done.returncode == 0, done.stderr
        scenario.reference = after
        done, recorded = place.run(scenario.command(files), files)
        assert done.returncode == 0, done.stderr
        self.operations = simulated_disk.operations(place.log)
        self.check_recording(recorded)
        self.restarted = set()
        self.tried = self.restarts = self.went_on = 0

    def check_recording(self, recorded):
        """Checks that no operation has bypassed the library: the recorded operations give the same files."""
        disk = PowerCuts(self.files)
        for operation in self.operations:
            disk.follow(operation)
        assert disk.everything() == recorded

    def check_state(self, place, files, what):
        """Checks that no file is incomplete and the good state is still there; then one more start must end as if nothing had happened."""
        scenario = self.scenario
        for path, data in files.items():
            if data is not None and scenario.is_final(path):
                scenario.check_whole(path, data)
        for path, data in self.files.items():
            assert files.get(path) == data, f"{what}: {path} is lost"
        # Nothing reads half-written files, so the quick form starts only once for all their contents.
        key = frozenset((without_random_names(path), data if IS_SLOW or scenario.is_final(path) else None)
                        for path, data in files.items())
        if scenario.is_complete(files) or key in self.restarted:
            return
        self.restarted.add(key)
        self.restarts += 1
        files = scenario.tidied(files)
        done, after = place.run(scenario.command(files), files, watched=False)
        assert done.returncode == 0, f"{what}: {done.stderr}"
        scenario.check_restarted(after)

    def try_fault(self, place, fault):
        done, files = place.run(self.scenario.command(self.files), self.files, fault)
        kind, _, what = fault.split(":")
        found = simulated_disk.operations(place.log)
        assert any(one.kind == "fault" for one in found), f"{fault} did not happen"
        self.tried += 1
        if what in ("kill", "tear"):
            assert simulated_disk.was_killed(done), f"{fault}: {done.stderr}"
        else:
            self.check_outcome(fault, kind, what, done, files)
        self.check_state(place, files, fault)

    def check_outcome(self, fault, kind, what, done, files):
        assert done.returncode in (0, 1), f"{fault}: status {done.returncode}: {done.stderr}"
        errors = [line for line in done.stderr.splitlines() if re.match(r"[EW]\d{4} ", line)]
        said = any(text in line for line in errors for text in simulated_disk.TEXTS[what])
        if done.returncode == 1:
            assert said, f"{fault}: no clear text in {done.stderr}"
        else:
            self.went_on += 1
            # A short write is continued; files that cannot be cleaned up now are cleaned up at the next start.
            assert said or what == "short" or kind in ("unlink", "rmdir", "close"), f"{fault} was not told"
            assert self.scenario.newest(files) == self.scenario.newest(self.scenario.reference), fault
        strays = [path for path in files if not self.scenario.is_final(path) and files[path] is not None]
        assert kind in ("unlink", "rmdir") or not strays, f"{fault} left {strays}"

    def try_all(self, whats):
        # The states after a kill are among the states after power cuts, so the quick form skips them.
        kills = simulated_disk.kills(self.operations) if IS_SLOW else []
        in_parallel(self.root, self.scenario.prepare, self.try_fault,
                    [*simulated_disk.faults(self.operations, whats), *kills])

    def cut_power(self, random_states):
        """Tries every state that a power cut may leave, each once; returns their number."""
        disk, states, promised = PowerCuts(self.files), {}, {}
        for number, operation in enumerate(self.operations, 1):
            if operation.kind == "create":
                promised = self.promised(disk)
            disk.follow(operation)
            if number == len(self.operations):
                promised = self.promised(disk)
                assert promised, "nothing was written"
            for how, files in disk.states(random_states, number):
                what = f"{how} after operation {number}, {operation.kind} {operation.fields}"
                for path, data in promised.items():
                    assert path in files and files[path] == data, f"{what}: {path} is lost"
                states.setdefault(frozenset(files.items()), (what, files))
        in_parallel(self.root, self.scenario.prepare,
                    lambda place, state: self.check_state(place, state[1], state[0]), list(states.values()))
        return len(states)

    def promised(self, disk):
        """The files that the program considers written when it begins the next file, or ends: all files with a final name."""
        return {path: data for path, data in disk.everything().items()
                if self.scenario.is_final(path) and self.scenario.is_promised(path)}


def say(name, enumeration, states=0):
    counts = simulated_disk.counts(enumeration.operations)
    print(f"\n{name}: {sum(counts.values())} operations ({', '.join(f'{n} {kind}' for kind, n in counts.items())}), "
          f"{enumeration.tried} faults and kills, {states} states after power cuts, {enumeration.restarts} restarts")


@pytest.fixture(name="disk", autouse=True)
def need_library():
    if not simulated_disk.LIBRARY.exists():
        pytest.skip(f"{simulated_disk.LIBRARY} is not built")


def iteration_2(scenario, root):
    """The files of a run that ended normally after its first snapshot."""
    place = Place(root / "before")
    scenario.prepare(place.root)
    done, files = place.run(scenario.command({}), {}, watched=False)
    assert done.returncode == 0, done.stderr
    return {path: data for path, data in files.items() if "iter_4" not in path}


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_resumed_run_survives_every_fault(tmp_path, program, format):
    scenario = Training(program("caffe"), format)
    enumeration = Enumeration(scenario, tmp_path, iteration_2(scenario, tmp_path))
    enumeration.try_all(["ENOSPC", "EDQUOT", "EIO", "short"] if IS_SLOW else ["EIO", "short"])
    say(f"resume, {format}", enumeration)
    assert enumeration.tried > 20


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_resumed_run_survives_power_cuts(tmp_path, program, format):
    scenario = Training(program("caffe"), format)
    enumeration = Enumeration(scenario, tmp_path, iteration_2(scenario, tmp_path))
    states = enumeration.cut_power(random_states=50 if IS_SLOW else 3)
    say(f"resume, {format}", enumeration, states)
    assert states > 20


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_new_run_survives_power_cuts(tmp_path, program, format):
    """The run also creates its folder."""
    enumeration = Enumeration(Training(program("caffe"), format), tmp_path, {})
    states = enumeration.cut_power(random_states=50 if IS_SLOW else 1)
    say(f"train, {format}", enumeration, states)
    assert states > 20


@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_new_run_survives_every_fault(tmp_path, program, format):
    slow()
    enumeration = Enumeration(Training(program("caffe"), format), tmp_path, {})
    enumeration.try_all(["ENOSPC", "EDQUOT", "EIO", "short"])
    say(f"train, {format}", enumeration)
    assert enumeration.tried > 100


def test_a_run_folder_survives_every_fault(tmp_path, program):
    slow()
    enumeration = Enumeration(Training(program("caffe"), "BINARYPROTO", run_dir=True), tmp_path, {})
    enumeration.try_all(["ENOSPC", "EIO", "short"])
    say("train -run_dir", enumeration)
    assert enumeration.tried > 50


def conversion(program):
    """Converts 20 images to an LMDB with convert_mnist_data."""
    def prepare(root):
        write_idx(root / "images", [20, 8, 8], [i * 7 % 256 for i in range(20 * 64)])
        write_idx(root / "labels", [20], [i % 10 for i in range(20)])
    return Conversion([program("convert_mnist_data"), "images", "labels", "disk/db"], prepare)


def png(color):
    """An image of 8x8 pixels of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress((b"\0" + bytes(color) * 8) * 8)
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def importation(program):
    """Converts 8 pictures in 2 classes to an LMDB with its mean and its labels, with caffe data import."""
    def prepare(root):
        for i in range(8):
            folder = root / "photos" / f"class{i % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.png").write_bytes(png((i * 30, 10, 255 - i * 30)))
    return Conversion([program("caffe"), "data", "import", "photos", "disk/db"], prepare)


CONVERTERS = {"convert_mnist_data": conversion, "caffe data import": importation}


@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_converter_survives_every_fault(tmp_path, program, converter):
    enumeration = Enumeration(CONVERTERS[converter](program), tmp_path, {})
    enumeration.try_all(["ENOSPC", "EDQUOT", "EIO", "short"] if IS_SLOW else ["EIO", "short"])
    say(converter, enumeration)
    assert enumeration.tried > 15


@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_converter_survives_power_cuts(tmp_path, program, converter):
    enumeration = Enumeration(CONVERTERS[converter](program), tmp_path, {})
    states = enumeration.cut_power(random_states=200 if IS_SLOW else 5)
    say(converter, enumeration, states)
    assert states > 10


def test_an_export_survives_every_fault(tmp_path, program):
    """A folder of images is complete or absent, as a database is; only after a kill may its `.partial` stay."""
    def prepare(root):
        importation(program).prepare(root)
        if not (root / "source").exists():
            subprocess.run([program("caffe"), "data", "import", "photos", "source"], cwd=root, check=True)
    scenario = Conversion([program("caffe"), "data", "export", "source", "disk/db"], prepare)
    enumeration = Enumeration(scenario, tmp_path, {})
    in_parallel(tmp_path, prepare, enumeration.try_fault,
                list(simulated_disk.faults(enumeration.operations, ["ENOSPC", "EIO", "short"])))
    say("caffe data export", enumeration)
    assert enumeration.tried > 15


def test_an_import_killed_between_its_databases_says_what_to_do(tmp_path, program):
    scenario, place = importation(program), Place(tmp_path)
    scenario.prepare(place.root)
    command = [*scenario.command({}), "--val=50%"]
    done, whole = place.run(command, {})
    assert done.returncode == 0, done.stderr
    last = simulated_disk.counts(simulated_disk.operations(place.log))["rename"]
    done, files = place.run(command, {}, f"rename:{last}:kill")
    assert simulated_disk.was_killed(done)
    assert "db/data.mdb" in files and "db_val" not in files
    done, after = place.run(command, files)
    assert done.returncode == 1 and after == files
    assert "disk/db: already exists, but disk/db_val does not" in done.stderr and "remove disk/db" in done.stderr
    begun = {path: data for path, data in files.items() if path.split("/")[0] != "db"}
    done, after = place.run(command, begun)
    assert done.returncode == 0 and after == whole, done.stderr


def test_the_library_sees_and_fails_each_operation(tmp_path):
    """Uses a program that does one operation of each kind, with known faults."""
    code = """
import ctypes, mmap, os
c = ctypes.CDLL(None, use_errno=True)
os.mkdir("disk/folder")
file = os.open("disk/folder/a", os.O_RDWR | os.O_CREAT)
os.write(file, b"0123456789")
os.pwrite(file, b"ab", 2)
os.writev(file, [b"xy", b"z"])
os.pwritev(file, [b"A", b"B"], 0)
os.fsync(file); os.fdatasync(file)
with mmap.mmap(file, 4) as memory:
    memory[0:2] = b"__"
    memory.flush()
os.ftruncate(file, 5)
os.close(file)
os.rename("disk/folder/a", "disk/folder/b")
os.unlink("disk/folder/b")
os.rmdir("disk/folder")
"""
    place = Place(tmp_path)
    done, files = place.run(["/usr/bin/env", "python3", "-c", code], {})
    assert done.returncode == 0, done.stderr
    assert files == {}
    found = simulated_disk.operations(place.log)
    assert simulated_disk.counts(found) == {"mkdir": 1, "open": 1, "write": 4, "fsync": 3, "truncate": 1, "close": 1,
                                            "rename": 1, "unlink": 1, "rmdir": 1}
    disk, held = PowerCuts({}), []
    for operation in found:
        disk.follow(operation)
        held.append(disk.everything().get("folder/a"))
    assert b"ABab456789xyz" in held and b"__ab456789xyz" in held and b"__ab4" in held
    assert disk.everything() == {}
    for fault in simulated_disk.faults([one for one in found if one.data != b"__ab"], ["EIO"]):
        done, files = place.run(["/usr/bin/env", "python3", "-c", code], {}, fault)
        assert "Input/output error" in done.stderr, f"{fault}: {done.stderr}"
    done, files = place.run(["/usr/bin/env", "python3", "-c", code], {}, "write:1:tear")
    assert simulated_disk.was_killed(done) and files == {"folder": None, "folder/a": b"01234"}
    done, files = place.run(["/usr/bin/env", "python3", "-c", code], {}, "rename:1:kill")
    assert simulated_disk.was_killed(done) and files == {"folder": None, "folder/a": b"__ab4"}


def test_power_cuts_lose_what_is_not_synchronized():
    """Tests the model itself: a rename before its file is synchronized may leave an empty file, but not afterwards."""
    def operations(is_synchronized):
        Operation = simulated_disk.Operation
        yield Operation("create", ["3", "a.tmp"], b"")
        yield Operation("write", ["3", "0", "4"], b"data")
        if is_synchronized:
            yield Operation("fsync", ["3"], b"")
        yield Operation("rename", ["a.tmp", "a"], b"")

    def after(is_synchronized):
        disk = PowerCuts({"a": b"old"})
        for operation in operations(is_synchronized):
            disk.follow(operation)
        return {files.get("a") for _, files in disk.states(50, 1)}

    assert after(True) == {b"old", b"data"}
    assert after(False) == {b"old", b"data", b"", b"\0\0\0\0", b"da"}
