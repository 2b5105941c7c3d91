"""The tree that a user installs, from the build that CAFFE_INSTALL_BUILD names or from the build of the other tests.
CAFFE_INSTALL_PREFIX names a tree that is already installed, as tests/scripts/test_release.py does on a Debian system
without this project."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tree:
    """An installation prefix, and how programs are compiled against it."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.compiler = shutil.which(os.environ.get("CXX", "c++"))
        assert self.compiler, "no C++ compiler; CXX names one"
        self.caffe = prefix / "bin" / "caffe"

    def pkg_config(self, *arguments):
        return subprocess.run(["pkg-config", *arguments], check=True, text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}).stdout.split()

    def run(self, *command, status=0, **options):
        """Runs a command that must end with that status. Returns its output."""
        done = subprocess.run(command, check=False, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **options)
        assert done.returncode == status, done.stdout[-6000:]
        return done.stdout

    def compile(self, source, program, package="cortado", *flags):
        """Compiles and links one file with the options of `pkg-config`."""
        self.run(self.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags,
                 *self.pkg_config("--cflags", "--libs", package), f"-Wl,-rpath,{self.prefix / 'lib'}")
        return program


@pytest.fixture(scope="session")
def build():
    folder = os.environ.get("CAFFE_INSTALL_BUILD", os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release"))
    folder = pathlib.Path(folder).resolve()
    if not (folder / "bin" / "caffe").exists():
        pytest.skip(f"{folder} holds no build")
    return folder


@pytest.fixture(scope="session")
def tree(request, tmp_path_factory):
    if "CAFFE_INSTALL_PREFIX" in os.environ:
        return Tree(pathlib.Path(os.environ["CAFFE_INSTALL_PREFIX"]))
    build = request.getfixturevalue("build")
    prefix = tmp_path_factory.mktemp("installed")
    for component in ("programs", "formats", "development"):
        subprocess.run(["cmake", "--install", build, "--component", component, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
    return Tree(prefix)
