"""The contents of each component of the installation; each is one Debian package (cmake/Packages.cmake)."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve()


@pytest.fixture
def install(tmp_path):
    if not (BINARIES / "CPackConfig.cmake").exists() or not (BINARIES / "bin" / "caffe").exists():
        pytest.skip(f"{BINARIES} holds no build")

    def call(*components):
        for component in components:
            subprocess.run(["cmake", "--install", BINARIES, "--component", component, "--prefix", tmp_path], check=True,
                           stdout=subprocess.DEVNULL)
        return tmp_path
    return call


def test_programs_have_the_library_and_the_models(install):
    folder = install("programs")
    assert (folder / "bin" / "caffe").exists() and list((folder / "lib").glob("libcaffe.so.*"))
    assert os.access(folder / "lib" / "caffe_hdf5_reader", os.X_OK)
    assert (folder / "share" / "cortado" / "models" / "bvlc_alexnet" / "deploy.prototxt").exists()
    assert not (folder / "include").exists() and not list(folder.rglob("*.py[co]"))
    assert not (folder / "lib" / "libcaffe_image_formats.so").exists()


def test_formats_are_modules_alone(install):
    folder = install("formats")
    assert {path.name for path in folder.rglob("*.so")} <= {"libcaffe_image_formats.so", "libcaffe_video_frames.so"}
    assert (folder / "share" / "doc" / "cortado-formats" / "copyright").exists()


def test_development_is_headers_and_the_api_of_caffe(install):
    folder = install("development")
    assert (folder / "include" / "caffe" / "caffe.hpp").exists()
    assert (folder / "include" / "caffe" / "compat" / "caffe" / "layers" / "conv_layer.hpp").exists()
    assert {path.name for path in folder.rglob("*.so")} <= {"libcaffe.so", "libcaffe_compat.so"}
    assert all(path.is_symlink() for path in folder.rglob("*.so"))


def test_pages_and_examples_ask_for_this_version():
    version = re.search(r"project\(cortado VERSION (\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    asked = {f"{path.relative_to(ROOT)}: {found}" for folder, form in (("docs", "*.md"), ("examples", "CMakeLists.txt"))
             for path in (ROOT / folder).rglob(form)
             for found in re.findall(r"find_package\(Cortado (\d[\d.]*)", path.read_text(encoding="utf-8"))}
    assert len(asked) >= 3 and all(one.endswith(": " + version) for one in asked), asked


def test_installed_headers_include_installed_ones(install):
    """Quickly; tests/install/test_headers.py compiles each of them."""
    include = install("development") / "include"
    missing = [f"{header.relative_to(include)}: {name}" for header in (include / "caffe").rglob("*.h*") if "compat" not in header.parts
               for name in re.findall(r'^ *# *include "(caffe/[^"]+)"', header.read_text(encoding="utf-8"), re.MULTILINE)
               if not (include / name).exists()]
    assert missing == []


def test_runtime_is_a_library_and_a_header(install):
    folder = install("runtime")
    assert {path.name for path in (folder / "lib").iterdir()} == {
        path.name for path in (folder / "lib").glob("libcortado_runtime.so*")} != set()
    assert [path.relative_to(folder) for path in (folder / "include").rglob("*.*")] == [pathlib.Path("include/cortado/runtime.h")]


def test_python_finds_the_library_beside_it(install):
    if not list(BINARIES.glob("python/caffe/_caffe*.so")):
        pytest.skip("a build without the Python package")
    site = install("programs", "python") / "lib" / "python3" / "dist-packages"
    code = "import caffe; print(caffe.__file__); print(open('/proc/self/maps').read())"
    printed = subprocess.run([sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE, cwd=site.parent,
                             env={"PYTHONPATH": str(site)}).stdout
    assert printed.startswith(str(site))
    assert {pathlib.Path(name).parent for name in re.findall(r"\S+/libcaffe\.so\S*", printed)} == {site.parents[1]}


def test_python_has_all_that_it_reads(install):
    """A wheel takes the whole folder; the build copies files by their extensions."""
    if not list(BINARIES.glob("python/caffe/_caffe*.so")):
        pytest.skip("a build without the Python package")
    site = install("python") / "lib" / "python3" / "dist-packages"
    sources = {path.relative_to(ROOT / "python") for path in (ROOT / "python" / "caffe").rglob("*.*")
               if "__pycache__" not in path.parts and path.suffix not in (".so", ".md")}
    assert sources <= {path.relative_to(site) for path in site.rglob("*.*")}


def test_a_wheel_has_the_reader_of_hdf5_files(tmp_path):
    """It is installed next to libcaffe.so, and only the rules for wheels put both into the package."""
    cache = (BINARIES / "CMakeCache.txt").read_text() if (BINARIES / "CMakeCache.txt").exists() else ""
    if "CAFFE_HDF5:BOOL=ON" not in cache:
        pytest.skip(f"{BINARIES} holds no build with HDF5")
    subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, "-DSKBUILD=2", f"-DSKBUILD_SCRIPTS_DIR={tmp_path}/bin", "-DCAFFE_BUILD_TESTS=OFF",
                    "-DCAFFE_BUILD_BENCHMARKS=OFF", "-DCAFFE_BUILD_EXAMPLES=OFF", "-GNinja", f"-DPython_EXECUTABLE={sys.executable}"],
                   check=True, stdout=subprocess.DEVNULL)
    rules = (tmp_path / "python" / "cmake_install.cmake").read_text()
    files = re.findall(r'file\(INSTALL DESTINATION "\$\{CMAKE_INSTALL_PREFIX\}/caffe/lib" TYPE \w+ FILES "([^"]*)"', rules)
    assert {"caffe_hdf5_reader", "libcaffe.so"} <= {re.sub(r"(\.\d+)+$", "", pathlib.Path(file).name) for file in files}


def test_every_package_says_what_it_is(install):  # pylint: disable=unused-argument
    install()
    config = (BINARIES / "CPackConfig.cmake").read_text()
    components = re.search(r'set\(CPACK_COMPONENTS_ALL "(.*)"\)', config).group(1).split(";")
    assert components[:3] == ["programs", "formats", "development"]
    for component in components:
        for field in ("PACKAGE_NAME", "PACKAGE_SECTION", "DESCRIPTION"):
            assert f"set(CPACK_DEBIAN_{component.upper()}_{field} " in config
