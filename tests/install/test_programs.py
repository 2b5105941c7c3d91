"""Programs of users: those of docs/cpp.md, and a CMake project, built with the page's commands."""
import re

import pytest

from conftest import ROOT

# As the page for users has it.
VERSION = re.search(r"find_package\(Cortado (\S+) REQUIRED\)", (ROOT / "docs" / "cpp.md").read_text())[1]
PROJECT = f"""
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES CXX)
find_package(Cortado {VERSION} REQUIRED)
add_executable(use_net use_net.cpp)
target_link_libraries(use_net PRIVATE Cortado::caffe)
"""
NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "constant" value: 0.5 } }
}
"""


def programs():
    page = (ROOT / "docs" / "cpp.md").read_text()
    return dict(re.findall(r"^```cpp (\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))


def test_the_pages_programs_build_with_pkg_config(tree, tmp_path):
    for name, source in programs().items():
        (tmp_path / name).write_text(source)
        kind = () if "int main" in source else ("-shared", "-fPIC")
        tree.compile(tmp_path / name, tmp_path / name.replace(".cpp", ".out"), "cortado", *kind)
    assert len(programs()) >= 3


def test_find_package_builds_a_program_that_runs(tree, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "use_net.cpp").write_text(programs()["use_net.cpp"])
    (tmp_path / "net.prototxt").write_text(NET)
    tree.run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    tree.run("cmake", "--build", tmp_path / "build")
    assert "usage: use_net" in tree.run(tmp_path / "build" / "use_net", status=1)
    missing = tree.run(tmp_path / "build" / "use_net", tmp_path / "net.prototxt", tmp_path / "none.caffemodel", status=1)
    assert "none.caffemodel" in missing


def test_another_minor_version_is_refused(tree, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace(f"Cortado {VERSION}", "Cortado 0.9"))
    (tmp_path / "use_net.cpp").write_text("int main() {}")
    said = tree.run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tree.prefix}", status=1)
    assert "0.9" in said


def test_find_package_builds_a_program_for_caffe(tree, tmp_path):
    """With COMPONENTS compat, and with pkg-config."""
    if not (tree.prefix / "lib" / "libcaffe_compat.so").exists():
        pytest.skip("built without OpenBLAS, so without libcaffe_compat")
    page = (ROOT / "docs" / "old_cpp.md").read_text()
    (tmp_path / "old_program.cpp").write_text(re.search(r"^```cpp old_program.cpp\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1])
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.20)
        project(user LANGUAGES CXX)
        find_package(Cortado {VERSION} REQUIRED COMPONENTS compat)
        add_executable(old_program old_program.cpp)
        target_link_libraries(old_program PRIVATE Cortado::compat)
        cortado_add_plugin(twice COMPAT SOURCES old_layer.cpp)
    """)
    (tmp_path / "old_layer.cpp").write_text(re.search(r"^```cpp old_layer.cpp\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1])
    tree.run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    tree.run("cmake", "--build", tmp_path / "build")
    assert "usage: old_program" in tree.run(tmp_path / "build" / "old_program", status=-6)
    assert "Twice" in tree.run(tree.caffe, "layers", f"-plugin={tmp_path / 'build' / 'twice.so'}")
    program = tree.compile(tmp_path / "old_program.cpp", tmp_path / "by_pkg_config", "cortado-compat")
    assert "usage: old_program" in tree.run(program, status=-6)
