"""Programs and layers written for Caffe's C++ API, compiled as their users do: with an installed tree and nothing else."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_INSTALL_BUILD", os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release"))).resolve()
SOURCES = ROOT / "tests" / "compat"
# Where Debian has OpenCV and HDF5; systems that keep them elsewhere do without.
OTHER_INCLUDES = ["-isystem/usr/include/opencv4", "-isystem/usr/include/hdf5/serial"]


class Tree:
    """An installed tree, and what is compiled with it."""

    def __init__(self, folder):
        self.root = folder
        for component in ("programs", "formats", "development"):
            subprocess.run(["cmake", "--install", BINARIES, "--component", component, "--prefix", folder], check=True,
                           stdout=subprocess.DEVNULL)

    def compile(self, source, *options, standard="c++11"):
        """The program, or with -shared the library, of a source file; warnings are errors. Libraries come with -l in `options`."""
        output = self.root / source.with_suffix(".so" if "-shared" in options else "").name
        include = self.root / "include"
        done = subprocess.run(
            [os.environ.get("CXX", "c++"), f"-std={standard}", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{include}/caffe/compat",
             f"-I{include}", *OTHER_INCLUDES, source, "-o", output, *options, f"-L{self.root}/lib", f"-Wl,-rpath,{self.root}/lib",
             "-lcaffe_compat", "-lcaffe", "-lprotobuf", "-lglog", "-lgflags"],
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{source.name}: {done.stdout[:4000]}"
        return output

    def compile_layers(self, *names):
        return [self.compile(SOURCES / "layers" / f"{name}_layer.cpp", "-shared", "-fPIC") for name in names]


def run(command, status=0, **environment):
    """What a program prints, errors and log included."""
    done = subprocess.run([str(part) for part in command], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, "GLOG_logtostderr": "1", **{name: str(value) for name, value in environment.items()}})
    assert done.returncode == status, done.stdout[-4000:]
    return done.stdout


def caffe_of(layers):
    """The program `caffe` of the tree into which these layers were compiled; without layers, of the build."""
    return (layers[0].parent if layers else BINARIES) / "bin" / "caffe"


def run_with_layers(layers, command, status=0, **environment):
    """The same with the layers as plug-ins: `caffe` loads them, other programs get to know them as they start."""
    if pathlib.Path(command[0]).name == "caffe":
        return run([*command, *(f"--plugin={layer}" for layer in layers)], status, **environment)
    return run(command, status, LD_PRELOAD=":".join(str(layer) for layer in layers), **environment)
