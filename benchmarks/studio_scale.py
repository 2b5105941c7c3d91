#!/usr/bin/env python3
"""The studio with many runs: seconds to the table and to the first curve, memory, and processor time while nothing happens.

  scripts/install_dependencies.sh studio && build/studio-venv/bin/python benchmarks/studio_scale.py         JSON

Writes 1,000 run folders, ten of them with 100,000 points a series (--runs, --long, --points), starts `caffe studio` on them, and
opens it in Chromium. Seconds are those from the request until the browser shows a row of the table, or a chart, the first and the
second time.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[1]


def write_runs(root, runs, long, points):
    for number in range(runs):
        folder = root / f"group{number % 20:02}" / f"run{number:04}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", "stop_iteration": 1000000}]}))
        (folder / "solver.prototxt").write_text(f"base_lr: {0.001 * (number + 1)}\nmax_iter: 1000000\n")
        count = points if number < long else 100
        with open(folder / "metrics.jsonl", "w", encoding="utf-8") as lines:
            for step in range(count):
                lines.write(f'{{"event":"train","time":{1.7e9 + step + number},"iteration":{step * 10},"loss":{1 / (step + 1):.9f},"smoothed_loss":'
                            f'{1 / (step + 1):.9f},"learning_rate":0.01,"images_per_second":512.5,"outputs":{{"loss":{1 / (step + 1):.9f}}},'
                            f'"gradient_norm":{1 + step % 7:.6f}}}\n')
            lines.write(f'{{"event":"test","time":{1.7e9 + count + number},"iteration":{count * 10},"loss":0.1,"net":0,"outputs":{{"accuracy":0.9}}}}\n')


def memory_of(process):
    """MiB of the process, now and at most."""
    text = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return [int(re.search(rf"{key}:\s+(\d+)", text)[1]) / 1024 for key in ("VmRSS", "VmHWM")]


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--long", type=int, default=10)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--idle", type=float, default=30, help="seconds in which nothing happens")
    parser.add_argument("--caffe", default=ROOT / "build" / "cpu-release" / "bin" / "caffe")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_runs(pathlib.Path(folder), options.runs, options.long, options.points)
        server = subprocess.Popen([str(options.caffe), "studio", folder, "--port=0", "--token=t"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "PYTHON": sys.executable})
        try:
            address = server.stdout.readline().strip().partition("/?")[0]
            print(json.dumps({"runs": options.runs, "points": options.points, **measure(address, server.pid, options)}, indent=1))
        finally:
            server.terminate()
            server.wait()


def measure(address, process, options):
    found = {"memory_at_start": memory_of(process)[0]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/jobs?token=t")
        page.wait_for_load_state("networkidle")  # the scripts are in the browser's cache then
        for name in ("table", "table_again"):
            begin = time.monotonic()
            page.goto(f"{address}/")
            page.locator(".ag-row").first.wait_for()
            found[name] = time.monotonic() - begin
        time.sleep(3)  # somebody reads the table
        for name in ("curve", "curve_again"):
            begin = time.monotonic()
            page.goto(f"{address}/runs/group00/run0000")
            page.locator("canvas").first.wait_for()
            found[name] = time.monotonic() - begin
        for number in range(1, options.long):
            page.goto(f"{address}/runs/group{number % 20:02}/run{number:04}")
            page.locator("canvas").first.wait_for()
        page.goto(f"{address}/")
        page.locator(".ag-row").first.wait_for()
        time.sleep(5)
        before = processor_seconds(process)
        time.sleep(options.idle)
        found["idle_share_of_a_core_with_the_table_open"] = (processor_seconds(process) - before) / options.idle
        browser.close()
    time.sleep(5)
    before = processor_seconds(process)
    time.sleep(options.idle)
    found["idle_share_of_a_core"] = (processor_seconds(process) - before) / options.idle
    found["memory_now"], found["memory_most"] = memory_of(process)
    return {key: round(value, 4) for key, value in found.items()}


if __name__ == "__main__":
    main()
