#!/usr/bin/env python3
"""Writes FILE.cdx.json next to each wheel, Debian package and bundle in a folder: its contents, as CycloneDX.

  scripts/sbom.py FOLDER

A component is a shared library that the file contains and this project does not build, with the version of the
Debian package from which it was copied, or a dependency in the file's metadata. Run it on the system that built the
files. Needs dpkg and cyclonedx-python-lib (PyPI).
"""
import argparse
import email
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

OWN = re.compile(r"lib(caffe|cortado)[._]|_caffe\.")  # libraries that this project builds


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def system_libraries():
    """The loader's libraries, by name without the hash that auditwheel adds."""
    lines = output_of("/sbin/ldconfig", "-p").splitlines()
    files = [pathlib.Path(line.split(" => ")[1]) for line in lines if " => " in line]
    names = {}
    for file in files:
        names.setdefault(file.name, file)
        names.setdefault(file.resolve().name, file)
    return names


def owner(file):
    """The Debian package of a library and its version, or None."""
    resolved = file.resolve()
    # Debian 12 registers files of /usr/lib under /lib.
    for path in (resolved, pathlib.Path(str(resolved).removeprefix("/usr"))):
        found = subprocess.run(["dpkg-query", "--search", path], check=False, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if found:
            package = found.split(":")[0]
            return package, output_of("dpkg-query", "--show", "--showformat=${Version}\n", package).split("\n")[0]
    return None


def library(file, known):
    """A component for a library that was copied into the file, or None for a library of this project."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", file.name)
    if OWN.match(name):
        return None
    original = known.get(name)
    package = owner(original) if original else None
    if not package:
        sys.exit(f"{file.name}: no Debian package of this system has it")
    return Component(type=ComponentType.LIBRARY, name=name, version=package[1], bom_ref=f"library {name}",
                     purl=PackageURL("deb", "debian", package[0], package[1]))


def dependency(kind, text):
    """A component for "name (>= 1.2)" of a Debian package or "name>=1.2" of a wheel."""
    name = re.match(r"[\w.+-]+", text).group(0)
    return Component(type=ComponentType.LIBRARY, name=name, description=f"needed, not inside: {text}",
                     bom_ref=f"needs {text}", purl=PackageURL(kind, "debian" if kind == "deb" else None, name))


def unpack(file, folder):
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
    elif file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--extract", file, folder], check=True)
    else:
        with tarfile.open(file) as archive:
            archive.extractall(folder)


def dependencies(file, folder):
    if file.suffix == ".deb":
        return [dependency("deb", text) for text in output_of("dpkg-deb", "--field", file, "Depends").strip().split(", ")]
    for metadata in folder.glob("*.dist-info/METADATA"):
        texts = email.message_from_string(metadata.read_text()).get_all("Requires-Dist", [])
        return [dependency("pypi", text) for text in texts if "extra ==" not in text]
    return []


def describe(file, known):
    name, version = re.match(r"(.+?)[-_](\d+(?:\.\d+)+)", file.name).groups()
    bom = Bom()
    bom.metadata.component = Component(type=ComponentType.FILE, name=name, version=version, bom_ref=file.name)
    with tempfile.TemporaryDirectory() as folder:
        unpack(file, folder)
        files = [path for path in pathlib.Path(folder).rglob("*.so*") if path.is_file() and not path.is_symlink()]
        found = [library(path, known) for path in sorted(files)] + dependencies(file, pathlib.Path(folder))
    bom.components.update(component for component in found if component)
    bom.register_dependency(bom.metadata.component, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    known = system_libraries()
    for file in sorted(path for pattern in ("*.whl", "*.deb", "*.tar.gz") for path in folder.glob(pattern)):
        (folder / f"{file.name}.cdx.json").write_text(describe(file, known) + "\n")


if __name__ == "__main__":
    main()
