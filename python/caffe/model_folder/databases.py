"""Makes databases of images with the programs that are installed next to `caffe`."""
from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .. import Error, InvalidArgument
from .._counted import counted
from .._output import holding_signals
from .datasets import Dataset, Halves, ImportOptions


def run(program: Path, *words: object, cwd: Optional[Path] = None) -> str:
    """Runs a program and returns its standard output. Raises Error with its last line if it fails."""
    done = completed(program, *words, cwd=cwd)
    require_success(done)
    return done.stdout


def completed(program: Path, *words: object, cwd: Optional[Path] = None) -> subprocess.CompletedProcess:
    """Runs a program, which may fail. Bytes of its output that are not UTF-8 are surrogates, as in file names. The program ends
    with any exception here, as of a signal."""
    texts = [argument(word) if isinstance(word, Path) else str(word) for word in words]
    process = None
    try:
        with holding_signals():
            process = _started([str(program), *texts], cwd)
        output, errors = process.communicate()
    except BaseException:
        if process:
            process.kill()
            process.wait()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def _started(words: List[str], cwd: Optional[Path]) -> subprocess.Popen:
    try:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                                errors="surrogateescape", cwd=cwd)
    except OSError as error:
        raise Error(f"{words[0]}: {error.strerror}: the program is installed in the folder of `caffe`; install Cortado again") from error


def require_success(done: subprocess.CompletedProcess) -> None:
    """Raises Error with the program's last line if it has failed."""
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or [f"{done.args[0]}: status {done.returncode}"]
        raise Error(last[0].partition("] ")[2] or last[0])


def argument(path: Path) -> str:
    """A path as a command-line argument; protects a leading dash, which would make it a flag."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def import_report(options: ImportOptions, source: Path, *words: object) -> Dict[str, Any]:
    """The report of `caffe data import`; prints its warnings and the files left out."""
    report = json.loads(run(options.program, "data", "import", source, *words, "--json"))
    for warning in report["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    for file in report["left_out"]:
        print(f"left out: {file['file']}: {file['reason']}", file=sys.stderr)
    return report


def require_images(dataset: Dataset, report: Dict[str, Any]) -> None:
    """Raises InvalidArgument if a class of the set has no image in the report's database."""
    filled = {one["label"] for one in report["classes"] if one["images"]}
    empty = [name for label, name in enumerate(dataset.classes) if label not in filled]
    if empty:
        raise InvalidArgument(f"{dataset.path}: no image of the class '{empty[0]}' can be read for training; fix its images, or remove the "
                              "class")


def import_split(dataset: Dataset, options: ImportOptions, folder: Path, source: Path, *words: object) -> Halves:
    """Imports one set into train and val below `folder`, divided by the options' share."""
    report = import_report(options, source, folder / "train", *words, "--shuffle", f"--seed={options.seed}",
                           f"--val={100 * options.val:g}%")
    require_images(dataset, report)
    (folder / "train_val").rename(folder / "val")
    if report["validation_images"] == 0:
        least = max(2, math.ceil(0.5 / options.val - 1e-9))
        raise Error(f"{dataset.path}: of {counted(report['images'], 'image')} none was kept for testing: {100 * options.val:g}% of each class rounds to "
                    f"no image; add images, so that each class has {least} or more, or give a larger --val, as in --val=50%")
    return Halves("data/train", "data/val", report["images"], report["validation_images"], mean=mean_of(report))


def mean_of(report: Dict[str, Any]) -> Tuple[float, ...]:
    """Channel means, rounded to one decimal."""
    return tuple(round(value, 1) for value in report["mean_values"])
