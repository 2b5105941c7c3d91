#!/usr/bin/env python3
"""Tries each convolution kernel with random geometries, under each instruction set that oneDNN and this processor have.

    scripts/sweep_convolutions.py [--geometries N] [--newest N] [--sets NAMES] [--seed N] [--build FOLDER]

Prints the processor, and for each set and type how many geometries each kernel computed, how many of them wrongly, and
how many were refused because a check found oneDNN wrong. The exit status is 1 if one is wrong.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Values of ONEDNN_MAX_CPU_ISA, and the processor feature each needs. oneDNN uses less for names that it does not know.
SETS = [("SSE41", "sse4_1"), ("AVX2", "avx2"), ("AVX2_VNNI", "avx_vnni"), ("AVX512_CORE", "avx512bw"),
        ("AVX512_CORE_VNNI", "avx512_vnni"), ("AVX512_CORE_BF16", "avx512_bf16"), ("AVX512_CORE_AMX", "amx_tile")]
# Types whose kernels exist for few processors.
FEW_BITS = ["bfloat16", "uint8", "int8"]


def processor():
    """The processor's name, and the names of its features."""
    text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    name = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    flags = re.search(r"^flags\s*:\s*(.*)$", text, re.M)
    return name.group(1) if name else "unknown processor", set(flags.group(1).split()) if flags else set()


def sweep(program, instructions, filters, geometries, seed):
    """Prints the program's report for each kernel; returns True if all were right."""
    with tempfile.TemporaryDirectory() as folder:  # a fresh cache ignores earlier results
        environment = dict(os.environ, ONEDNN_MAX_CPU_ISA=instructions, CAFFE_SWEEP=str(geometries), CAFFE_SWEEP_SEED=str(seed),
                           CAFFE_ALGORITHM_CACHE=f"{folder}/algorithms.tsv")
        done = subprocess.run([program, f"--gtest_filter={filters}", "--gtest_brief=1"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.splitlines()
    counts = [line for line in lines if " geometries, " in line]
    print("\n".join(f"{instructions}: {line}" for line in counts), flush=True)
    if done.returncode == 0 and counts:
        return True
    print("\n".join(line for line in lines if line not in counts), file=sys.stderr)
    if done.returncode < 0 or not counts:
        print(f"{instructions}: {program} ended with status {done.returncode}", file=sys.stderr)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--geometries", type=int, default=2000, help="of each type, under each set (2000)")
    parser.add_argument("--newest", type=int, default=10000, help="of bfloat16 and 8 bits, under the newest set (10000)")
    parser.add_argument("--sets", help=f"only these, in this order, of {','.join(name for name, _ in SETS)}")
    parser.add_argument("--seed", type=int, default=1, help="of the geometries (1)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cpu-release", help="folder of the build")
    options = parser.parse_args()
    program = options.build / "bin" / "conformance_test"
    if not program.is_file():
        sys.exit(f"{program}: no such file; build it (ninja -C {options.build} conformance_test) or give --build")
    name, features = processor()
    sets = [instructions for instructions, feature in SETS if feature in features] or ["ALL"]
    wanted = options.sets.split(",") if options.sets else sets
    if set(wanted) - set(sets):
        parser.error(f"--sets {options.sets}: this processor has {','.join(sets)}")
    print(f"{name}: {', '.join(sets)}", flush=True)
    right = [sweep(program, one, "*ConvSweep*", options.geometries, options.seed) for one in wanted]
    few = ":".join(f"*ConvSweep*/{dtype}" for dtype in FEW_BITS)
    right.append(sweep(program, sets[-1], few, options.newest, options.seed + 1))
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
