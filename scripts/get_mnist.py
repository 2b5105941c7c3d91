#!/usr/bin/env python3
"""Finds the MNIST digits, downloads them, or renders digits instead, and reports which.

  scripts/get_mnist.py [--mnist DIR]

Looks only in DIR or MNIST_DIR if one is given; else in data/mnist; else downloads into it and checks SHA-256; else,
without a network, renders digits into data/generated_digits. Prints two lines: the folder, and a description of its
content.
"""
import argparse
import hashlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHA256 = {
    "train-images-idx3-ubyte.gz": "71524e2cd1ad2968737f7f2f2ff69cbfc32df8ccddff51593f7cb2d4e0eb5b64",
    "train-labels-idx1-ubyte.gz": "fe03b8bd7915f70bf5aa08be480aa413fbd85afcaa58b35d230d335f284fd88e",
    "t10k-images-idx3-ubyte.gz": "5634745efa576a17e7d4cf5cd9d09123c75e6538e5114267c2d156edaf519341",
    "t10k-labels-idx1-ubyte.gz": "ae18e77e031ccde52407f794d123116439864147d33ac992975f85dd4dc42af6",
}
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
TIMEOUT_SECONDS = 5


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def missing(folder):
    """Names of those of the four files that the folder has neither plain nor gzipped."""
    return [name[:-3] for name in SHA256 if not (folder / name).exists() and not (folder / name[:-3]).exists()]


def is_original(folder):
    return all((folder / name).exists() and digest(folder / name) == wanted for name, wanted in SHA256.items())


def describe(folder):
    known = "the original files, by SHA-256" if is_original(folder) else "not compared with the original files"
    return f"MNIST from {folder} ({known})"


def can_resolve(url):
    """True if the host's name resolves; a resolver without a network may take minutes to answer."""
    found = []

    def resolve():
        try:
            found.extend(socket.getaddrinfo(urllib.parse.urlsplit(url).hostname, None))
        except OSError:
            pass

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(TIMEOUT_SECONDS)
    return bool(found)


def fetch(url, target, wanted):
    """Downloads a file; it gets its name only when it is complete and verified."""
    partial = target.with_name(target.name + ".partial")
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer, partial.open("wb") as out:
        size, done = int(answer.headers.get("Content-Length") or 0), 0
        while block := answer.read(1 << 16):
            done += out.write(block)
            if sys.stderr.isatty() and size:
                print(f"\r{target.name}: {100 * done // size} %  ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if digest(partial) != wanted:
        partial.unlink()
        raise ValueError(f"{url}: SHA-256 differs from the original file's")
    partial.rename(target)


def download(folder, mirrors=MIRRORS):
    """The mirror that delivered the files, or None; reports why each failed."""
    folder.mkdir(parents=True, exist_ok=True)
    for mirror in mirrors:
        if urllib.parse.urlsplit(mirror).scheme != "file" and not os.environ.get("https_proxy") and not can_resolve(mirror):
            print(f"{mirror}: no such host, or no network", file=sys.stderr)
            continue
        try:
            for name, wanted in SHA256.items():
                if not (folder / name).exists() or digest(folder / name) != wanted:
                    fetch(mirror + name, folder / name, wanted)
            return mirror
        except (OSError, ValueError) as error:
            print(f"{mirror}: {error}", file=sys.stderr)
    return None


def render(folder):
    if missing(folder):
        print("No mirror answered; rendering digits instead, which takes a quarter of a minute", file=sys.stderr)
        partial = folder.with_name(folder.name + ".partial")
        subprocess.run([sys.executable, ROOT / "scripts" / "make_digits.py", partial], check=True)
        partial.rename(folder)
    return folder


def locate(given, home, mirrors=MIRRORS):
    """Returns (folder, description)."""
    if given:
        folder = pathlib.Path(given).resolve()
        if absent := missing(folder):
            sys.exit(f"{folder} has no {absent[0]}, plain or .gz (MNIST is four files; missing: {', '.join(absent)})")
        return folder, describe(folder)
    folder = home / "mnist"
    if not missing(folder):
        return folder, describe(folder)
    if mirror := download(folder, mirrors):
        return folder, f"MNIST downloaded from {mirror} into {folder} (SHA-256 checked)"
    folder = render(home / "generated_digits")
    return folder, (f"NOT MNIST: no mirror could be reached, so digits were rendered into {folder}; "
                    "their accuracy says nothing about MNIST's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", default=os.environ.get("MNIST_DIR"), help="folder with the four idx files")
    folder, what = locate(parser.parse_args().mnist, ROOT / "data")
    print(f"{folder}\n{what}")


if __name__ == "__main__":
    main()
