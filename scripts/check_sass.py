#!/usr/bin/env python3
"""Compares nvcc's code for the hot CUDA kernels with the limits in scripts/sass_limits.json.

    scripts/check_sass.py                   compile for sm_90, disassemble, compare, print the table
    scripts/check_sass.py --only lrn        kernels whose name contains the text
    scripts/check_sass.py --markdown        the table in the form of docs/gpu_internals.md
    scripts/check_sass.py --path NAME       the instructions of one kernel's loop
    scripts/check_sass.py --record          set the limits to the measured values, with some slack

It replaces a GPU: a kernel that only moves memory runs at memory speed if its loop issues few enough
instructions, in wide accesses, with enough loads in flight. Needs nvcc (PATH, CUDA_HOME or
/usr/local/cuda) and nvdisasm (there, or where scripts/install_dependencies.sh cuda puts it).

The model, for an H200: a loop takes the longest of

    memory    bytes that reach memory / (4.8 TB/s x 0.85)
    issue     instructions / (132 SMs x 4 schedulers x 1.755 GHz x 0.85), and likewise what one unit
              of an SM executes per clock: integers, comparisons and conversions 64, roots and
              powers 16, L1 accesses 128 bytes
    latency   loads of a warp before it waits, times the warps per SM, arrive 0.8 us later; loads that
              hit L1 or L2 (bytes that do not reach memory) do not count

"share" is memory's time divided by that. Entries of the limits give per kernel: `source`, `kernel` (a
pattern of the mangled name), `stores` or, for sums, `loads` (bytes of global memory per element, from
which the elements of a trip follow), `memory` (bytes per element that reach memory), `trips` (how
often the inner loops run) and, if a kernel has several loops, `bytes` (bytes that the intended loop
moves as written) and `access` (bytes of its narrowest access). Instructions are per thread.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sass  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts/sass_limits.json"

SMS, SCHEDULERS, CLOCK = 132, 4, 1.755e9
MEMORY_RATE = 4.8e12 * 0.85
ISSUE_SHARE = 0.85
LATENCY = 0.8e-6
SM_REGISTERS, SM_THREADS, SM_BLOCKS, BLOCK_THREADS = 65536, 2048, 32, 256

# Lanes that an SM's units process per clock.
UNIT_RATES = {"alu": 64, "imad": 64, "special": 16}
UNITS = {
    "alu": {"IADD3", "LOP3", "LEA", "ISETP", "FSETP", "DSETP", "FMNMX", "IMNMX", "VIMNMX", "SEL",
            "FSEL", "PRMT", "SHF", "HSET2", "F2FP", "PLOP3", "BMSK", "VIADD", "FCHK", "IABS", "POPC", "FLO"},
    "imad": {"IMAD"},
    "special": {"MUFU", "F2F", "I2F", "F2I", "FRND", "I2FP"},
}
# Opcodes that a division consists of.
DIVISIONS = {"FCHK", "CALL"}


class Missing(Exception):
    """A tool is missing."""


def find_tool(name):
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortado/nvdisasm"
    folders = [Path(os.environ[k]) / "bin" for k in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(k)]
    folders += [Path("/usr/local/cuda/bin"), *sorted(cache.glob("nvidia/*/bin"))]
    found = shutil.which(name) or next((str(f / name) for f in folders if (f / name).is_file()), None)
    if found is None:
        raise Missing(f"{name} is not found in PATH or {', '.join(map(str, folders))}")
    return found


@dataclass
class Source:
    functions: dict  # keyed by mangled name
    registers: dict
    spills: dict  # bytes


def parse_resources(log):
    """Registers and spilled bytes of each kernel, from the output of ptxas -v."""
    registers, spills, name = {}, {}, None
    for line in log.splitlines():
        if found := re.search(r"(?:Compiling entry function|Function properties for) '?([\w$]+)", line):
            name = found[1]
        if found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills[name] = int(found[1]) + int(found[2])
        if found := re.search(r"Used (\d+) registers", line):
            registers[name] = int(found[1])
    return registers, spills


def compile_source(name):
    nvcc, nvdisasm = find_tool("nvcc"), find_tool("nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/{Path(name).name}.cubin"
        compiled = subprocess.run(
            [nvcc, f"-I{ROOT}/include", f"-I{ROOT}/src", "-O3", "-DNDEBUG", "-std=c++20", "-arch=sm_90",
             "-cubin", "--extended-lambda", "--expt-relaxed-constexpr", "-Xptxas", "-v",
             "-x", "cu", f"{ROOT}/src/caffe/cuda/kernels/{name}.cu", "-o", cubin],
            capture_output=True, text=True)
        if compiled.returncode:
            raise RuntimeError(f"nvcc fails on {name}.cu:\n{compiled.stderr}")
        text = subprocess.run([nvdisasm, cubin], capture_output=True, text=True, check=True).stdout
    return Source(sass.parse(text), *parse_resources(compiled.stderr))


@dataclass
class Measured:
    elements: float      # per thread and trip
    instructions: float  # per element
    registers: int
    narrowest: int       # bytes of the smallest global access
    predicated: int      # global loads with a predicate
    divisions: int       # slow paths that the loop may call
    spills: int          # bytes
    in_flight: int       # loads
    share: float
    bound: str

    FIELDS = (("instructions", "most"), ("registers", "most"), ("narrowest", "least"),
              ("predicated", "most"), ("divisions", "most"), ("spills", "most"),
              ("in_flight", "least"), ("share", "least"))


def resident_warps(registers):
    per_block = -(-registers // 8) * 8 * BLOCK_THREADS
    blocks = min(SM_REGISTERS // per_block, SM_THREADS // BLOCK_THREADS, SM_BLOCKS)
    return blocks * BLOCK_THREADS // 32


def bytes_of(path, stores):
    return sum(i.bytes * times for i, times in path if (i.is_global_store if stores else i.is_global_load))


def elements_of(entry, path):
    """Elements per trip."""
    if "elements" in entry:
        return entry["elements"]
    return bytes_of(path, "stores" in entry) / entry["stores" if "stores" in entry else "loads"]


def model(path, elements, memory, warps, bytes_in_flight):
    """The chip's time for one element in seconds, for each limit."""
    per_element = {"all": sum(times for _, times in path) / elements}
    for unit, names in UNITS.items():
        per_element[unit] = sum(times for i, times in path if i.name in names) / elements
    rates = {"all": SCHEDULERS * 32, **UNIT_RATES}
    clocks = max(per_element[unit] / rates[unit] for unit in rates)
    loaded = bytes_of(path, stores=False) / elements
    access = loaded + bytes_of(path, stores=True) / elements
    clocks = max(clocks, access / 128)
    from_memory = min(1, memory / access)
    arrives = warps * 32 * bytes_in_flight / LATENCY
    return {"memory": memory / MEMORY_RATE, "issue": clocks / (SMS * CLOCK * ISSUE_SHARE),
            "latency": loaded * from_memory / (SMS * arrives) if loaded else 0}


def measure(entry, source):
    names = [n for n in source.functions if re.search(entry["kernel"], n)]
    if len(names) != 1:
        raise ValueError(f"{len(names)} kernels of {entry['source']}.cu match {entry['kernel']!r}")
    function, trips = source.functions[names[0]], entry.get("trips", [])
    loop = sass.hot_loop(function, len(trips), entry.get("bytes"), entry.get("access"))
    path = loop.longest_path(trips)
    elements = elements_of(entry, path)
    in_flight, bytes_in_flight = sass.loads_in_flight(path)
    registers = source.registers[names[0]]
    times = model(path, elements, entry["memory"], resident_warps(registers), bytes_in_flight)
    bound = max(times, key=times.get)
    return Measured(
        elements=elements,
        instructions=sum(times for _, times in path) / elements,
        registers=registers,
        narrowest=min(i.bytes for i, _ in path if i.bytes),
        predicated=sum(i.is_global_load and i.guard not in (None, "PT") for i in loop.instructions),
        divisions=sum(i.name in DIVISIONS for i in loop.instructions),
        spills=source.spills[names[0]],
        in_flight=in_flight,
        share=times["memory"] / times[bound],
        bound=bound)


def violations(name, measured, limits):
    wrong = []
    for field, kind in Measured.FIELDS:
        value, limit = getattr(measured, field), limits[field]
        if value > limit if kind == "most" else value < limit:
            wrong.append(f"{name}: {field} is {value:.4g}, the limit is {limit}")
    return wrong


def limits_of(m):
    """The measured values as limits, with slack for other versions of the compiler."""
    return {"instructions": round(m.instructions * 1.1, 1), "registers": -(-m.registers * 11 // 80) * 8,
            "narrowest": m.narrowest, "predicated": m.predicated, "divisions": m.divisions,
            "spills": m.spills, "in_flight": m.in_flight, "share": round(m.share * 0.95, 2)}


def record(path, entries, measured):
    for name, m in measured.items():
        entries[name]["limits"] = limits_of(m)
    lines = []
    for name, entry in entries.items():
        head = json.dumps({k: v for k, v in entry.items() if k != "limits"})[1:-1]
        lines.append(f'  {json.dumps(name)}: {{\n    {head},\n    "limits": {json.dumps(entry["limits"])}}}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


HEADINGS = ("kernel", "elements per trip", "instructions per element", "registers", "narrowest access",
            "predicated loads", "slow calls", "spills", "loads in flight", "share of bandwidth", "bound")


def row(name, m):
    return (name, f"{m.elements:.3g}", f"{m.instructions:.1f}", str(m.registers), f"{m.narrowest} B",
            str(m.predicated), str(m.divisions), f"{m.spills} B", str(m.in_flight), f"{m.share:.0%}",
            m.bound)


def print_table(rows, markdown):
    if markdown:
        print("| " + " | ".join(HEADINGS) + " |")
        print("|---" + "|--:" * (len(HEADINGS) - 2) + "|---|")
        for cells in rows:
            print("| " + " | ".join(cells) + " |")
        return
    widths = [max(len(r[k]) for r in rows + [HEADINGS]) for k in range(len(HEADINGS))]
    for cells in [HEADINGS, *rows]:
        print("  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths))))


def measure_all(entries, jobs=2):
    sources = sorted({entry["source"] for entry in entries.values()})
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        compiled = dict(zip(sources, pool.map(compile_source, sources)))
    return {name: measure(entry, compiled[entry["source"]]) for name, entry in entries.items()}


def print_path(entry):
    source = compile_source(entry["source"])
    name = next(n for n in source.functions if re.search(entry["kernel"], n))
    trips = entry.get("trips", [])
    for instruction, times in sass.hot_loop(
            source.functions[name], len(trips), entry.get("bytes"), entry.get("access")).longest_path(trips):
        guard = f"@{instruction.guard} " if instruction.guard else ""
        print(f"{times:4g}  {guard}{instruction.opcode} {instruction.operands}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limits", type=Path, default=LIMITS)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--path")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    entries = json.loads(arguments.limits.read_text())
    try:
        if arguments.path:
            print_path(entries[arguments.path])
            return 0
        chosen = {name: entry for name, entry in entries.items() if arguments.only in name}
        measured = measure_all(chosen)
    except Missing as missing:
        print(f"check_sass: {missing}", file=sys.stderr)
        return 2
    print_table([row(name, m) for name, m in measured.items()], arguments.markdown)
    if arguments.record:
        record(arguments.limits, entries, measured)
    wrong = [w for name, m in measured.items() for w in violations(name, m, entries[name]["limits"])]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
