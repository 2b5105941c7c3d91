"""The loader's search paths for libraries: never the folder that a program is started in."""
import pathlib
import re
import subprocess

import pytest


def built_files(binaries):
    folders = [binaries, binaries.parent / "lib", binaries.parent / "python" / "caffe"]
    return [file for folder in folders for file in sorted(folder.glob("*"))
            if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]


def test_no_search_path_has_an_empty_or_a_relative_entry(program):
    files = built_files(pathlib.Path(program("caffe")).parent)
    assert len(files) > 5
    for file in files:
        dynamic = subprocess.run(["readelf", "-d", file], text=True, check=True, stdout=subprocess.PIPE).stdout
        for entries in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            for entry in entries.split(":"):
                assert entry.startswith(("/", "$ORIGIN")), f"{file.name}: '{entry}' in {entries}"


@pytest.mark.skipif(not pathlib.Path("/usr/bin/gcc").exists(), reason="no gcc for the planted library")
def test_a_library_in_the_current_folder_is_not_loaded(tmp_path, program, run):
    """A planted libsnappy.so.1, which LevelDB needs, once ran in every program of the build tree."""
    caffe = program("caffe")
    (tmp_path / "planted.c").write_text(
        '#include <stdio.h>\n__attribute__((constructor)) static void run(void) { fopen("HAS_RUN", "w"); }\n')
    for name in ("libsnappy.so.1", "libglog.so.1", "libprotobuf.so.32", "libz.so.1"):
        subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "planted.c", "-o", tmp_path / name], check=True)
    done = subprocess.run([caffe, "layers"], cwd=tmp_path, text=True, check=False, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert not (tmp_path / "HAS_RUN").exists()
