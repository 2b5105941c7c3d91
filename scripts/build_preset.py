"""Configures a preset and builds targets of it for scripts/run_proofs.py."""
import os
import pathlib
import subprocess

import process_groups
from proofs import ROOT

MEMORY_OF_A_COMPILER = 2 << 30  # bytes


def compilers_at_once(cores, memory):
    """How many compilers may run at once with this number of cores and bytes of memory."""
    return max(1, min(cores, memory // MEMORY_OF_A_COMPILER))


def available_cores():
    """The cores that this process may use: a container or `taskset` may give it fewer than the machine has."""
    return int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", 0)) or len(os.sched_getaffinity(0))


def available_memory():
    """Memory in bytes that programs can use now."""
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return MEMORY_OF_A_COMPILER


def build(preset, jobs, targets=(), without=()):
    """Builds `targets` of the preset; without targets, everything except the programs `without`. Returns True on success.

    With CI in the environment warnings are errors; a user's compiler may have warnings that ours does not have.
    """
    folder = ROOT / "build" / preset
    folder.mkdir(parents=True, exist_ok=True)
    strict = ["-D", "CAFFE_WARNINGS_AS_ERRORS=ON"] if os.environ.get("CI") else []
    log = ROOT / "build" / f"configure-{preset}.log"
    with open(log, "w", encoding="utf-8") as output:
        status = process_groups.run(["cmake", "--preset", preset, *strict], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    if status:
        print(log.read_text(encoding="utf-8", errors="replace"), flush=True)
        return False
    targets = list(targets) or [name for name in outputs_of(folder, "all") if pathlib.Path(name).name not in without]
    ninja = ["ninja", "-C", str(folder), "-j", str(jobs)]
    return process_groups.run([*ninja, *targets]) == 0


def outputs_of(folder, target):
    """The files and targets that CMake's target `all` of a build folder consists of."""
    said = subprocess.run(["ninja", "-C", str(folder), "-t", "query", target], check=True, text=True,
                          capture_output=True).stdout
    inputs = said.split("  input: phony\n")[1].split("  outputs:")[0].split()
    return [name for entry in inputs
            for name in (outputs_of(folder, entry) if entry.endswith("/all") else [entry])]
