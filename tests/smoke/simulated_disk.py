"""A simulated disk: makes the k-th operation of a program fail, and reconstructs the states that a power cut may leave.

tests/disk/disk.cpp, preloaded into the program, sits between it and the watched folder.
"""
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess

from programs import BINARIES, ROOT

LIBRARY = BINARIES.parent / "lib" / "libcaffe_test_disk.so"
KINDS = ("open", "write", "truncate", "fsync", "rename", "unlink", "mkdir", "rmdir", "close")
# The resulting texts in the log. LMDB calls a truncated write an input/output error.
TEXTS = {"ENOSPC": ["No space left on device"], "EDQUOT": ["Disk quota exceeded"], "EIO": ["Input/output error"],
         "short": ["No space left on device", "Input/output error"]}
COUNTED_AS = {"create": "open", "empty": "open", "write-through": "write", "msync": "fsync"}
WITH_DATA = ("write", "write-through", "msync")

Operation = collections.namedtuple("Operation", "kind fields data")


def operations(log):
    """The operations that the library recorded, in order."""
    text, at, found = log.read_bytes() if log.exists() else b"", 0, []
    while at < len(text):
        end = text.index(b"\n", at)
        kind, *fields = text[at:end].decode().split("\t")
        at = end + 1
        size = int(fields[2]) if kind in WITH_DATA else 0
        found.append(Operation(kind, fields, text[at:at + size]))
        at += size
    return found


def counts(found):
    """The number of operations of each kind that can fail."""
    # Descriptors of folders, and of files that are only opened, do not count as opened.
    kinds = [COUNTED_AS.get(one.kind, one.kind) for one in found if one.kind not in ("folder", "open")]
    return collections.Counter(kinds)


def contents(folder):
    """Path -> bytes of all files below a folder, None for a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


def put(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, data in sorted(files.items()):
        if data is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)


def without_random_names(path):
    return re.sub(r"\.tmp\.[a-z0-9]{6}$", ".tmp.", path)


class Place:
    """A folder to run programs in; `disk` inside it is the watched folder."""

    def __init__(self, root):
        self.root, self.disk, self.log = root, root / "disk", root / "log"
        root.mkdir(parents=True, exist_ok=True)

    def run(self, command, files, fault="", watched=True):
        """Runs `command` on a disk that holds `files`; returns the process and the disk's final contents."""
        put(self.disk, files)
        self.log.unlink(missing_ok=True)
        # With this policy `caffe` does not have to start itself a second time.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        if watched:
            environment |= {"LD_PRELOAD": str(LIBRARY), "CAFFE_DISK_FOLDER": str(self.disk.resolve()),
                            "CAFFE_DISK_LOG": str(self.log), "CAFFE_DISK_FAULT": fault}
        done = subprocess.run([str(part) for part in command], cwd=self.root, env=environment, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done, contents(self.disk)


class _File:
    """A file as the program sees it (`size`), and as the disk may have it: synchronized data, and data not yet synchronized."""

    def __init__(self, data=b""):
        self.durable, self.pending, self.size = data, [], len(data)

    def change(self, kind, place, data, is_through=False):
        self.pending.append((kind, place, data, is_through))
        self.size = place if kind == "truncate" else max(self.size, place + len(data))

    def synchronize(self):
        self.durable, self.pending = self.content(lambda change: 1), []

    def content(self, share):
        """share(change): the fraction of the change that has reached the disk, 0 to 1."""
        data = bytearray(self.durable)
        for change in self.pending:
            kind, place, piece, is_through = change
            reached = 1 if is_through else share(change)
            if kind == "truncate" and reached:
                del data[place:]
                data.extend(bytes(place - len(data)))
            elif kind == "write" and reached:
                piece = piece[:max(1, int(len(piece) * reached))]
                data.extend(bytes(max(0, place - len(data))))
                data[place:place + len(piece)] = piece
        return bytes(data)


class _Folder:
    def __init__(self):
        self.durable, self.pending = {}, []  # names -> nodes; changes of several names at once

    def change(self, names):
        self.pending.append(names)

    def synchronize(self):
        self.durable, self.pending = self.names(lambda change: True), []

    def names(self, has_reached):
        names = dict(self.durable)
        for change in self.pending:
            if has_reached(change):
                names.update(change)
        return {name: node for name, node in names.items() if node is not None}


class PowerCuts:
    """Follows the operations of one run and gives the possible contents of the disk if the power fails after each.

    Synchronizing a file makes its data durable, synchronizing a folder its names: nothing more is guaranteed, and
    unsynchronized changes may have reached the disk in any order, partly, or not at all. A rename happens or does not.
    """

    def __init__(self, files):
        self.top = _Folder()
        for path, data in sorted(files.items()):
            folder, name = self._place(path)
            folder.durable[name] = _Folder() if data is None else _File(data)
        self.opened = {}

    def _node(self, path):
        node = self.top
        for part in pathlib.PurePath(path).parts:
            node = node.names(lambda change: True)[part]
        return node

    def _place(self, path):
        pure = pathlib.PurePath(path)
        return self._node(pure.parent), pure.name

    def follow(self, operation):
        kind, fields = operation.kind, operation.fields
        if kind in ("create", "open", "empty", "folder"):
            self._open(kind, fields[0], fields[1])
        elif kind in WITH_DATA:
            self.opened[fields[0]].change("write", int(fields[1]), operation.data, is_through=kind != "write")
        elif kind == "truncate":
            self.opened[fields[0]].change("truncate", int(fields[1]), b"")
        elif kind == "fsync":
            self.opened[fields[0]].synchronize()
        elif kind == "close":
            del self.opened[fields[0]]
        elif kind == "rename":
            self._rename(*fields)
        elif kind == "mkdir":
            folder, name = self._place(fields[0])
            folder.change({name: _Folder()})
        elif kind in ("unlink", "rmdir"):
            folder, name = self._place(fields[0])
            folder.change({name: None})
        else:
            raise AssertionError(f"unknown operation {kind}")

    def _open(self, kind, descriptor, path):
        if kind == "create":
            folder, name = self._place(path)
            folder.change({name: _File()})
        self.opened[descriptor] = self._node(path)
        if kind == "empty":
            self.opened[descriptor].change("truncate", 0, b"")

    def _rename(self, old, new):
        node, (old_folder, old_name), (new_folder, new_name) = self._node(old), self._place(old), self._place(new)
        assert old_folder is new_folder, "a rename between folders is not one change"
        old_folder.change({old_name: None, new_name: node})

    def _files(self, has_reached, content):
        found = {}

        def walk(folder, prefix):
            for name, node in folder.names(has_reached).items():
                found[prefix + name] = None if isinstance(node, _Folder) else content(node)
                if isinstance(node, _Folder):
                    walk(node, prefix + name + "/")
        walk(self.top, "")
        return found

    def everything(self):
        return self._files(lambda change: True, lambda file: file.content(lambda change: 1))

    def states(self, random_states, seed):
        """Yields disk contents after a cut at this moment: path -> bytes."""
        yield "all", self.everything()
        yield "synchronized", self._files(lambda change: False, lambda file: file.content(lambda change: 0))
        yield "names, no data", self._files(lambda change: True, lambda file: file.content(lambda change: 0))
        yield "names, zeros", self._files(
            lambda change: True, lambda file: file.content(lambda change: 0)[:file.size].ljust(file.size, b"\0"))
        yield "torn writes", self._files(lambda change: True, self._torn)
        for number in range(random_states):
            draw = random.Random(f"{seed} {number}")
            kept = draw.random()
            yield "random", self._files(lambda change: draw.random() < kept,
                                        lambda file: file.content(lambda change: draw.choice((0, 0.5, 1))
                                                                  if draw.random() < kept else 0))

    @staticmethod
    def _torn(file):
        last = file.pending[-1] if file.pending else None
        return file.content(lambda change: 0.5 if change is last else 1)


def faults(found, whats):
    """KIND:NUMBER:WHAT for every operation of a recorded run."""
    for kind, count in sorted(counts(found).items()):
        for number in range(1, count + 1):
            for what in whats:
                if what != "short" or kind == "write":
                    yield f"{kind}:{number}:{what}"


def kills(found):
    number = counts(found)
    yield from (f"any:{k}:kill" for k in range(1, sum(number.values()) + 1))
    yield from (f"write:{k}:tear" for k in range(1, number["write"] + 1))


def was_killed(done):
    return done.returncode == -signal.SIGKILL
