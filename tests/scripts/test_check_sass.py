"""scripts/check_sass.py: its parser on a small text, and the kernels if a CUDA toolkit is found."""
import importlib.util
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sass = load("sass")
check_sass = load("check_sass")

# A copy with a loop inside a loop, a division that may call its slow path, and a load that waits
# for another.
TEXT = """
	.section	.text._Z4copyPf,"ax",@progbits
.text._Z4copyPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_0:
        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0030*/                   LDG.E.128.CONSTANT R8, desc[UR4][R2.64+0x10] ;
        /*0040*/                   FADD R4, R4, R8 ;
.L_x_1:
        /*0050*/              @!P1 LDG.E.U16 R12, desc[UR4][R14.64] ;
        /*0060*/                   FADD R4, R4, R12 ;
        /*0070*/               @P2 BRA `(.L_x_1) ;
        /*0080*/                   FCHK P3, R4, R5 ;
        /*0090*/              @!P3 BRA `(.L_x_2) ;
        /*00a0*/                   CALL.REL.NOINC `($_Z4copyPf$__internal_0) ;
.L_x_2:
        /*00b0*/                   STG.E.128 desc[UR4][R2.64], R4 ;
        /*00c0*/                   ISETP.GE.U32.AND P0, PT, R2, UR4, PT ;
        /*00d0*/              @!P0 BRA `(.L_x_0) ;
        /*00e0*/                   EXIT ;
.L_x_3:
        /*00f0*/                   BRA `(.L_x_3);
	.section	.nv.info,"",@"SHT_CUDA_INFO"
"""
ENTRY = {"source": "copy", "kernel": "copy", "stores": 4, "memory": 12, "trips": [3]}
RESOURCES = """
ptxas info    : Compiling entry function '_Z4copyPf' for 'sm_90'
ptxas info    : Function properties for _Z4copyPf
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
"""


def source():
    return check_sass.Source(sass.parse(TEXT), *check_sass.parse_resources(RESOURCES))


def test_loops_are_found_with_what_is_inside():
    loops = sass.parse(TEXT)["_Z4copyPf"].loops
    assert sorted(loop.depth for loop in loops) == [0, 0, 1]  # the last one spins after the end
    assert sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 0).bytes == 2
    with pytest.raises(ValueError, match="no loop of depth 2"):
        sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 2)
    assert sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 0, access=2).bytes == 2
    with pytest.raises(ValueError, match="no loop of depth 0"):
        sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 0, access=16)


def test_the_path_counts_inner_trips_and_leaves_calls_out():
    path = sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 1).longest_path([3])
    assert sum(times for _, times in path) == 3 + 3 * 3 + 2 + 3
    assert not any(i.name == "CALL" for i, _ in path)


def test_loads_in_flight_end_at_the_first_use():
    path = sass.hot_loop(sass.parse(TEXT)["_Z4copyPf"], 1).longest_path([3])
    assert sass.loads_in_flight(path) == (2, 32)


def test_measures():
    measured = check_sass.measure(ENTRY, source())
    assert measured.elements == 4
    assert measured.instructions == 17 / 4
    assert (measured.registers, measured.spills) == (40, 12)
    assert (measured.narrowest, measured.predicated, measured.divisions) == (2, 1, 2)
    assert measured.in_flight == 2


def test_says_what_breaks_a_limit():
    limits = {"instructions": 4, "registers": 40, "narrowest": 16, "predicated": 1, "divisions": 2,
              "spills": 12, "in_flight": 2, "share": 0}
    assert check_sass.violations("copy", check_sass.measure(ENTRY, source()), limits) == [
        "copy: instructions is 4.25, the limit is 4", "copy: narrowest is 2, the limit is 16"]


def test_the_kernels_keep_their_limits():
    entries = json.loads(check_sass.LIMITS.read_text())
    try:
        for tool in ("nvcc", "nvdisasm"):
            check_sass.find_tool(tool)
    except check_sass.Missing as missing:
        pytest.skip(str(missing))
    measured = check_sass.measure_all(entries)
    assert not [w for name, m in measured.items()
                for w in check_sass.violations(name, m, entries[name]["limits"])]
