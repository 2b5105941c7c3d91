"""The files of scripts/release.sh run on a Debian system without this project's libraries.

CAFFE_RELEASE names a folder of finished files; without it the slow tests make them.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from debian_root import DebianRoot

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(cortado VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
RELEASE = ROOT / "scripts" / "release.sh"
# Needs $BIN, the folder of the programs, $PYTHON and $EXAMPLES.
TRAIN = """
cd $(mktemp -d)
mkdir -p examples/mnist
cp $EXAMPLES/mnist/*.prototxt examples/mnist
$PYTHON /packages/make_digits.py digits --train 4000 --test 1000
$BIN/convert_mnist_data --backend=lmdb digits/train-images-idx3-ubyte digits/train-labels-idx1-ubyte examples/mnist/mnist_train_lmdb
$BIN/convert_mnist_data --backend=lmdb digits/t10k-images-idx3-ubyte digits/t10k-labels-idx1-ubyte examples/mnist/mnist_test_lmdb
$BIN/caffe train examples/mnist/lenet_solver.prototxt --set max_iter=200 --set test_interval=200 --set test_iter=10
"""
IMAGES = """
cd $(mktemp -d)
$PYTHON - <<'END'
import struct, zlib
import caffe
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + bytes([x * 20 for x in range(12)] * 3) for _ in range(12))
open("a.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0))
                          + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
open("list", "w").write("a.png 0\\n")
open("net", "w").write('''layer { name: 'd' type: 'ImageData' top: 'd' top: 'l'
    image_data_param { source: 'list' batch_size: 1 } }'''.replace("'", chr(34)))
net = caffe.Net("net", caffe.TEST)
net.forward()
print("png", net.blobs["d"].data.shape, net.blobs["d"].data.max())
END
"""


def release(*arguments, status=0):
    done = subprocess.run(["bash", RELEASE, *arguments], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == status, done.stdout[-4000:]
    return done.stdout


def test_help_names_every_step():
    output = release("--help")
    assert all(step in output for step in ("wheel", "deb", "bundle", "sbom", "sums", "all"))


def test_unknown_steps_are_refused():
    assert "unknown step or option rpm" in release("rpm", status=2)


def test_packages_and_archive_build_every_folder_that_is_installed():
    folders = set(re.findall(r"^ *add_subdirectory\((\S+)\)", (ROOT / "CMakeLists.txt").read_text(), re.M))
    built = re.findall(r"(\S+)/all\b", re.search(r"^installed=\((.*)\)$", RELEASE.read_text(), re.M)[1])
    assert {*built, "python"} == folders - {"examples", "benchmarks", "tests", "tests/fuzz"}


def test_lists_know_the_libraries_of_this_project():
    own = re.compile(re.search(r'^OWN = re.compile\(r"(.*)"\)', (ROOT / "scripts" / "sbom.py").read_text(), re.M)[1])
    libraries = set(re.findall(r"^ *add_library\((\S+) (?:SHARED|MODULE)", "".join(
        file.read_text() for file in ROOT.glob("**/CMakeLists.txt") if "build" not in file.parts and "tests" not in file.parts), re.M))
    names = [f"lib{name.replace('${family}', 'openmpi')}.so" for name in libraries] + ["_caffe.cpython-311-x86_64-linux-gnu.so"]
    assert len(names) > 3 and [name for name in names if not own.match(name)] == []
    assert not own.match("libprotobuf.so.32")


def test_sums_are_of_all_files_but_themselves(tmp_path):
    for name in ("a.whl", "b.deb"):
        (tmp_path / name).write_text(name)
    for _ in range(2):
        release(f"--output={tmp_path}", "sums")
        assert (tmp_path / "SHA256SUMS").read_text() == "".join(
            f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("a.whl", "b.deb"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with all files of a release, and other files that the tests need."""
    if not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
    made = os.environ.get("CAFFE_RELEASE")
    if not made:
        made = tmp_path_factory.mktemp("release")
        release(f"--output={made}", "all")
    folder = tmp_path_factory.mktemp("packages")
    for file in (*pathlib.Path(made).iterdir(), ROOT / "scripts" / "make_digits.py"):
        os.link(file, folder / file.name) if file.stat().st_dev == folder.stat().st_dev else shutil.copy(file, folder)
    shutil.copytree(ROOT / "examples" / "mnist", folder / "examples" / "mnist", ignore=shutil.ignore_patterns("*_lmdb*"))
    return folder


@pytest.fixture
def root(tmp_path, packages):
    return DebianRoot(tmp_path, packages)


def trains(output):
    return float(re.findall(r"accuracy = ([\d.]+)", output)[-1]) > 0.9 and "Optimization Done." in output


def test_the_wheel_needs_only_pip_and_libx11(root):
    # manylinux requires the system to have libX11.
    root.run("apt-get -qq update; apt-get -qq install -y --no-install-recommends python3-venv libx11-6")
    # Downloaded from this system, because it may have its own settings for the package index.
    wheel = next(root.packages.glob("*.whl"))
    soversion = VERSION.rpartition(".")[0]
    assert {f"caffe/lib/lib{name}.so.{soversion}" for name in ("caffe", "caffe_compat")} <= set(zipfile.ZipFile(wheel).namelist())
    subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--dest", root.packages / "wheels", wheel], check=True)
    root.run("python3 -m venv /venv; /venv/bin/pip -q install --no-index --find-links /packages/wheels cortado")
    assert VERSION in root.run("/venv/bin/caffe --version; /venv/bin/python -c 'import caffe; print(caffe.__version__)'")
    environment = "BIN=/venv/bin PYTHON=/venv/bin/python EXAMPLES=/packages/examples; "
    assert trains(root.run(environment + TRAIN))
    assert "png (1, 3, 12, 12) 220" in root.run(environment + IMAGES)


def test_the_debian_packages_need_nothing_but_apt(root):
    root.run("apt-get -qq update; apt-get -qq install -y --no-install-recommends /packages/cortado_*.deb")
    assert VERSION in root.run("caffe --version")
    assert "conv1" in root.run("caffe plan /usr/share/cortado/examples/mnist/lenet.prototxt")
    root.run("apt-get -qq install -y --no-install-recommends /packages/python3-cortado_*.deb")
    environment = "BIN=/usr/bin PYTHON=python3 EXAMPLES=/usr/share/cortado/examples; "
    assert trains(root.run(environment + TRAIN))
    layers = root.run("cd /usr/share/cortado; PYTHONPATH=examples/python_layer caffe train examples/python_layer/linreg_solver.prototxt")
    assert "Iteration 200, loss = 0.00" in layers
    root.run("apt-get -qq install -y --no-install-recommends /packages/cortado-formats_*.deb")
    assert "png (1, 3, 12, 12) 220" in root.run(environment + IMAGES)
    root.run("apt-get -qq remove -y cortado; ! command -v caffe; ! test -e /usr/share/cortado; ! test -e /usr/lib/python3/dist-packages/caffe")


def advised(archive):
    """The packages that docs/cpp.md tells to install with the archive, or as Debian packages."""
    commands = re.findall(r"^apt-get install (.*)$", (ROOT / "docs" / "cpp.md").read_text(), re.M)
    (names,) = [names for names in commands if archive != (".deb" in names)]
    return names.replace("./", "/packages/")


def check_that_programs_build(root, prefix, packages):
    """Runs tests/install: first with only the packages of the page, then with the libraries that old programs call themselves."""
    install = "apt-get -qq install -y --no-install-recommends "
    test = (f"cd /tmp; ln -sfn /usr/lib/python3/dist-packages python; export CAFFE_INSTALL_PREFIX={prefix} CAFFE_BINARY_DIR=/tmp "
            "PYTHONDONTWRITEBYTECODE=1; python3 -m pytest -q -p no:cacheprovider /checkout/tests/install/")
    root.run(f"apt-get -qq update; {install} {packages}")
    for name in ("headers", "programs", "plugins", "runtime"):
        root.run(f"{install} python3-pytest python3-protobuf; {test}test_{name}.py")
    root.run(f"{install} python3-numpy libopencv-imgcodecs-dev libopencv-imgproc-dev libhdf5-dev libboost-dev libgtest-dev; "
             f"{test}test_old_cpp.py")


def test_programs_build_with_the_debian_packages(root):
    check_that_programs_build(root, "/usr", f"{advised(archive=False)} /packages/python3-cortado_*.deb /packages/cortado-formats_*.deb "
                                         "/packages/libcortado-runtime_*.deb")


def test_programs_build_with_the_archive(root):
    root.run("mkdir /opt/cortado; tar xf /packages/cortado-*.tar.gz -C /opt/cortado --strip-components=1")
    check_that_programs_build(root, "/opt/cortado", advised(archive=True))


def test_lists_say_what_is_inside(packages):
    lists = {path.name: json.loads(path.read_text()) for path in packages.glob("*.cdx.json")}
    assert {name.removesuffix(".cdx.json") for name in lists} == {
        path.name for pattern in ("*.whl", "*.deb", "*.tar.gz") for path in packages.glob(pattern)}
    for name, content in lists.items():
        assert content["bomFormat"] == "CycloneDX" and content["metadata"]["component"]["version"] == VERSION
        names = {component["name"] for component in content["components"]}
        if not name.endswith(".deb.cdx.json"):
            assert any(name.startswith("libdnnl") for name in names)
            assert all("version" in component for component in content["components"] if ".so" in component["name"])


def test_sums_hold(packages):
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=packages, check=True)
