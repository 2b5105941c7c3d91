#!/usr/bin/env python3
"""Parses a log of `caffe train`, or of Caffe, and writes tables of the nets' outputs.

  tools/extra/parse_log.py LOG FOLDER [--verbose] [--delimiter ,] [--json]

writes FOLDER/LOG.train and FOLDER/LOG.test with columns NumIters, Seconds (since "Solving"), LearningRate and one column
per output; further test nets get FOLDER/LOG.test.1 and so on. An output of several numbers has columns NAME, NAME[1],
NAME[2] ... With --json also writes FOLDER/LOG.json, where `loss` has the mean loss of each display. A log may hold several
runs, each resuming the one before: seconds then continue, and a row of a later run replaces an earlier row of its iteration.
"""
import argparse
import csv
import datetime
import json
import math
import os
import re
import sys

NUMBER = r"[-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf)"
TIME = re.compile(r"[IWEF](?:\d{4})?(\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?) ")
ITERATION = re.compile(r"Iteration (\d+)")
OUTPUT = re.compile(rf"(Train|Test) net output(?: mAP)? #(\d+): (\S+) = ({NUMBER})")
RATE = re.compile(rf"\blr = ({NUMBER})")
LOSS = re.compile(rf"Iteration (\d+).*, loss = ({NUMBER})")
TEST_NET = re.compile(r"Testing net \(#(\d+)\)")
FIRST = ("NumIters", "Seconds", "LearningRate")


class Clock:
    """Seconds since the first "Solving", from glog's times. They lack a year, so the caller gives one."""

    def __init__(self, year):
        self.year, self.passed = year, datetime.timedelta(0)
        self.last, self.start, self.now = None, None, math.nan

    def read(self, line):
        found = TIME.search(line)
        if not found:
            return
        month, day, hour, minute = (int(text) for text in found.groups()[:4])
        time = datetime.datetime(self.year, month, 1, hour, minute) + self.passed + datetime.timedelta(
            days=day - 1, seconds=float(found.group(5)))
        if self.last is not None and (self.last - time).days > 180:  # from December to January
            year = datetime.datetime(self.year + 1, 1, 1) - datetime.datetime(self.year, 1, 1)
            self.passed, time = self.passed + year, time + year
        self.last = time
        if "Solving" in line and self.start is None:
            self.start = time
        if self.start is not None:
            self.now = (time - self.start).total_seconds()


def parse_lines(lines, year=2001):
    """Parses the lines of a log into {"train": rows, "test": {net number: rows}, "loss": rows}.

    Rows are dicts in order of iteration, with NumIters, Seconds and LearningRate (of that iteration; if the log has
    none, the last one before, else the first); rows of "loss" have the mean loss that `display` shows.
    """
    clock, iteration, test_net = Clock(year), None, 0
    train, test, losses, rates = {}, {}, {}, {}
    for line in lines:
        clock.read(line)
        found = ITERATION.search(line)
        if found:
            iteration = int(found.group(1))
        if iteration is None:
            continue
        found = TEST_NET.search(line)
        if found:
            test_net = int(found.group(1))
            test.setdefault(test_net, {}).pop(iteration, None)
        found = LOSS.search(line)
        if found:
            losses[iteration] = {**_row(iteration, clock), "loss": float(found.group(2))}
            train.pop(iteration, None)
        found = RATE.search(line)
        if found:
            rates[iteration] = float(found.group(1))
        found = OUTPUT.search(line)
        if found:
            rows = train if found.group(1) == "Train" else test.setdefault(test_net, {})
            row = rows.setdefault(iteration, _row(iteration, clock))
            name = found.group(3)
            if name in row:
                name += f"[{sum(1 for key in row if key.startswith(name + '[')) + 1}]"
            row[name] = float(found.group(4))
    return {"train": _in_order(train, rates), "loss": _in_order(losses, rates),
            "test": {net: _in_order(rows, rates) for net, rows in sorted(test.items()) if rows}}


def _row(iteration, clock):
    return {"NumIters": iteration, "Seconds": clock.now, "LearningRate": math.nan}


def _in_order(rows, rates):
    known = sorted(rates)
    for iteration, row in rows.items():
        before = [at for at in known if at <= iteration] or known[:1]
        if before:
            row["LearningRate"] = rates[before[-1]]
    return [rows[iteration] for iteration in sorted(rows)]


def parse_log(path):
    """parse_lines of a file, with the year of its last change."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return parse_lines(file, datetime.datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime).year)


def write_csv(path, rows, delimiter=",", verbose=False):
    """Writes the rows, if there are any. Columns are those of all rows, in order of appearance."""
    if not rows:
        return
    columns = list(dict.fromkeys([*FIRST, *(name for row in rows for name in row)]))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "NumIters": float(row["NumIters"])} for row in rows)
    if verbose:
        print(f"Wrote {path}")


def without_nan(value):
    """Replaces NaN and infinity, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logfile_path", help="the log")
    parser.add_argument("output_dir", help="folder for the tables")
    parser.add_argument("--verbose", action="store_true", help="say what was written")
    parser.add_argument("--delimiter", default=",", help="between columns (default ,)")
    parser.add_argument("--json", action="store_true", help="all tables as one JSON file too")
    args = parser.parse_args()
    tables = parse_log(args.logfile_path)
    if not tables["train"] and not tables["test"]:
        sys.exit(f"parse_log.py: {args.logfile_path} has no line like 'Train net output #0: loss = 1.5' after one like "
                 "'Iteration 100': give a log of `caffe train`, of a solver with display or test_interval")
    base = os.path.join(args.output_dir, os.path.basename(args.logfile_path))
    write_csv(base + ".train", tables["train"], args.delimiter, args.verbose)
    for net, rows in tables["test"].items():
        write_csv(base + (f".test.{net}" if net else ".test"), rows, args.delimiter, args.verbose)
    if args.json:
        with open(base + ".json", "w", encoding="utf-8") as file:
            json.dump(without_nan(tables), file, indent=1)
        if args.verbose:
            print(f"Wrote {base}.json")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"parse_log.py: {error}")
