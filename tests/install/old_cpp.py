"""Programs and layers written for Caffe's C++ API, compiled as their users do: only with an installed tree."""
import os
import pathlib
import subprocess

from conftest import ROOT, Tree

SOURCES = ROOT / "tests" / "compat"
# The places of OpenCV and HDF5 on Debian; systems that have them elsewhere do not need this.
OTHER_INCLUDES = ["-isystem/usr/include/opencv4", "-isystem/usr/include/hdf5/serial"]


class OldTree(Tree):
    """An installed tree in which programs and layers for Caffe are compiled."""

    def compile(self, source, *options, standard="c++11"):
        """Compiles a source file to a program, or with -shared to a library; warnings are errors. `options` has -l for libraries."""
        output = self.prefix / source.with_suffix(".so" if "-shared" in options else "").name
        self.run(self.compiler, f"-std={standard}", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{self.prefix}/include/caffe/compat",
                 f"-I{self.prefix}/include", *OTHER_INCLUDES, source, "-o", output, *options, f"-L{self.prefix}/lib",
                 f"-Wl,-rpath,{self.prefix}/lib", "-lcaffe_compat", "-lcaffe", "-lprotobuf", "-lglog", "-lgflags")
        return output

    def compile_layers(self, *names):
        return [self.compile(SOURCES / "layers" / f"{name}_layer.cpp", "-shared", "-fPIC") for name in names]


def run(command, status=0, **environment):
    """Returns the output of a program, including errors and log."""
    done = subprocess.run([str(part) for part in command], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, "GLOG_logtostderr": "1", **{name: str(value) for name, value in environment.items()}})
    assert done.returncode == status, done.stdout[-4000:]
    return done.stdout


def caffe_of(layers):
    """The program `caffe` of the tree in which these layers were compiled."""
    return layers[0].parent / "bin" / "caffe"


def run_with_layers(layers, command, status=0, **environment):
    """Like run(), with the layers as plug-ins: `caffe` loads them, other programs learn of them when they start."""
    if pathlib.Path(command[0]).name == "caffe":
        return run([*command, *(f"--plugin={layer}" for layer in layers)], status, **environment)
    return run(command, status, LD_PRELOAD=":".join(str(layer) for layer in layers), **environment)
