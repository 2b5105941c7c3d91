"""cmake/exported_symbols.sh: the symbols that the installed library exports, by the visibility of names in its objects."""
import os
import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "exported_symbols.sh"
SOURCE = """
__attribute__((visibility("default"))) int shown() { return 1; }
__attribute__((visibility("protected"))) int of_tests() { return 2; }
__attribute__((visibility("hidden"))) int hidden() { return 3; }
__attribute__((visibility("default"))) int elsewhere();
int inside() { return elsewhere(); }
"""


def test_default_names_alone_are_shown_from_any_folder(tmp_path):
    folder = tmp_path / "a folder's name"
    folder.mkdir()
    (folder / "source.cpp").write_text(SOURCE)
    for name in ("one", "two"):
        subprocess.run([os.environ.get("CXX", "c++"), "-fvisibility=hidden", f"-Dshown=shown_by_{name}", "-c", "source.cpp",
                        "-o", f"{name}.o"], cwd=folder, check=True)
    (folder / "objects.txt").write_text(f"{folder}/one.o\n{folder}/two.o\n")
    script = subprocess.run(["sh", SCRIPT, "readelf", folder / "objects.txt"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert script.split() == ["{", "global:", "_Z12shown_by_onev;", "_Z12shown_by_twov;", "local:", "*;", "};"]
