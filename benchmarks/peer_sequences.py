#!/usr/bin/env python3
"""Times forward and backward of recurrent nets and transformers in Cortado and in PyTorch, in turns.

  benchmarks/peer_environment.sh
  benchmarks/peer_sequences.py [CASE...] [--rounds N] [--types fp32 bf16] [--compiled] [--output FILE]

Prints milliseconds, medians of the rounds, and the largest memory of the processes, PyTorch's
libraries included.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from peer import sequence_nets

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "lstm": ("recurrent", {"kind": "LSTM", "steps": 200, "items": 16, "width": 128}, 20),
    "gru": ("recurrent", {"kind": "GRU", "steps": 200, "items": 16, "width": 128}, 20),
    "lstm-stacked": ("recurrent", {"kind": "LSTM", "steps": 64, "items": 64, "width": 512, "layers": 2, "both": True}, 3),
    "gru-stacked": ("recurrent", {"kind": "GRU", "steps": 64, "items": 64, "width": 512, "layers": 2, "both": True}, 3),
    "gpt": ("gpt", {"blocks": 6, "width": 384, "heads": 6, "items": 16, "steps": 256, "characters": 96}, 3),
    "vit": ("vit", {"blocks": 12, "width": 192, "heads": 3, "items": 32, "pixels": 224, "patch": 16, "classes": 1000}, 3),
}


def run(words, environment=None):
    """Standard output of a program, and the largest memory that it had, in MiB."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([str(word) for word in words], cwd=ROOT, stdout=output, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        if status != 0:
            sys.exit(f"{' '.join(map(str, words))}: status {os.waitstatus_to_exitcode(status)}")
        return output.read(), usage.ru_maxrss / 1024


def ours(args, net, dtype, steps):
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    report, memory = run([ROOT / args.build / "bin/caffe", "time", net, f"--iterations={steps}", f"--precision={dtype}", "--json"], environment)
    return json.loads(report)["forward_backward_ms"], memory


def peers(args, case, dtype, steps):
    name, arguments, _ = CASES[case]
    output, memory = run([ROOT / args.python, ROOT / "benchmarks/peer/torch_sequences.py", name, json.dumps(arguments), dtype, steps,
                          args.threads, *(["compiled"] if args.compiled else [])])
    return float(output.splitlines()[-1]), memory


def measure(args, case, dtype):
    """The figures of one case."""
    name, arguments, steps = CASES[case]
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as net:
        net.write(getattr(sequence_nets, name)(**arguments))
        net.flush()
        rounds = [(ours(args, net.name, dtype, steps), peers(args, case, dtype, steps)) for _ in range(args.rounds)]
    (my_ms, my_memory), (peer_ms, peer_memory) = ([statistics.median(column) for column in zip(*side)] for side in zip(*rounds))
    return {"case": case, "type": dtype, "cortado_ms": round(my_ms, 2), "pytorch_ms": round(peer_ms, 2), "ratio": round(peer_ms / my_ms, 2),
            "cortado_mib": round(my_memory), "pytorch_mib": round(peer_memory), "memory_ratio": round(my_memory / peer_memory, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--build", default="build/cpu-release", help="build folder")
    parser.add_argument("--python", default="build/peer-venv/bin/python", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--types", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compiled", action="store_true", help="PyTorch's net by torch.compile")
    parser.add_argument("--output", type=pathlib.Path, help="also write the figures to this file")
    args = parser.parse_args()
    if wrong := set(args.cases) - set(CASES):
        parser.error(f"there is no case {', '.join(sorted(wrong))}")
    results = []
    for case in args.cases or CASES:
        for dtype in args.types:
            results.append(measure(args, case, dtype))
            print(json.dumps(results[-1]), flush=True)
    if args.output:
        args.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
