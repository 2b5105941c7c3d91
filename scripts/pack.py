#!/usr/bin/env python3
"""Packs a build into a bundle that runs on other machines.

  scripts/pack.py [BUILD] [--output FILE_OR_FOLDER] [--limit-mb N]

Installs BUILD (build/cuda-distribution, else build/cuda-release, else build/cpu-release) into a fresh folder, adds every
library that its programs need, and writes cortado-VERSION-linux-x86_64[-cuda].tar.gz next to it, or FILE. A FILE that ends
in .xz is smaller and takes longer to write. Omitted are the parts of the C library (the target has glibc 2.36 or newer),
the NVIDIA driver, and cuDNN, cuBLAS and NCCL, which are searched for where the bundle runs. A CUDA build includes
bin/caffe-gpu-check, which runs the tests and benchmarks of libexec/ on the GPU that it finds. The module for image formats
other than JPEG is included; OpenCV's imgcodecs, which it needs and which depends on a hundred libraries, is not.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Parts of glibc, which must match the loader of the running system.
SYSTEM = re.compile(r"(ld-linux.*|linux-vdso|libc|libm|libdl|librt|libpthread|libresolv|libutil|libnss_.*|libanl)\.so")
# Too large to include, or tied to the driver.
NVIDIA = re.compile(r"lib(cuda|cudnn.*|cublas.*|nccl|nvrtc.*|nvidia.*)\.so")
LIMIT_MB = 60


def needed_libraries(file):
    """Paths of all libraries that a program or library loads at start, by name."""
    output = subprocess.run(["ldd", file], check=True, text=True, stdout=subprocess.PIPE).stdout
    missing = re.findall(r"(\S+) => not found", output)
    if missing:
        sys.exit(f"{file}: {', '.join(missing)} not found")
    return dict(re.findall(r"(\S+) => (/\S+)", output))


def programs(stage):
    return [path for folder in ("bin", "libexec/cortado") for path in sorted((stage / folder).glob("*")) if path.is_file()]


def libraries(stage):
    return [path for path in sorted((stage / "lib").iterdir()) if path.is_file() and not path.is_symlink()]


def add_libraries(stage):
    """Copies the libraries that the staged programs need into lib/."""
    ours = {path.name for path in (stage / "lib").iterdir()}
    # Modules for image formats use the target machine's libraries, if it has them.
    linked = [path for path in libraries(stage) if ".so." in path.name]
    for program in [*programs(stage), *linked]:
        if program.read_bytes()[:4] != b"\x7fELF":
            continue
        for name, path in needed_libraries(program).items():
            if name in ours or SYSTEM.match(name) or NVIDIA.match(name):
                continue
            shutil.copy(path, stage / "lib" / name)  # follows symbolic links
            ours.add(name)


def leave_out_weights(stage):
    """Those of the recipes, which `caffe new` and `caffe train` make again."""
    for snapshots in (stage / "share/cortado/examples/recipes").glob("*/snapshots"):
        shutil.rmtree(snapshots)


def strip(stage):
    for file in [*programs(stage), *libraries(stage)]:
        if file.read_bytes()[:4] == b"\x7fELF":
            file.chmod(0o755)
            subprocess.run(["strip", "--strip-unneeded", file], check=True)


def write(archive, folder):
    packing = {"mode": "w:xz"} if archive.suffix == ".xz" else {"mode": "w:gz", "compresslevel": 9}
    with tarfile.open(archive, **packing) as tar:
        tar.add(folder, arcname=folder.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    builds = [ROOT / "build" / preset for preset in ("cuda-distribution", "cuda-release", "cpu-package", "cpu-release")]
    parser.add_argument("build", nargs="?", type=pathlib.Path,
                        default=next((build for build in builds if build.is_dir()), builds[-1]))
    parser.add_argument("--output", type=pathlib.Path, help="the archive to write, or its folder")
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB, help="fail above this size (%(default)s)")
    options = parser.parse_args()

    cache = (options.build / "CMakeCache.txt").read_text()
    version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", cache, re.M).group(1)
    kind = "-cuda" if re.search(r"^CAFFE_CUDA_FOUND:\w+=(ON|TRUE|1)$", cache, re.M) else ""
    name = f"cortado-{version}-linux-{os.uname().machine}{kind}"
    stage = options.build / "bundle" / name
    if stage.parent.exists():
        shutil.rmtree(stage.parent)
    install = ["cmake", "--install", options.build, "--prefix", stage]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    if kind:
        subprocess.run([*install, "--component", "gpu_check"], check=True, stdout=subprocess.DEVNULL)
    leave_out_weights(stage)
    add_libraries(stage)
    strip(stage)

    archive = options.output or options.build
    if archive.is_dir():
        archive /= f"{name}.tar.gz"
    write(archive, stage)
    megabytes = archive.stat().st_size / 1e6
    print(f"{archive}: {megabytes:.1f} MB")
    if megabytes > options.limit_mb:
        sys.exit(f"more than {options.limit_mb} MB; largest files: " + ", ".join(
            f"{file.name} {file.stat().st_size / 1e6:.0f}" for file in sorted(
                (path for path in stage.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)[:8]))


if __name__ == "__main__":
    main()
