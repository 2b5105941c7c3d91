"""Archives of images that users send."""
import os
import shutil
import stat
import tempfile
import zipfile
import zlib

from .. import InvalidArgument

_MOST_FILES = 1_000_000
_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
_RATIO = 200  # of unpacked to packed bytes, beyond which an archive of images is none


def unpack(archive, folder):
    """Unpacks a ZIP file into a new folder, which appears when it is complete.

    Raises InvalidArgument, and leaves nothing, for archives with names outside of the folder, links, damaged parts, or more than fits.
    """
    if os.path.lexists(folder):
        raise InvalidArgument(f"{os.path.basename(folder)}: already exists; give another name")
    parent = os.path.dirname(folder)
    partial = tempfile.mkdtemp(prefix=".upload.", dir=parent)
    try:
        with zipfile.ZipFile(archive) as content:
            entries = content.infolist()
            _check(entries, os.path.getsize(archive), shutil.disk_usage(parent).free)
            for entry in entries:
                _write(content, entry, partial)
        _lift(partial, folder)
    except InvalidArgument:
        raise
    except _BROKEN as error:
        raise InvalidArgument(f"the archive cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check(entries, packed, free):
    total = sum(entry.file_size for entry in entries)
    if len(entries) > _MOST_FILES:
        raise InvalidArgument(f"the archive has {len(entries)} files; at most {_MOST_FILES} are taken")
    if total > free // 2:
        raise InvalidArgument(f"the archive unpacks to {total >> 20} MiB, more than half of the {free >> 20} MiB that are free")
    if total > _RATIO * packed + (1 << 20):
        raise InvalidArgument(f"the archive has {packed} bytes and would unpack to {total}; images do not compress like that")


def _write(content, entry, folder):
    parts = [part for part in entry.filename.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or entry.filename.startswith(("/", "\\")) or "\0" in entry.filename:
        raise InvalidArgument(f"the archive has a file '{entry.filename[:100]}' outside of its folder")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InvalidArgument(f"the archive has a link, '{entry.filename[:100]}'")
    if not parts or parts[0] == "__MACOSX" or parts[-1].startswith("."):
        return
    path = os.path.join(folder, *parts)
    if entry.is_dir():
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    left = entry.file_size
    with content.open(entry) as source, open(path, "xb") as target:
        while chunk := source.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise InvalidArgument(f"'{entry.filename[:100]}' in the archive is larger than the archive says")
            target.write(chunk)


def _lift(partial, folder):
    """The content becomes the folder; where all of it is in one folder that has folders, that one."""
    names = os.listdir(partial)
    only = os.path.join(partial, names[0]) if len(names) == 1 else None
    if not names:
        raise InvalidArgument("the archive has no files")
    is_wrapper = only and os.path.isdir(only) and any(os.path.isdir(os.path.join(only, name)) for name in os.listdir(only))
    os.chmod(only if is_wrapper else partial, 0o755)
    os.rename(only if is_wrapper else partial, folder)
