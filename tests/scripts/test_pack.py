"""The bundle runs from any folder where it is unpacked, with its own libraries."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve()
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|resolv|anl|util)\.so")

NET = """
name: 'tiny'
layer { name: 'data' type: 'DummyData' top: 'x' top: 'y'
        dummy_data_param { shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 } data_filler { type: 'gaussian' } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'
        inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' }
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    if not (BINARIES / "CMakeCache.txt").exists() or not (BINARIES / "bin" / "caffe").exists():
        pytest.skip(f"{BINARIES} holds no build")
    if "CAFFE_SANITIZE:STRING=\n" not in (BINARIES / "CMakeCache.txt").read_text():
        pytest.skip("a build with sanitizers is not for other machines")
    folder = tmp_path_factory.mktemp("pack")
    archive = folder / "bundle.tar.gz"
    subprocess.run([sys.executable, ROOT / "scripts" / "pack.py", BINARIES, f"--output={archive}"], check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    shutil.rmtree(BINARIES / "bundle")  # so that nothing is found at the original place
    return next(path for path in folder.iterdir() if path.is_dir())


def elf_files(bundle):
    files = [path for path in bundle.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(files) > 10
    return files


def run(bundle, *command, cwd):
    """Runs with an empty environment: only the bundle itself determines where files are."""
    return subprocess.run([bundle / "bin" / command[0], *command[1:]], cwd=cwd, env={}, text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


@pytest.mark.parametrize("ending, begin", [("xz", b"\xfd7zXZ\0"), ("gz", b"\x1f\x8b")])
def test_archives_are_packed_as_their_name_says(tmp_path, ending, begin):
    loader = importlib.machinery.SourceFileLoader("pack", str(ROOT / "scripts" / "pack.py"))
    pack = importlib.util.module_from_spec(importlib.util.spec_from_loader("pack", loader))
    loader.exec_module(pack)
    (tmp_path / "cortado").mkdir()
    (tmp_path / "cortado" / "file").write_text("a")
    archive = tmp_path / f"cortado.tar.{ending}"
    pack.write(archive, tmp_path / "cortado")
    assert archive.read_bytes().startswith(begin)
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["cortado", "cortado/file"]


def test_every_library_comes_from_the_bundle(bundle):
    for program in [*(bundle / "bin").iterdir(), bundle / "lib" / "caffe_hdf5_reader"]:
        if program.read_bytes()[:4] != b"\x7fELF":
            continue
        output = subprocess.run(["ldd", program], env={}, text=True, check=True, stdout=subprocess.PIPE).stdout
        assert "not found" not in output
        for name, path in re.findall(r"(\S+) => (/\S+)", output):
            assert SYSTEM.match(name) or pathlib.Path(path).resolve().is_relative_to(bundle.resolve()), path


def test_libraries_are_looked_for_in_the_bundle_alone(bundle):
    for file in elf_files(bundle):
        dynamic = subprocess.run(["readelf", "-d", file], text=True, check=True, stdout=subprocess.PIPE).stdout
        for folders in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            assert all(folder.startswith("$ORIGIN") for folder in folders.split(":")), f"{file}: {folders}"


def test_runs_with_glibc_2_36(bundle):
    for file in elf_files(bundle):
        versions = subprocess.run(["readelf", "-VW", file], text=True, check=True, stdout=subprocess.PIPE).stdout
        newer = [version for version in re.findall(r"GLIBC_2\.(\d+)", versions) if int(version) > 36]
        assert not newer, f"{file} wants GLIBC_2.{newer[0]}"


def test_trains_where_it_was_unpacked(bundle, tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(
        "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 3 snapshot_prefix: 'tiny'")
    assert "Optimization Done." in run(bundle, "caffe", "train", "--solver=solver.prototxt", cwd=tmp_path)
    assert (tmp_path / "tiny_iter_3.caffemodel").exists()


def test_reads_hdf5_where_it_was_unpacked(bundle, tmp_path):
    """A separate program reads HDF5, and must be there with its libraries."""
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(
        "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 3 snapshot_prefix: 'h5' snapshot_format: HDF5")
    run(bundle, "caffe", "train", "--solver=solver.prototxt", "--set=max_iter=1", cwd=tmp_path)
    snapshot = next(tmp_path.glob("h5_iter_*.solverstate.h5"))
    assert "Optimization Done." in run(bundle, "caffe", "train", "--solver=solver.prototxt", f"--snapshot={snapshot.name}", cwd=tmp_path)


def test_holds_models_and_examples(bundle):
    share = bundle / "share" / "cortado"
    assert (share / "examples" / "mnist" / "lenet_solver.prototxt").exists()
    assert "conv1" in run(bundle, "caffe", "plan", f"--model={share}/models/bvlc_alexnet/deploy.prototxt", cwd=share)
