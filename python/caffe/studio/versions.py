"""Versions of a data set: what was in its folder when, which models were made of it, and what has changed since.

A version holds names, sizes and SHA-256 of the files, not the files themselves.
"""
import dataclasses
import errno
import gzip
import hashlib
import json
import os
import re
import stat
import time
from urllib.parse import quote, unquote

from .. import InvalidArgument
from .._locks import locked
from .._output import write_whole
from .storage import changed_object, read_object, write_json

_BLOCK = 1 << 20
_MOST_LETTERS = 200  # of the name of a set's folder that is not a hash
_LONG = "~"  # begins those that are


@dataclasses.dataclass
class Version:
    """number: from 1 on. time: when it was recorded, in seconds since 1970. files: {path in the set: (bytes, SHA-256, time of the
    file's last change in ns)}. models: names of those made of it. skipped: names of what is not a regular file, such as a pipe or a link
    to nothing, and is not in files."""
    number: int
    time: float
    files: dict
    models: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)

    def differences(self, before):
        """Names of files that were added, removed, and changed since another version, or None for none."""
        old = {name: found[1] for name, found in before.files.items()} if before else {}
        new = {name: found[1] for name, found in self.files.items()}
        return (sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys()), sorted(name for name in new.keys() & old.keys() if new[name] != old[name]))


class Versions:
    """The versions of the sets in a workspace.

    folder: where they are stored
    """

    def __init__(self, folder):
        self._folder = folder

    def all(self, name):
        """The Versions of a set, the oldest first. Damaged files are left out."""
        folder = self._of(name)
        models = read_object(os.path.join(folder, "models.json"))
        found = []
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if re.fullmatch(r"\d+\.json\.gz", file):
                try:
                    with gzip.open(os.path.join(folder, file), "rt", encoding="utf-8") as text:
                        content = json.load(text)
                    found.append(Version(content["number"], content["time"], content["files"],
                                         sorted(model for model, number in models.items() if number == content["number"]), content.get("skipped", [])))
                except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
                    continue
        return sorted(found, key=lambda version: version.number)

    def record(self, name, path):
        """The newest version of the set at `path`: a new one if a file differs from the one before. Raises OSError, InvalidArgument."""
        folder = self._of(name)
        os.makedirs(folder, exist_ok=True)
        with locked(os.path.join(folder, "lock")):
            known = self.all(name)
            newest = known[-1] if known else None
            files, skipped = _look(path, newest.files if newest else {})
            if newest and {file: found[1] for file, found in files.items()} == {file: found[1] for file, found in newest.files.items()}:
                return dataclasses.replace(newest, skipped=skipped)
            version = Version(newest.number + 1 if newest else 1, time.time(), files, skipped=skipped)
            content = json.dumps({"number": version.number, "time": version.time, "files": files, "skipped": skipped}).encode()
            if os.path.basename(folder).startswith(_LONG):
                write_json(os.path.join(folder, "name.json"), {"name": os.path.normpath(name)})
            write_whole(os.path.join(folder, f"{version.number:04}.json.gz"), gzip.compress(content, mtime=0))
            return version

    def made(self, name, number, model):
        """Stores that a model was made of a version. Raises InvalidArgument if the file with the models is damaged, IoError, OSError."""
        with changed_object(os.path.join(self._of(name), "models.json")) as models:
            models[model] = number

    def of_model(self, model):
        """(set, number) that a model was made of, or None."""
        for entry in sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []:
            number = read_object(os.path.join(self._folder, entry, "models.json")).get(model)
            if isinstance(number, int):
                is_long = entry.startswith(_LONG)
                return (str(read_object(os.path.join(self._folder, entry, "name.json")).get("name", "")) if is_long else unquote(entry[1:])), number
        return None

    def _of(self, name):
        """The folder of a set. Names of files have at most 255 bytes, so long names are hashed, and in name.json."""
        name = os.path.normpath(name)
        plain = "_" + quote(name, safe="")
        return os.path.join(self._folder, plain if len(plain) <= _MOST_LETTERS else _LONG + hashlib.sha256(name.encode()).hexdigest())


def _look(path, known):
    """The files of a set, and the names of what is none, as in Version. Files whose size and time are those of a known one are not read again."""
    if os.path.isfile(path):
        names = [os.path.basename(path)]
        path = os.path.dirname(path)
    else:
        names = [os.path.relpath(os.path.join(folder, file), path) for folder, _, files in os.walk(path) for file in files]
    found, skipped = {}, []
    for name in sorted(names):
        if any(part.startswith(".") for part in name.split(os.sep)):
            continue
        try:
            status = os.stat(os.path.join(path, name))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            skipped.append(name)
            continue
        old = known.get(name)
        mark = old[1] if old and (old[0], old[2]) == (status.st_size, status.st_mtime_ns) else _sha256(os.path.join(path, name))
        found[name] = (status.st_size, mark, status.st_mtime_ns)
    if not found:
        raise InvalidArgument(f"{path}: holds no file")
    return found, skipped


def _sha256(file):
    mark = hashlib.sha256()
    with open(file, "rb") as content:
        while block := content.read(_BLOCK):
            mark.update(block)
    return mark.hexdigest()
